"""Four scorers to copy from, and the few modules they share.

Why shared modules: the HTTP shell (limits, problem details, command line) is the same for every
scorer and longer than any scorer's own idea, so a template author reads it once or never. A copy
of this folder is complete: it imports nothing else of this repository, and inside it only
relatively, so it works under any name. Keep `wire`, `problem`, `service` and `program`, and delete
the scorers that you do not need.
"""
