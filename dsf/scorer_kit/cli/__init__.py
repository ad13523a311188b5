"""`dsf scorer` and its commands: arguments in, text and exit codes out.

Shell. Each command imports what it needs when it is called.
May import all of `dsf.scorer_kit`.
"""
