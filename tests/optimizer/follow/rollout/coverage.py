"""Replays the events of a hub: at no event is a workload uncovered that the plan kept covered."""

from collections import Counter
from collections.abc import Iterable

from dsf.api.names import REPLICA_SET_LABEL
from dsf.api.untrusted_text import InvalidInput
from dsf.kube import kinds
from dsf.kube.port import Object, WatchEvent
from optimizer.follow.rollout.rollout_record import RolloutRecord, rollout_record
from optimizer.follow.rollout.rollout_state import states_of


def uncovered_events(
    events: Iterable[WatchEvent], record: RolloutRecord, started: Iterable[tuple[str, str]]
) -> Counter[str]:
    """Fail if a workload lacked replicas that the plan kept; return for how many events any did.

    `events` are those of ManifestWorks and PlacementPlans; `started`: workload and cluster of what
    ran before.
    """
    assert not isinstance(record.plan, InvalidInput)
    states, uncovered = states_of(record.plan), Counter[str]()
    needed = Counter(app for app, _ in states[0].replicas) & Counter(
        app for app, _ in states[-1].replicas
    )
    running, around = set(started), (states[0], states[0])
    for event in sorted(events, key=_version):
        obj = event.object
        if obj["kind"] == kinds.PLACEMENT_PLAN.kind:
            found = rollout_record(obj)
            if found and found.name == record.name:
                around = (states[found.progress.source], states[found.progress.target])
            continue
        owner = (obj["metadata"].get("labels") or {}).get(REPLICA_SET_LABEL, "")
        if not owner.startswith(f"{record.namespace}."):
            continue
        item = (obj["metadata"]["name"], obj["metadata"]["namespace"])
        if event.type == "DELETED" or obj["metadata"].get("deletionTimestamp"):
            running.discard(item)
        else:
            running.add(item)
        missing = set(needed - Counter(app for app, _ in running))
        assert missing <= around[0].uncovered | around[1].uncovered, missing
        uncovered.update(missing)
    return uncovered


def _version(event: WatchEvent) -> int:
    return int(_metadata(event.object)["resourceVersion"])


def _metadata(obj: Object) -> Object:
    metadata: Object = obj["metadata"]
    return metadata
