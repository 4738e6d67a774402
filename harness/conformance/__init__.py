"""What every referee must hold to, shown live: rules, hostile candidates, and rooms that break."""
