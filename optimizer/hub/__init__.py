"""The watched hub: its objects in memory, kept by watches, for all who read, and its history.

Shell. May import `snapshot` and what is below it, and `dsf`.
"""
