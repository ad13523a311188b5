"""A real hub for people: ``python -m tests.real_hub up east west``, ``status``, ``down``."""

# A command: it prints, and runs what its own tables name.
# ruff: noqa: T201

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.eventually import until

from .build import BuildError, locate
from .harness import policy
from .harness.api import Api, condition_of
from .harness.hub import Hub, running_hub
from .harness.prometheus import NoPrometheus, start_prometheus
from .harness.scheduled import ScheduledCluster

if TYPE_CHECKING:
    from .harness.cluster import ManagedCluster

State = dict[str, Any]


def state_directory() -> Path:
    """Where the one hub of this user keeps its files."""
    return Path(tempfile.gettempdir()) / f"dsf-hub-{os.getuid()}"


def read_state() -> State | None:
    """The state file of the running hub, or None if no hub runs."""
    try:
        state: State = json.loads((state_directory() / "logs" / "state.json").read_text())
        words = Path(f"/proc/{state['pid']}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return state if b"serve" in words else None


def up(arguments: argparse.Namespace) -> int:
    """Start a hub in the background, and return when it is ready."""
    if read_state():
        print("hub: runs already; see `status`, or stop it with `down`", file=sys.stderr)
        return 1
    directory = state_directory()
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "logs").mkdir(parents=True, mode=0o700)
    options = [*arguments.clusters, *(["--policies"] if arguments.policies else [])]
    options += [f"--scheduled={name}" for name in arguments.scheduled]
    options += ["--prometheus"] if arguments.prometheus else []
    with (directory / "logs" / "serve.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", __package__ or "tests.real_hub", "serve", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    state = until("the hub to be up", lambda: read_state() or server.poll(), seconds=900, every=1)
    if isinstance(state, int):
        print(f"hub: did not start; logs in {directory / 'logs'}", file=sys.stderr)
        print((directory / "logs" / "serve.log").read_text()[-2000:], file=sys.stderr)
        return 1
    return status(arguments)


def serve(arguments: argparse.Namespace) -> int:
    """Run a hub until a signal stops it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with running_hub(state_directory(), locate()) as hub:
        clusters: list[ManagedCluster] = hub.join(*arguments.clusters)
        clusters += hub.join_as(ScheduledCluster, *arguments.scheduled)
        if arguments.policies:
            policy.start_on_hub(hub)
            for cluster in clusters:
                policy.start_on_cluster(cluster)
        state = describe(hub)
        if arguments.prometheus:
            state["prometheus"] = start_prometheus(hub.processes, hub.ports, {})
        (hub.processes.logs / "state.json").write_text(json.dumps(state))
        while True:
            signal.pause()


def describe(hub: Hub) -> State:
    """What ``status`` and other programs need to know of a running hub."""
    clusters = {name: str(plane.admin_kubeconfig) for name, plane in hub.clusters.items()}
    return {"pid": os.getpid(), "hub": str(hub.admin_kubeconfig), "clusters": clusters}


def down(_: argparse.Namespace) -> int:
    """Stop the hub and everything it started."""
    state = read_state()
    if state is None:
        print("hub: none is running")
        return 0
    os.kill(state["pid"], signal.SIGTERM)
    until("the hub to stop", lambda: read_state() is None)
    shutil.rmtree(state_directory(), ignore_errors=True)
    print("hub: stopped")
    return 0


def status(_: argparse.Namespace) -> int:
    """Print what runs and how to reach it; the exit code is 1 if nothing runs."""
    state = read_state()
    if state is None:
        print("hub: none is running")
        return 1
    api = Api.from_kubeconfig(Path(state["hub"]))
    print(f"hub      {'ready' if api.healthy() else 'NOT ready'}  KUBECONFIG={state['hub']}")
    for name, kubeconfig in state["clusters"].items():
        found = api.find("cluster.open-cluster-management.io/v1", "ManagedCluster", name) or {}
        available = condition_of(found, "ManagedClusterConditionAvailable").get("status", "Unknown")
        print(f"cluster  {name} available={available}  KUBECONFIG={kubeconfig}")
    if "prometheus" in state:
        print(f"prometheus  {state['prometheus']}")
    api.close()
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m tests.real_hub", description=__doc__)
    commands = top.add_subparsers(required=True)
    for name, command in (("up", up), ("serve", serve)):
        starting = commands.add_parser(name, help=(command.__doc__ or "").split("\n")[0])
        starting.add_argument("clusters", nargs="*", help="managed clusters to create and join")
        starting.add_argument(
            "--scheduled",
            action="append",
            default=[],
            metavar="CLUSTER",
            help="a managed cluster with a scheduler, and without nodes; may be repeated",
        )
        starting.add_argument("--policies", action="store_true", help="governance policies too")
        starting.add_argument("--prometheus", action="store_true", help="an installed Prometheus")
        starting.set_defaults(command=command)
    for name, other in (("down", down), ("status", status)):
        commands.add_parser(name, help=other.__doc__).set_defaults(command=other)
    return top


def main() -> int:
    """Do what the command line asks."""
    arguments = parser().parse_args()
    try:
        locate()
        return int(arguments.command(arguments))
    except (BuildError, NoPrometheus, TimeoutError) as error:
        print(f"hub: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
