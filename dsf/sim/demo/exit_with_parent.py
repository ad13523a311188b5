"""Run a module so that it exits when its parent process does.

`python -m dsf.sim.demo.exit_with_parent MODULE ARGUMENTS`. The parent holds the other end of
standard input. Whichever way the parent dies, the operating system closes that end, and this
process sends itself SIGTERM.
"""

import os
import runpy
import signal
import sys
import threading
import time

STOP_SECONDS = 5.0
"""Seconds for a graceful stop after SIGTERM; then the process exits at once."""


def main() -> None:
    """Run a module as `python -m` does, until standard input closes."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _exit_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
