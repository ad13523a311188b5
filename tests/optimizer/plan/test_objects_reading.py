"""Objects that read the same are not read again, and only these."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dsf.api.names import DEFAULT_OPTIMIZATION, GENERATED_LABEL, OPTIMIZATION_LABEL
from dsf.kube.kinds import PLACEMENT
from dsf.kube.port import Object
from dsf.placement import UNREACHABLE
from optimizer.domain.settings import DEFAULTS
from optimizer.plan.objects_reading import objects_reading
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.fleet_snapshot import read_objects
from optimizer.snapshot.observation import Observation
from tests.optimizer.build import NOW, body, guide, obj, request

SECONDS = 60

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


def _with(item: Object, part: str, **fields: Any) -> Object:
    return {**item, part: {**(item.get(part) or {}), **fields}}


def _changed(seen: Observation, change: str) -> Observation:
    first, *others = seen.managed_clusters
    app, *apps = seen.workloads
    tolerations = {f"{PREFIX}tolerations": _LIMITED}
    match change:
        case "tainted":
            return replace(seen, managed_clusters=(_with(first, "spec", taints=[_TAINT]), *others))
        case "given up":
            taint = {**_TAINT, "key": UNREACHABLE}
            return replace(seen, managed_clusters=(_with(first, "spec", taints=[taint]), *others))
        case "tolerated":
            tolerant = _with(app, "metadata", annotations=tolerations)
            return replace(seen, workloads=(tolerant, *apps))
        case "running":
            return replace(seen, placements=(_RUNNING,))
        case "labelled":
            return replace(seen, managed_clusters=(_with(first, "metadata", labels={}), *others))
    return seen


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["tainted", "given up", "tolerated", "running", "labelled", "nothing"]),
            st.sampled_from([0, 1, SECONDS - 1, SECONDS, DEFAULTS.default_toleration_seconds, -30]),
            st.booleans(),
        ),
        max_size=6,
    )
)
@example([("tainted", 0, False), ("tolerated", SECONDS - 1, False), ("nothing", 1, False)])
@example([("running", 0, False), ("given up", 0, False), ("nothing", 300, False)])
@example([("tainted", 0, True), ("nothing", SECONDS, True), ("nothing", -30, True)])
def test_what_was_read_before_is_what_is_read_now(steps: list[tuple[str, int, bool]]) -> None:
    seen, now, last = guide(), NOW, objects_reading(guide(), request(), DEFAULTS)
    for change, seconds, tolerant in steps:
        now += timedelta(seconds=seconds)
        seen = replace(_changed(seen, change), observed_at=now)
        limited = {"key": "broken", "operator": "Exists", "tolerationSeconds": SECONDS}
        asked = request(**body(), tolerations=[limited] if tolerant else [])
        last = objects_reading(seen, asked, DEFAULTS, last)
        anew = read_objects(seen, asked, DEFAULTS)
        assert (last.snapshot.fleet, last.snapshot.pools) == (anew.fleet, anew.pools)
        assert last.snapshot.enforced == anew.enforced
        assert last.snapshot.score_index.places == anew.score_index.places
        assert last.basis == objects_reading(seen, asked, DEFAULTS).basis


def test_nothing_is_read_again_until_a_toleration_ends() -> None:
    """Read anew each time, a fleet of a thousand clusters would cost most of a look."""
    seen = replace(_changed(_changed(guide(), "tainted"), "tolerated"), observed_at=NOW)
    first = objects_reading(seen, request(), DEFAULTS)
    later = replace(seen, observed_at=NOW + timedelta(seconds=SECONDS - 1))
    ended = replace(seen, observed_at=NOW + timedelta(seconds=SECONDS))
    assert objects_reading(later, request(), DEFAULTS, first) is first
    assert objects_reading(ended, request(), DEFAULTS, first) is not first
