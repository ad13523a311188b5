"""The request that a PlacementOptimization means is what it was, until it means another one."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dsf.kube.kinds import PLACEMENT_OPTIMIZATION
from dsf.kube.port import Object
from optimizer.follow.optimization.subject import KeptMemory
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import kept_request
from optimizer.wire.placement_optimization import PlacementOptimizationSpec, read_spec
from optimizer.wire.placement_status import PlacementStatus
from tests.optimizer.build import NOW, guide, managed_cluster, obj, workload
from tests.optimizer.service.kept_fleet import POWER, PREFERENCE

_NIGHT = [{"preference": POWER, "schedule": "0 22 * * *", "duration": "1h"}]
_UNREAD = PlacementStatus(
    namespace="default", landed=False, workloads=(), policies=(), drift=(), unbound_policies=()
)
_SAME, _LATER = "as it was", 10 * 3600.0
_SEEN = {
    _SAME: guide(),
    "a cluster more": replace(
        guide(), managed_clusters=(*guide().managed_clusters, managed_cluster("worker03"))
    ),
    "a workload more": replace(
        guide(), workloads=(*guide().workloads, workload("mwrs-app03", "app03"))
    ),
    "no workload": replace(guide(), workloads=()),
}
_SPECS: list[dict[str, Any]] = [{}, {"schedules": _NIGHT}, {"workloadSelector": "app=app02"}]


def _declared(name: str, age: int, spec: dict[str, Any]) -> Object:
    found = obj(PLACEMENT_OPTIMIZATION, name, "default", spec={"preference": PREFERENCE, **spec})
    found["metadata"]["creationTimestamp"] = f"2026-11-0{age}T00:00:00Z"
    return found


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(_SEEN)),
            st.sampled_from(_SPECS),
            st.sampled_from([None, (1, {}), (1, {"workloadSelector": "app=app01"}), (3, {})]),
            st.sampled_from([0.0, 60.0, _LATER, 11 * 3600.0, -60.0]),
        ),
        max_size=6,
    )
)
@example([(_SAME, {}, None, 0.0), (_SAME, {}, (1, {}), 0.0)])
@example([(_SAME, {"schedules": _NIGHT}, None, 0.0), (_SAME, {"schedules": _NIGHT}, None, _LATER)])
def test_what_was_asked_before_is_what_is_asked_now(
    looks: list[tuple[str, dict[str, Any], tuple[int, dict[str, Any]] | None, float]],
) -> None:
    memory: KeptMemory | None = None
    now = NOW
    for name, stated, other, seconds in looks:
        now += timedelta(seconds=seconds)
        own = _declared("kept", 2, stated)
        others = [own, *([_declared("other", *other)] if other else [])]
        spec = read_spec(own)
        assert isinstance(spec, PlacementOptimizationSpec)
        facts = FleetFacts("default", replace(_SEEN[name], observed_at=now), _UNREAD)
        memory = memory or KeptMemory(spec)
        found, known = memory.asked(own, spec, others, facts)
        assert found == kept_request(own, others, facts)
        assert (known.hub.clusters, known.faults) == (facts.hub.clusters, facts.faults)
