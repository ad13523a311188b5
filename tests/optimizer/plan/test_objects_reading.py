"""Objects that read the same are not read again, and only these."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dsf.api.names import (
    DEFAULT_OPTIMIZATION,
    GENERATED_LABEL,
    OPTIMIZATION_LABEL,
    REPLICA_SET_LABEL,
)
from dsf.api.times import rfc3339
from dsf.kube.kinds import MANIFEST_WORK, PLACEMENT, PLACEMENT_BINDING
from dsf.kube.port import Object
from dsf.placement import UNREACHABLE
from optimizer.domain.settings import DEFAULTS
from optimizer.plan.objects_reading import objects_reading
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.observation import Observation
from tests.optimizer.build import NOW, body, guide, obj, request, workload
from tests.optimizer.inventoried_nodes import GH200, MIG, compliant, inventory, node
from tests.optimizer.neighbours import in_namespace

SECONDS = 60

_CHANGES = [
    *("tainted", "given up", "tolerated", "running", "labelled", "nothing"),
    *("inventoried", "renewed", "busier", "applied", "bound"),
]

_TAINT = {"key": "broken", "effect": "NoSelect", "timeAdded": "2026-11-20T12:00:00Z"}
_LIMITED = f"broken@{SECONDS}"
_ON_WORKER01 = {"labelSelector": {"matchLabels": {"cluster-name": "worker01"}}}
_RUNNING = obj(
    PLACEMENT,
    "app01-placement",
    "default",
    labels={GENERATED_LABEL: "true", OPTIMIZATION_LABEL: DEFAULT_OPTIMIZATION},
    spec={"predicates": [{"requiredClusterSelector": _ON_WORKER01}]},
)


_OF_OTHERS = obj(
    MANIFEST_WORK,
    "mwrs-x",
    "worker01",
    labels={
        REPLICA_SET_LABEL: "other.mwrs-x",
        "resource-request-kind": "gpu",
        "resource-request-amount": "1",
    },
)
_BINDING = {
    **obj(
        PLACEMENT_BINDING,
        "bound",
        "default",
        labels={GENERATED_LABEL: "true", OPTIMIZATION_LABEL: DEFAULT_OPTIMIZATION},
    ),
    "placementRef": {"name": "app01-placement"},
    "subjects": [{"name": "3g.48gb-worker01"}],
}


def _with(item: Object, part: str, **fields: Any) -> Object:
    return {**item, part: {**(item.get(part) or {}), **fields}}


def _changed(seen: Observation, change: str, now: datetime = NOW) -> Observation:
    return replace(seen, **_changes(seen, change, now))


def _changes(seen: Observation, change: str, now: datetime) -> dict[str, Any]:
    first, *others = seen.managed_clusters
    app, *apps = seen.workloads
    found: dict[str, Any] = {}
    match change:
        case "tainted":
            found["managed_clusters"] = (_with(first, "spec", taints=[_TAINT]), *others)
        case "given up":
            taint = {**_TAINT, "key": UNREACHABLE}
            found["managed_clusters"] = (_with(first, "spec", taints=[taint]), *others)
        case "tolerated":
            tolerant = _with(app, "metadata", annotations={f"{PREFIX}tolerations": _LIMITED})
            found["workloads"] = (tolerant, *apps)
        case "running":
            found["placements"] = (_RUNNING,)
        case "labelled":
            found["managed_clusters"] = (_with(first, "metadata", labels={}), *others)
        case "inventoried" | "busier":
            nodes = [node({MIG: 1}, {MIG: 1} if change == "busier" else {}, labels=GH200)]
            found["inventories"] = (_observed(inventory("worker01", nodes), now),)
        case "renewed":
            found["inventories"] = tuple(_observed(one, now) for one in seen.inventories or ())
        case "applied":
            condition = {"type": "Applied", "status": "True", "lastTransitionTime": rfc3339(now)}
            found["works"] = (_with(_OF_OTHERS, "status", conditions=[condition]),)
            theirs = in_namespace(workload("mwrs-x", "x", 1), "other")
            found["elsewhere"] = {"other": Observation(workloads=(theirs,))}
        case "bound":
            binding = _with(_BINDING, "metadata", creationTimestamp=rfc3339(now))
            found["placements"], found["bindings"] = (_RUNNING,), (binding,)
            found["managed_clusters"] = ({**first, "status": compliant("c")["status"]}, *others)
    return found


def _observed(item: Object, now: datetime) -> Object:
    until = rfc3339(now + timedelta(seconds=180))
    return _with(item, "status", observedTime=rfc3339(now), validUntil=until)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(_CHANGES),
            st.sampled_from([0, 1, 9, 11, SECONDS - 1, SECONDS, 300, -30]),
            st.booleans(),
        ),
        max_size=6,
    )
)
@example([("tainted", 0, False), ("tolerated", SECONDS - 1, False), ("nothing", 1, False)])
@example(
    [
        *[("inventoried", 0, False), ("bound", 0, False), *[("renewed", 9, False)] * 3],
        *[("applied", 0, False), *[("renewed", 9, False)] * 3],
    ]
)
@example([("inventoried", 0, False), ("renewed", 190, False), ("busier", 9, False)])
@example([("inventoried", 0, False), ("nothing", 190, False), ("renewed", 0, False)])
@example([("running", 0, False), ("given up", 0, False), ("nothing", 300, False)])
@example([("tainted", 0, True), ("nothing", SECONDS, True), ("nothing", -30, True)])
def test_what_was_read_before_is_what_is_read_now(steps: list[tuple[str, int, bool]]) -> None:
    seen, now, last = guide(), NOW, objects_reading(guide(), request(), DEFAULTS)
    for change, seconds, tolerant in steps:
        now += timedelta(seconds=seconds)
        seen = replace(_changed(seen, change, now), observed_at=now)
        limited = {"key": "broken", "operator": "Exists", "tolerationSeconds": SECONDS}
        asked = request(**body(), tolerations=[limited] if tolerant else [])
        last = objects_reading(seen, asked, DEFAULTS, last)
        anew = read_objects(seen, asked, DEFAULTS)
        assert (last.snapshot.fleet, last.snapshot.pools) == (anew.fleet, anew.pools)
        assert last.snapshot.enforced == anew.enforced
        assert last.snapshot.score_index.places == anew.score_index.places
        assert last.basis == objects_reading(seen, asked, DEFAULTS).basis


def test_renewed_inventories_are_not_read_again() -> None:
    """Each agent renews its inventory each minute, so in a large fleet one did a moment ago."""
    seen = replace(_changed(_changed(guide(), "inventoried"), "bound"), observed_at=NOW)
    first = last = objects_reading(seen, request(), DEFAULTS)
    read = list[bool]()
    for change in (*["renewed"] * 5, "busier"):
        now = last.observation.observed_at + timedelta(seconds=SECONDS)
        seen = replace(_changed(seen, change, now), observed_at=now)
        last = objects_reading(seen, request(), DEFAULTS, last)
        read.append(last.snapshot is not first.snapshot)
        first = last
    assert read == [True, False, False, False, False, True]


def test_nothing_is_read_again_until_a_toleration_ends() -> None:
    """Read anew each time, a fleet of a thousand clusters would cost most of a look."""
    seen = replace(_changed(_changed(guide(), "tainted"), "tolerated"), observed_at=NOW)
    first = objects_reading(seen, request(), DEFAULTS)
    later = replace(seen, observed_at=NOW + timedelta(seconds=SECONDS - 1))
    ended = replace(seen, observed_at=NOW + timedelta(seconds=SECONDS))
    assert objects_reading(later, request(), DEFAULTS, first) is first
    assert objects_reading(ended, request(), DEFAULTS, first) is not first
