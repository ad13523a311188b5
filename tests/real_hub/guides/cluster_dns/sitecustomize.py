"""Resolves names of Services for the processes of one cluster, as the DNS of a cluster does.

Python imports this module at its start, from PYTHONPATH. The file that CLUSTER_DNS names has an
address and a name on each line, and may grow at any time. Names that end like those of Services
are unknown unless they are in it.
"""

import os
import socket
from pathlib import Path

ask_the_system = socket.getaddrinfo


def getaddrinfo(host, port, *more, **options):  # type: ignore[no-untyped-def]
    """Resolve a Service's name by the file, and other names as always."""
    name = host.decode() if isinstance(host, bytes) else host
    if not isinstance(name, str) or not name.endswith((".svc", ".svc.cluster.local")):
        return ask_the_system(host, port, *more, **options)
    lines = Path(os.environ["CLUSTER_DNS"]).read_text("ascii").splitlines()
    known = {name: address for address, name in map(str.split, lines)}
    if name not in known:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return ask_the_system(known[name], port, *more, **options)


socket.getaddrinfo = getaddrinfo
