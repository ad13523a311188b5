"""The `dsf` command line.

Shell. A command is imported when it is called, so `dsf --help` is fast, and a missing extra is an
error message, not a traceback. May import `dsf.kube` and `dsf.api`; commands live in their parts.
"""

from dsf.cli.root import main

__all__ = ["main"]
