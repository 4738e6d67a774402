"""The report as one page that needs nothing else: its scales, its drawings, and its template."""
