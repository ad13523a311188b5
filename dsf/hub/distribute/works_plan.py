"""Which ManifestWorks with scorer summaries to create, patch or delete."""

from collections.abc import Mapping

from dsf.api import names
from dsf.hub.distribute.rendered_summaries import RenderedSummaries
from dsf.hub.snapshot.hub_snapshot import HubSnapshot
from dsf.hub.snapshot.summaries_work import LIMIT_BYTES, ROOM_BYTES, SummariesWork, summaries_work
from dsf.kube.changes import Change, Create, Delete, Patch, merge_patch
from dsf.kube.kinds import MANIFEST_WORK


def plan_works(
    desired: Mapping[str, RenderedSummaries], snapshot: HubSnapshot, agent_namespace: str
) -> list[Change]:
    """Return the changes of works; a work that OCM would refuse as too large stays as it is."""
    changes: list[Change] = []
    for cluster, rendered in desired.items():
        work = snapshot.works.get(cluster)
        as_desired = work is not None and work.drifted is None and work.text == rendered.text
        if as_desired or (work and work.being_deleted) or work_bytes(rendered) > LIMIT_BYTES:
            continue
        changes.append(_write(cluster, rendered.text, work, agent_namespace))
    return changes + [
        Delete(MANIFEST_WORK, names.MANIFEST_WORK, cluster, work.uid or None)
        for cluster, work in snapshot.works.items()
        if cluster not in desired and not work.being_deleted
    ]


def _write(cluster: str, text: str, work: SummariesWork | None, agent_namespace: str) -> Change:
    wanted = summaries_work(cluster, text, agent_namespace)
    if work is None:
        return Create(MANIFEST_WORK, wanted)
    observed = work.drifted or summaries_work(cluster, work.text, agent_namespace)
    versioned = {**wanted["metadata"], "resourceVersion": work.version}
    body = merge_patch(observed, {**wanted, "metadata": versioned})
    return Patch(MANIFEST_WORK, names.MANIFEST_WORK, cluster, body)


def work_bytes(rendered: RenderedSummaries) -> int:
    """Return an upper bound on the size of a ManifestWork with these summaries, in bytes."""
    return rendered.bytes + ROOM_BYTES
