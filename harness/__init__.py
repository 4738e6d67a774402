"""
The harness room: contracts, values, tasks, the experiment file, registration, record, models, seats, workspaces.

Importing has no effect, and is cheap: nothing is loaded before it is asked for.
"""
