"""`python -m dsf.sim.demo.leash MODULE ARGUMENTS`: a program that ends when its starter does.

The starter holds the other end of standard input. However it dies, killed or with its terminal,
the system closes that end, and the program is told to stop.
"""

import os
import runpy
import signal
import sys
import threading
import time

STOP_SECONDS = 5.0


def main() -> None:
    """Run a module as `python -m` does, as long as standard input is open."""
    threading.Thread(target=_end_with_starter, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _end_with_starter() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
