"""What a plan tells of policies and workloads is what its writes do to the hub."""

import asyncio
import copy
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import MANIFEST_WORK_REPLICA_SET, PLACEMENT, PLACEMENT_BINDING
from dsf.kube.port import Object
from optimizer.follow.overview.question_completion import PartialRequest, complete_question
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.result import Applied
from tests.mcp_server.service import scenario_hub

CLUSTERS, WORKLOADS = ("worker01", "worker02"), ("mwrs-app01", "mwrs-app02", "mwrs-app03")

OF_RECORDS = {"MissingFromHub", "DiffersFromPlan", "NotInPlan"}
"""Reasons of drift from a record: none of them right after a plan was applied."""

WISHES = st.lists(
    st.builds(
        PartialRequest,
        objective=st.sampled_from([{"performance": 1.0}, {"power": 1.0}]),
        clusters=st.lists(st.sampled_from(CLUSTERS), unique=True),
        workloads=st.lists(st.sampled_from(WORKLOADS), unique=True),
        further=st.sampled_from([{}, {"prune": True}, {"prune": False}]),
    ),
    min_size=2,
    max_size=4,
)


async def hub_with_a_workload_without_scores() -> EmbeddedHub:
    """The guide's hub, and app03, for which no score has an entry."""
    hub = await scenario_hub()
    found = copy.deepcopy(await hub.get(MANIFEST_WORK_REPLICA_SET, "mwrs-app02", "default"))
    labels = {**found["metadata"]["labels"], "app": "app03"}
    found["metadata"] = {"name": "mwrs-app03", "namespace": "default", "labels": labels}
    found["spec"]["placementRefs"] = [{"name": "app03-placement"}]
    await hub.create(MANIFEST_WORK_REPLICA_SET, found)
    return hub


def _selected(placement: Object) -> set[str]:
    """Read the clusters of a Placement by its labels, as the scenario's clusters have them."""
    found = set[str]()
    for predicate in placement["spec"].get("predicates") or ():
        labels = predicate["requiredClusterSelector"]["labelSelector"]
        found.update((labels.get("matchLabels") or {}).values())
        for expression in labels.get("matchExpressions") or ():
            found.update(expression["values"])
    return found


async def read(hub: EmbeddedHub) -> tuple[Mapping[str, set[str]], Mapping[str, set[str]]]:
    """The policies bound to each cluster, and the clusters that each workload's Placement names."""
    placements = {
        obj["metadata"]["name"]: _selected(obj) for obj in (await hub.list(PLACEMENT)).items
    }
    bound = dict[str, set[str]]()
    for obj in (await hub.list(PLACEMENT_BINDING)).items:
        for cluster in placements[obj["placementRef"]["name"]]:
            bound.setdefault(cluster, set()).update(item["name"] for item in obj["subjects"])
    workloads = (await hub.list(MANIFEST_WORK_REPLICA_SET)).items
    running = {
        obj["metadata"]["name"]: placements.get(obj["spec"]["placementRefs"][0]["name"], set())
        for obj in workloads
    }
    return bound, running


@given(WISHES)
def test_told_changes_of_policies_and_workloads_are_those_of_the_writes(
    partials: list[PartialRequest],
) -> None:
    async def play() -> None:
        hub = await hub_with_a_workload_without_scores()
        optimizer = Optimizer(hub, now=utc_now)
        for partial in partials:
            question = complete_question(await optimizer.fleet("default"), partial)
            assert isinstance(question, tuple), question
            plan = await optimizer.plan(question.request)
            assert isinstance(plan, Plan), plan
            before = await read(hub)
            assert isinstance(await optimizer.apply(plan), Applied)
            _check(plan, before, await read(hub))
            drift = (await optimizer.placement_status("default")).drift
            assert not {item.reason for item in drift} & OF_RECORDS, drift

    asyncio.run(play())


def _check(
    plan: Plan,
    before: tuple[Mapping[str, set[str]], Mapping[str, set[str]]],
    after: tuple[Mapping[str, set[str]], Mapping[str, set[str]]],
) -> None:
    (bound, running), (rebound, rerunning) = before, after
    told = {item.cluster: (set(item.before), set(item.after)) for item in plan.enforcement_changes}
    assert told == {
        name: (bound.get(name, set()), rebound.get(name, set()))
        for name in CLUSTERS
        if bound.get(name, set()) != rebound.get(name, set())
    }
    for move in plan.moves:
        was, will = running[move.workload], rerunning[move.workload]
        assert {place.cluster for place in move.before} == was
        assert {place.cluster for place in move.after} == will
        if move.action not in ("stays", "waits"):
            assert plan.changes
            assert was != will or was & told.keys()
        else:
            assert was == will
    silent = rerunning.keys() - {move.workload for move in plan.moves}
    assert all(running[name] == rerunning[name] for name in silent)
