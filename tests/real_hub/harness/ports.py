"""Free ports on the loopback interface."""

from __future__ import annotations

import random
import socket
from contextlib import closing

LOOPBACK = "127.0.0.1"
# Below Linux's ephemeral range (32768 and up), so that no outgoing connection takes a port
# between the moment it is chosen here and the moment its server binds it.
RANGE = range(18_000, 32_000)


class Ports:
    """Returns free ports, each only once."""

    def __init__(self) -> None:
        self._candidates = iter(random.sample(RANGE, len(RANGE)))

    def free(self) -> int:
        """A port to listen on."""
        return next(port for port in self._candidates if is_free(port))


def is_free(port: int) -> bool:
    """Whether a server can bind the port on loopback and on all interfaces."""
    with closing(socket.socket()) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def listens(address: str, port: int) -> bool:
    """Whether a server accepts connections."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex((address, port)) == 0
