"""`dsf uninstall`: takes off a hub what the controller made, once the controller is gone.

The DynamicScorers, the DynamicScoringConfig and the CRDs stay, for the next installation.
"""

import asyncio
import socket
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from dsf.api import names
from dsf.api.untrusted_text import counted, escaped, listed
from dsf.cli.options import Duration, Namespace, cluster_options, option
from dsf.cli.output import Progress
from dsf.kube.apply import apply
from dsf.kube.changes import Change, Delete, Patch
from dsf.kube.client.connect import connect
from dsf.kube.client.kubeconfig import BadKubeconfig
from dsf.kube.errors import KubeError, NotFound
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORING_CONFIG,
    LEASE,
    MANAGED_CLUSTER_ADD_ON,
    MANIFEST_WORK,
    Kind,
)
from dsf.kube.port import Kube, Object, list_objects
from dsf.runtime.leader_election import HeldLease, Occupied, run_exclusively
from dsf.runtime.lease import LeaderElectionConfig

LONGEST_LEASE_SECONDS = 60.0
"""How long a controller that died can keep its Lease; the chart's is 15 s."""
LOOK_SECONDS = 1.0
_OURS = f"{names.MANAGED_BY_LABEL}={names.ADDON}"


class ControllerRuns(Exception):
    """A controller still leads; the message says which."""


@dataclass(frozen=True, slots=True)
class Uninstalled:
    """What was written, and the managed clusters whose add-on or ManifestWork is still there."""

    changes: Sequence[Change] = ()
    waiting: tuple[str, ...] = ()


def withdrawal(works: Sequence[Object], configs: Sequence[Object]) -> list[Change]:
    """Return the deletions of our ManifestWorks, then the patches that drop our finalizer.

    Without the finalizer nothing hinders the deletion of the DynamicScoringConfig.
    """
    return [
        *(
            _delete(MANIFEST_WORK, work)
            for work in works
            if "deletionTimestamp" not in work["metadata"]
        ),
        *(
            _without_finalizer(config)
            for config in configs
            if names.SCORING_CONFIG_FINALIZER in _finalizers(config)
        ),
    ]


async def uninstall(
    kube: Kube, namespace: str, *, patience_seconds: float, dry_run: bool = False
) -> Uninstalled:
    """Remove what the controller of a namespace made; with `dry_run`, return it and write nothing.

    The add-on's agents may publish scores until OCM has removed them: waits for that, at most
    `patience_seconds`. Raises ControllerRuns, and KubeError where the hub refuses.
    """
    if dry_run:
        return Uninstalled((*await _planned(kube, namespace), *await _scores(kube)))
    candidacy = LeaderElectionConfig(
        names.CONTROLLER_LEASE,
        namespace,
        f"{socket.gethostname()}_{uuid.uuid4()}",
        longest_seconds=LONGEST_LEASE_SECONDS,
    )
    outcome = await run_exclusively(
        HeldLease(kube, candidacy),
        lambda: _remove(kube, namespace, patience_seconds),
        patience_seconds=LONGEST_LEASE_SECONDS + 1,
    )
    if isinstance(outcome, Occupied):
        holder = (outcome.lease.get("spec") or {}).get("holderIdentity") or ""
        raise ControllerRuns(
            f"the controller {escaped(str(holder))} runs in namespace {namespace}, and would write"
            " again what is removed: uninstall its release first (helm uninstall --no-hooks)"
        )
    await _delete_lease(kube, namespace)
    return outcome


async def _remove(kube: Kube, namespace: str, patience_seconds: float) -> Uninstalled:
    withdrawn = await _applied(kube, await _planned(kube, namespace))
    deadline = asyncio.get_running_loop().time() + patience_seconds
    while True:
        waiting = await _waiting(kube)
        if not waiting or asyncio.get_running_loop().time() >= deadline:
            scores = await _applied(kube, await _scores(kube))
            return Uninstalled((*withdrawn, *scores), waiting)
        await asyncio.sleep(LOOK_SECONDS)


async def _planned(kube: Kube, namespace: str) -> list[Change]:
    works = await _works(kube)
    configs = await _listed(
        kube, DYNAMIC_SCORING_CONFIG, namespace, fields=f"metadata.name={names.SCORING_CONFIG}"
    )
    return withdrawal(works, configs)


async def _works(kube: Kube) -> list[Object]:
    return [
        work
        for name in (names.MANIFEST_WORK, names.SECRETS_MANIFEST_WORK)
        for work in await _listed(kube, MANIFEST_WORK, fields=f"metadata.name={name}")
    ]


async def _waiting(kube: Kube) -> tuple[str, ...]:
    """Return the managed clusters where OCM has not removed everything yet."""
    add_ons = await _listed(kube, MANAGED_CLUSTER_ADD_ON, fields=f"metadata.name={names.ADDON}")
    left = {str(each["metadata"]["namespace"]) for each in (*add_ons, *await _works(kube))}
    return tuple(sorted(left))


async def _scores(kube: Kube) -> list[Change]:
    return [
        _delete(ADD_ON_PLACEMENT_SCORE, score)
        for score in await _listed(kube, ADD_ON_PLACEMENT_SCORE, labels=_OURS)
    ]


async def _listed(kube: Kube, kind: Kind, namespace: str | None = None, **of: str) -> list[Object]:
    """Return objects; none where the hub does not serve their kind any more."""
    try:
        return await list_objects(kube, kind, namespace, **of)
    except NotFound:
        return []


async def _applied(kube: Kube, changes: Sequence[Change]) -> Sequence[Change]:
    """Apply changes, and return them; raises the first error, except of what is gone already."""
    for outcome in await apply(kube, changes):
        if outcome.error and not isinstance(outcome.error, NotFound):
            raise outcome.error
    return changes


async def _delete_lease(kube: Kube, namespace: str) -> None:
    try:
        await kube.delete(LEASE, names.CONTROLLER_LEASE, namespace)
    except NotFound:
        return


def _delete(kind: Kind, obj: Object) -> Delete:
    metadata = obj["metadata"]
    return Delete(kind, metadata["name"], metadata["namespace"], metadata.get("uid"))


def _finalizers(obj: Object) -> list[str]:
    return list(obj["metadata"].get("finalizers") or ())


def _without_finalizer(config: Object) -> Patch:
    metadata = config["metadata"]
    kept = [each for each in _finalizers(config) if each != names.SCORING_CONFIG_FINALIZER]
    body = {"metadata": {"finalizers": kept, "resourceVersion": metadata["resourceVersion"]}}
    return Patch(DYNAMIC_SCORING_CONFIG, metadata["name"], metadata["namespace"], body)


@click.command(name="uninstall")
@cluster_options("the hub")
@option(
    "--namespace",
    "-n",
    type=Namespace(),
    default=names.HUB_NAMESPACE,
    help="The hub namespace: that of the controller.",
)
@option(
    "--timeout",
    type=Duration(),
    default="1m",
    help="How long to wait for managed clusters that still have the add-on.",
)
@option("--dry-run", is_flag=True, help="Print what would be removed, and write nothing.")
def uninstall_command(
    kubeconfig: Path | None, context: str | None, namespace: str, timeout: float, *, dry_run: bool
) -> None:
    """Remove what the controller made, after helm uninstall.

    That is its ManifestWorks, the scores of its agents, and its finalizer on the
    DynamicScoringConfig, which could not be deleted otherwise. DynamicScorers, the
    DynamicScoringConfig and the CRDs stay. The chart does this in a Job at helm uninstall.
    """

    async def work() -> Uninstalled:
        async with connect(kubeconfig, context) as kube:
            return await uninstall(kube, namespace, patience_seconds=timeout, dry_run=dry_run)

    try:
        with Progress("Removing what the controller made"):
            found = asyncio.run(work())
    except (BadKubeconfig, ControllerRuns, KubeError) as error:
        raise click.ClickException(str(error)) from error
    for line in _lines(found, "would be removed" if dry_run else "removed"):
        click.echo(line)


def _lines(found: Uninstalled, done: str) -> list[str]:
    counts = Counter(change.kind for change in found.changes)
    lines = [
        f"{counted(counts[kind], kind.kind)} {done}"
        for kind in (MANIFEST_WORK, ADD_ON_PLACEMENT_SCORE)
        if counts[kind]
    ]
    if counts[DYNAMIC_SCORING_CONFIG]:
        lines.append(f"the finalizer of the DynamicScoringConfig {done}")
    if found.waiting:
        lines.append(
            f"OCM has not removed everything from {listed(found.waiting, 10)} yet: it does when"
            " they answer; what they publish until then expires"
        )
    return lines or ["nothing to remove"]
