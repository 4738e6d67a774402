"""The seats: `oneshot`, `loop` and `scripted`, what they sit down to, their tools, and how code is found in a reply."""
