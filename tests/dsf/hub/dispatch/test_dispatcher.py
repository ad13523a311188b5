"""Whole decisions of the dispatcher, through the API server, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dsf.api.conditions import conditions_of, find, is_true
from dsf.hub.dispatch.dispatcher import Dispatcher, DispatcherOptions
from dsf.hub.dispatch.queue_pass import NominationSettings
from dsf.hub.dispatch.workloads import NOMINATED
from dsf.kube.errors import Unreachable
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    ADMISSION_CHECK,
    CONFIG_MAP,
    LOCAL_QUEUE,
    MANAGED_CLUSTER,
    MULTI_KUEUE_CLUSTER,
    MULTI_KUEUE_CONFIG,
    NAMESPACE,
    WORKLOAD,
)
from dsf.kube.port import Kube, Object
from tests.dsf.hub.dispatch.kueue_hub import (
    GREEN,
    START,
    KueueHub,
    add_managed,
    add_room,
    admit,
    all_nominated,
    clock,
    condition,
    dispatching_condition,
    events,
    kueue_hub,
    kueue_writes,
    publish,
    queue,
    send_queues,
    told,
)
from tests.dsf.hub.test_run_faults import Killed
from tests.kube_wrappers.fault_injection import Faulty
from tests.kube_wrappers.wrapper import Call

pytestmark = pytest.mark.virtual_time

SOON = 60.0
"""Seconds within which everything has been decided, and before the next clusters are due."""
NEXT = 300.0
LOST = {
    "spec": {
        "taints": [
            {
                "key": "cluster.open-cluster-management.io/unreachable",
                "effect": "NoSelect",
                "timeAdded": START,
            }
        ]
    }
}


@asynccontextmanager
async def dispatching(
    hub: KueueHub, kube: Kube | None = None, at_once: int = 1, **options: Any
) -> AsyncIterator[None]:
    chosen = DispatcherOptions(NominationSettings(at_once, NEXT), **options)
    dispatcher = Dispatcher(hub.applying(kube), chosen, now=clock, registry=CollectorRegistry())
    task = asyncio.create_task(dispatcher.run())
    try:
        await asyncio.sleep(SOON)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def test_the_best_cluster_is_nominated_and_the_next_ones_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    await queue(hub, "job")
    async with dispatching(hub):
        assert await all_nominated(hub) == {"job": ["west"]}
        message = "Nominated: west. Scores: west (94). Next after 5m: east (52); north (10)."
        assert await told(hub) == message
        assert await events(hub) == [("Normal", "Nominated", message)]
        await asyncio.sleep(NEXT)
        assert await all_nominated(hub) == {"job": ["west", "east"]}
        await publish(hub, north=99)  # what is nominated stays; who follows has no other choice
        await asyncio.sleep(NEXT)
        assert await all_nominated(hub) == {"job": ["west", "east", "north"]}
        await admit(hub, "job", "east")
        await asyncio.sleep(NEXT)
        assert await all_nominated(hub) == {"job": []}


async def test_scores_that_change_while_a_workload_waits_decide_who_is_next() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    await queue(hub, "job")
    async with dispatching(hub):
        await publish(hub, north=80)
        await asyncio.sleep(NEXT)
        assert await all_nominated(hub) == {"job": ["west", "north"]}


async def test_a_lost_cluster_is_withdrawn_and_another_one_nominated_at_once() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    await queue(hub, "job")
    async with dispatching(hub):
        await hub.patch(MANAGED_CLUSTER, "west", LOST)
        await asyncio.sleep(SOON)
        assert await all_nominated(hub) == {"job": ["east"]}
        assert "its agent does not renew its lease" in await told(hub)
        lost = {"status": {"conditions": [condition("Active", "False")]}}
        await hub.patch(MULTI_KUEUE_CLUSTER, "east", lost, subresource="status")
        await asyncio.sleep(SOON)
        assert await all_nominated(hub) == {"job": ["north"]}
        await hub.patch(MANAGED_CLUSTER, "north", LOST)
        await asyncio.sleep(SOON)
        assert await all_nominated(hub) == {"job": []}
        assert ("Warning", "NoEligibleCluster", await told(hub)) in await events(hub)
        await hub.patch(MANAGED_CLUSTER, "west", {"spec": {"taints": None}})
        await asyncio.sleep(SOON)
        assert await all_nominated(hub) == {"job": ["west"]}


async def test_a_queue_goes_where_there_is_room_the_most_important_first() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    await add_room(hub, east=2, north=9, west=1)
    for name, priority in (("a", 0), ("b", 0), ("c", 7)):
        await queue(hub, name, priority=priority)
    await queue(hub, "large", cpu="9", priority=-1)
    async with dispatching(hub):
        assert await all_nominated(hub) == {
            "a": ["east"],
            "b": ["east"],
            "c": ["west"],
            "large": ["north"],
        }
        await queue(hub, "late", cpu="30")  # has room nowhere: it waits where it is best
        await asyncio.sleep(SOON)
        assert (await all_nominated(hub))["late"] == ["west"]
        assert "west (94, no room)" in await told(hub, "late")


async def test_the_quotas_that_the_add_on_sends_are_respected_without_inventories() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    await send_queues(hub, "west", 2)
    await send_queues(hub, "east", "1500m")
    for name in "abcde":
        await queue(hub, name)
    async with dispatching(hub):
        assert await all_nominated(hub) == {
            "a": ["west"],
            "b": ["west"],
            "c": ["east"],
            "d": ["north"],  # has no queue of the add-on, so no limit is known
            "e": ["north"],
        }
        assert "Next after 5m: west (94, no room)" in await told(hub, "e")
        await admit(hub, "a", "west")
        await queue(hub, "f")
        await asyncio.sleep(SOON)
        assert (await all_nominated(hub))["f"] == ["north"]


async def test_a_plan_respects_the_quotas_that_the_add_on_sends() -> None:
    hub = await kueue_hub(("east", "west"))
    await publish(hub, east=10, west=94)
    await send_queues(hub, "east", 1)
    await send_queues(hub, "west", 3)
    await queue(hub, "a-small")
    await queue(hub, "large", cpu="3")
    async with dispatching(hub):
        assert await all_nominated(hub) == {"a-small": ["east"], "large": ["west"]}
        assert "One plan for 2 Workloads of priority 0" in await told(hub, "large")


@pytest.mark.parametrize(
    ("cpu", "spec"), [(0, {"cohortName": "all"}), (0, {"cohort": "all"}), ("many", {})]
)
async def test_a_queue_that_may_borrow_or_is_unreadable_sets_no_limit(
    cpu: str | int, spec: dict[str, str]
) -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, west=94)
    await send_queues(hub, "west", cpu, **spec)
    await queue(hub, "job")
    async with dispatching(hub):
        assert await all_nominated(hub) == {"job": ["west"]}


@pytest.mark.parametrize("seconds_ago", [3600, -3600])
async def test_an_inventory_of_another_time_says_nothing(seconds_ago: float) -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    await add_room(hub, seconds_ago, east=1, north=1, west=0)
    await queue(hub, "job")
    async with dispatching(hub):
        assert await all_nominated(hub) == {"job": ["west"]}


async def test_what_was_admitted_since_the_inventory_is_not_free() -> None:
    hub = await kueue_hub(("fleet-east", "west"))
    await hub.create(NAMESPACE, {"metadata": {"name": "east"}})
    await hub.delete(MANAGED_CLUSTER, "fleet-east")
    await add_managed(hub, "east")
    await publish(hub, east=94, west=52)
    await add_room(hub, east=1, west=1)
    await queue(hub, "runs")
    check = {"name": "multi", "state": "Ready", "lastTransitionTime": "2026-11-20T00:00:01Z"}
    await kueue_writes(hub, "runs", clusterName="fleet-east", admissionChecks=[check])
    await queue(hub, "next")
    async with dispatching(hub):
        assert (await all_nominated(hub))["next"] == ["west"]


OWN_SPELLING = '[{"addOnPlacementScore": "Carbon", "entry": "value", "weight": 2, "invert": true}]'
BAD_ANNOTATIONS = {
    None: "LocalQueue user-queue has no annotation",
    "[": "it is no JSON",
    "[]": "preferences: Tuple should have at least 1 item",
    '[{"addonPlacementScore": "carbon", "wieght": 2}]': "preferences[0].wieght: Extra inputs",
    '[{"addonPlacementScore": "carbon", "weight": -1}]': "preferences[0].weight: Input should be",
    '[{"weight": 1}]': "Field required",
}


@pytest.mark.parametrize("annotation", BAD_ANNOTATIONS)
async def test_without_usable_preferences_names_decide_and_it_is_told(
    annotation: str | None,
) -> None:
    hub = await kueue_hub(annotation=annotation)
    await publish(hub, east=52, north=10, west=94)
    await queue(hub, "job")
    async with dispatching(hub):
        assert await all_nominated(hub) == {"job": ["east"]}
        [(type_, reason, message)] = await events(hub)
        assert (type_, reason) == ("Warning", "Nominated")
        assert BAD_ANNOTATIONS[annotation] in message
        assert "in order of names" in message
        await hub.delete(WORKLOAD, "job", "team")
        body = {
            "metadata": {
                "annotations": {"dynamic-scoring.open-cluster-management.io/preferences": GREEN}
            }
        }
        await hub.patch(LOCAL_QUEUE, "user-queue", body, "team")
        await queue(hub, "next")
        await asyncio.sleep(SOON)
        assert await all_nominated(hub) == {"next": ["west"]}


async def test_weights_entries_and_inverted_scores_are_as_in_a_request() -> None:
    hub = await kueue_hub(annotation=OWN_SPELLING)
    await publish(hub, east=52, north=10, west=94)
    await queue(hub, "job")
    async with dispatching(hub):
        assert (await told(hub)).startswith("Nominated: north. Scores: north (-20).")


async def test_where_all_scores_have_expired_names_decide_and_it_is_told() -> None:
    hub = await kueue_hub()
    await publish(hub, until=START, east=10, west=94)
    await queue(hub, "job")
    async with dispatching(hub):
        assert await all_nominated(hub) == {"job": ["east"]}
        [(type_, _, message)] = await events(hub)
        assert type_ == "Warning"
        assert "No cluster has a score: in order of names." in message
        assert f"west: AddOnPlacementScore carbon expired at {START}" in message
        workload = await hub.get(WORKLOAD, "job", "team")
        assert (find(conditions_of(workload), NOMINATED) or {})["reason"] == "ByName"


async def test_clusters_without_a_valid_score_come_last_and_it_is_told() -> None:
    hub = await kueue_hub(("bare", "expired", "several", "unknown", "worse"))
    await hub.delete(MANAGED_CLUSTER, "unknown")
    await add_managed(hub, "stranger")
    await publish(hub, until=START, expired=99)
    await hub.create(NAMESPACE, {"metadata": {"name": "stranger"}})
    await publish(hub, several=98, worse=-100, stranger=99)
    both = {"status": {"scores": [{"name": "a", "value": 1}, {"name": "b", "value": 2}]}}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, "carbon", both, "several", subresource="status")
    await queue(hub, "job")
    async with dispatching(hub, at_once=20):
        assert await all_nominated(hub) == {
            "job": ["worse", "bare", "expired", "several", "unknown"]
        }
        message = await told(hub)
        for said in (
            "bare: no AddOnPlacementScore carbon",
            f"expired: AddOnPlacementScore carbon expired at {START}",
            "several: AddOnPlacementScore carbon has not just one entry",
            "unknown: OCM has no managed cluster of this name",
            "Better, but not in MultiKueueConfig fleet: stranger (99).",
        ):
            assert said in message


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ("multiKueue: {dispatcherName: example.com/other}", "names example.com/other"),
        ("multiKueue: {}", "names kueue.x-k8s.io/multikueue-dispatcher-all-at-once"),
        ("featureGates: {MultiKueue: false}", "the feature gate MultiKueue is off"),
        ("[", "is not one YAML document"),
        (None, "has no controller_manager_config.yaml"),
    ],
)
async def test_it_does_nothing_unless_kueue_names_it(
    configuration: str | None, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    hub = await kueue_hub()
    await publish(hub, east=52)
    await queue(hub, "job")
    body = {"data": {"controller_manager_config.yaml": configuration}}
    await hub.patch(CONFIG_MAP, "kueue-manager-config", body, "kueue-system")
    async with dispatching(hub):
        assert await all_nominated(hub) == {"job": []}
        status, reason, message = await dispatching_condition(hub)
        assert (status, reason) == ("False", "NotItsDispatcher")
        assert said in message
        assert caplog.messages == ["nominates nothing"]  # once, not at each decision
        await hub.delete(CONFIG_MAP, "kueue-manager-config", "kueue-system")
        await asyncio.sleep(SOON)
        assert "name it by --kueue-config" in (await dispatching_condition(hub))[2]


async def test_a_check_that_kueue_does_not_answer_is_told_once_it_is_old() -> None:
    hub = await kueue_hub()
    unanswered: Object = {"status": {"conditions": []}}
    await hub.patch(ADMISSION_CHECK, "multi", unanswered, subresource="status")
    async with dispatching(hub):
        assert (await dispatching_condition(hub))[:2] == ("True", "Dispatching")
        await asyncio.sleep(SOON)
        status, reason, message = await dispatching_condition(hub)
        assert (status, reason) == ("False", "NotAnswered")
        assert "with the feature gate MultiKueue" in message


async def test_a_multi_kueue_config_that_is_missing_is_told_and_followed_once_it_is_there() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52)
    config = await hub.get(MULTI_KUEUE_CONFIG, "fleet")
    await hub.delete(MULTI_KUEUE_CONFIG, "fleet")
    await queue(hub, "job")
    async with dispatching(hub):
        message = "No worker cluster is eligible. Not eligible: there is no MultiKueueConfig fleet."
        assert await told(hub) == message
        assert await events(hub) == [("Warning", "NoEligibleCluster", message)]
        told_of = "there is no MultiKueueConfig fleet"
        assert await dispatching_condition(hub) == ("False", "NoMultiKueueConfig", told_of)
        made = MULTI_KUEUE_CONFIG.object(metadata={"name": "fleet"}, spec=config["spec"])
        await hub.create(MULTI_KUEUE_CONFIG, made)
        await asyncio.sleep(SOON)
        assert await all_nominated(hub) == {"job": ["east"]}


async def test_a_plan_gives_the_large_workload_the_only_room_that_it_has() -> None:
    hub = await kueue_hub(("east", "west"))
    await publish(hub, east=10, west=94)
    await add_room(hub, east=1, west=3)
    await queue(hub, "a-small")
    await queue(hub, "large", cpu="3")
    async with dispatching(hub):
        assert await all_nominated(hub) == {"a-small": ["east"], "large": ["west"]}
        assert "One plan for 2 Workloads of priority 0" in await told(hub, "large")
        assert ("Normal", "Nominated", await told(hub, "large")) in await events(hub)


async def test_what_another_dispatcher_nominates_is_left_alone() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    await queue(hub, "job")
    async with dispatching(hub):
        await kueue_writes(hub, "job", nominatedClusterNames=["north"])
        await hub.patch(MANAGED_CLUSTER, "north", LOST)
        await asyncio.sleep(2 * NEXT)
        assert await all_nominated(hub) == {"job": ["north"]}
        assert any(reason == "OtherDispatcher" for _, reason, _ in await events(hub))
        why = "Left alone, because another dispatcher nominates their clusters: team/job."
        assert await dispatching_condition(hub) == ("True", "OtherDispatcher", why)
        await hub.delete(WORKLOAD, "job", "team")
        await asyncio.sleep(SOON)
        assert await dispatching_condition(hub) == ("True", "Dispatching", "")


async def test_workers_that_ocm_does_not_know_are_told_and_clusters_that_are_no_workers() -> None:
    hub = await kueue_hub()
    await hub.delete(MANAGED_CLUSTER, "north")
    for number in range(6):
        await add_managed(hub, f"idle-{number}")
    async with dispatching(hub):
        check = await hub.get(ADMISSION_CHECK, "multi")
        message = (
            "Worker clusters that OCM does not know, so without a score: north. Managed clusters"
            " not in MultiKueueConfig fleet: idle-0, idle-1, idle-2, idle-3, idle-4 and 1 more."
        )
        assert is_true(check, "Active")  # Kueue's own condition stays
        assert await dispatching_condition(hub) == ("True", "UnknownWorkers", message)
        await asyncio.sleep(NEXT)
        version = check["metadata"]["resourceVersion"]
        assert (await hub.get(ADMISSION_CHECK, "multi"))["metadata"]["resourceVersion"] == version


async def test_a_nomination_whose_answer_is_lost_is_its_own() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    await queue(hub, "job")

    class Losing(Faulty):
        def after(self, call: Call) -> None:
            """Lose the answer that the second cluster is nominated."""
            if call.verb == "patch" and call.kind == WORKLOAD:
                self.writes = getattr(self, "writes", 0) + 1
                if self.writes == 3:
                    raise Unreachable("the connection broke")

    async with dispatching(hub, Losing(hub, lambda _: None)):
        await asyncio.sleep(2 * NEXT)
        assert await all_nominated(hub) == {"job": ["west", "east", "north"]}
        assert {reason for _, reason, _ in await events(hub)} == {"Nominated"}


async def test_a_field_that_another_client_owns_is_left_alone() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, west=94)
    await queue(hub, "job")
    await kueue_writes(hub, "job", nominatedClusterNames=["gone"])
    async with dispatching(hub):
        assert await all_nominated(hub) == {"job": ["gone"]}
        [(type_, reason, _)] = await events(hub)
        assert (type_, reason) == ("Warning", "OtherDispatcher")


async def test_workloads_that_wait_for_nothing_of_it_are_left_alone() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52)
    for name in ("finished", "unreserved", "ready", "other-check"):
        await queue(hub, name)
    reserved = condition("QuotaReserved")
    await kueue_writes(hub, "finished", conditions=[reserved, condition("Finished")])
    await kueue_writes(hub, "unreserved", conditions=[condition("QuotaReserved", "False")])
    await kueue_writes(hub, "ready", admissionChecks=[{"name": "multi", "state": "Ready"}])
    await kueue_writes(hub, "other-check", admissionChecks=[{"name": "else", "state": "Pending"}])
    async with dispatching(hub):
        assert set(map(tuple, (await all_nominated(hub)).values())) == {()}


async def test_a_workload_that_gets_quota_again_starts_again() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, west=94)
    await queue(hub, "job")
    async with dispatching(hub):
        at = {"metadata": {"name": "job", "namespace": "team"}, "status": {}}
        await hub.applying().apply_status(WORKLOAD, at, manager="kueue-admission")
        evicted = {
            **condition("QuotaReserved", "False"),
            "lastTransitionTime": "2026-11-20T00:01:00Z",
        }
        await kueue_writes(hub, "job", conditions=[evicted])
        await publish(hub, east=95)
        await asyncio.sleep(SOON)
        assert await all_nominated(hub) == {"job": []}
        again = {**evicted, "status": "True", "lastTransitionTime": "2026-11-20T00:02:30Z"}
        await kueue_writes(hub, "job", conditions=[again])
        await asyncio.sleep(SOON)
        assert await all_nominated(hub) == {"job": ["east"]}


async def test_a_dry_run_writes_nothing() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52)
    await queue(hub, "job")
    version = (await hub.list(WORKLOAD)).resource_version
    async with dispatching(hub, dry_run=True):
        assert (await hub.list(WORKLOAD)).resource_version == version
        assert await events(hub) == []


async def test_names_of_the_add_on_and_of_cluster_profiles_are_understood() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52, north=10, west=94)
    for name, source in (
        ("fleet-east", {"kubeConfig": {"location": "x"}}),
        ("other", {"clusterProfileRef": {"name": "west"}}),
    ):
        spec = {"clusterSource": source}
        await hub.create(
            MULTI_KUEUE_CLUSTER, MULTI_KUEUE_CLUSTER.object(metadata={"name": name}, spec=spec)
        )
    clusters = {"spec": {"clusters": ["fleet-east", "other", "missing"]}}
    await hub.patch(MULTI_KUEUE_CONFIG, "fleet", clusters)
    await queue(hub, "job")
    async with dispatching(hub, at_once=9):
        message = await told(hub)
        assert message.startswith(
            "Nominated: other, fleet-east. Scores: other (94); fleet-east (52)."
        )
        assert "there is no MultiKueueCluster missing" in message
        await hub.patch(MANAGED_CLUSTER, "west", LOST)
        await asyncio.sleep(SOON)
        assert "Better, but not in" not in await told(hub)


@pytest.mark.fire(
    "no Workload is forgotten, whichever write of the dispatcher is its last",
    "a dispatcher killed before and after each of its writes",
)
@pytest.mark.parametrize("arrives", [False, True])
async def test_killed_at_each_write_it_goes_on(arrives: bool) -> None:
    at = 0
    while True:
        hub = await kueue_hub()
        await publish(hub, east=52, north=10, west=94)
        await add_room(hub, east=1, north=1, west=1)
        for name in ("a", "b", "c"):
            await queue(hub, name)
        at += 1
        dead = await one_life(hub, at, arrives=arrives)
        async with dispatching(hub):
            assert await all_nominated(hub) == {"a": ["west"], "b": ["east"], "c": ["north"]}
            assert [(await told(hub, name)).split(".")[0] for name in "abc"] == [
                "Nominated: west",
                "Nominated: east",
                "Nominated: north",
            ]
        if not dead:
            assert at > 6
            return


async def one_life(hub: KueueHub, at: int, *, arrives: bool) -> bool:
    """Let a dispatcher run until one of its writes; return whether it came so far."""
    killed = Killed(hub, at, arrives=arrives)
    async with dispatching(hub, killed):
        return killed.dead.is_set()


async def test_a_workload_deleted_meanwhile_does_not_hold_up_the_others() -> None:
    hub = await kueue_hub()
    await publish(hub, east=52)
    await queue(hub, "gone")
    await queue(hub, "stays")

    class Deleting(Faulty):
        def before(self, call: Call) -> None:
            if call.verb == "patch" and call.name == "gone" and call.kind == WORKLOAD:
                hub.server.delete(WORKLOAD, "gone", "team")

    async with dispatching(hub, Deleting(hub, lambda _: None)):
        assert await all_nominated(hub) == {"stays": ["east"]}
