"""The `dsf` command line.

Commands are named by import path and loaded when they are called, so that `dsf --help` costs
nothing and a missing extra is a sentence, not a traceback.
"""

from dsf.cli.root import main

__all__ = ["main"]
