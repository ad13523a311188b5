"""The watched hub: its objects in memory, kept by watches, for all who read, and its history.

Shell. `fleet_matrices` makes of it what many ask for, and `generated_writes` writes to it at OCM's
pace. May import `follow` and what is below it, and `dsf`.
"""
