"""What a user may plan, apply and reset, and the lines that this leaves in the audit log."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from dsf.api.names import GENERATED_LABEL
from dsf.kube.access_reviews import UserInfo, impersonated, right
from dsf.kube.changes import Create
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    LEASE,
    NAMESPACE,
    PLACEMENT,
    POLICY,
)
from optimizer.operations.access.authorized_optimizer import Access, AuthorizedOptimizer
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.operations.access.rights import changing_rights, status_rights, writing_rights
from optimizer.operations.fleet import fleet, fleet_facts, placement_status
from optimizer.operations.planning import make_plan
from optimizer.operations.recorded_plans import list_plans, make_rollback
from optimizer.operations.rollouts import change_rollout, list_rollouts
from optimizer.operations.scores import list_scores
from optimizer.operations.writes import apply_plan, plan_reset, reset
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request import ResetRequest, RollbackRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied, ResetResult
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.read_only import ReadOnly
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.optimizer.build import NOW, request
from tests.optimizer.hubs import hub_of, names
from tests.optimizer.operations.access.callers import READER, TOKENS, WRITER, reads, table, writes


async def served(
    user: UserInfo | None, hub: EmbeddedHub | None = None, access: AccessTable | None = None
) -> tuple[AuthorizedOptimizer, EmbeddedHub]:
    hub = hub or await hub_of(access=access or table())
    return AuthorizedOptimizer(
        Optimizer(hub, now=lambda: NOW), user, Access(DelegatedAuth(hub))
    ), hub


async def planned(optimizer: AuthorizedOptimizer) -> Plan:
    plan = await make_plan(optimizer, request())
    assert isinstance(plan, Plan)
    return plan


def audited(caplog: pytest.LogCaptureFixture) -> list[tuple[str, ...]]:
    fields = ("user", "action", "namespace", "digest", "outcome")
    records: list[Any] = [item for item in caplog.records if item.name == "audit"]
    return [tuple(getattr(record, field) for field in fields) for record in records]


async def test_each_write_leaves_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    writer, hub = await served(WRITER)
    plan = await planned(writer)
    assert audited(caplog) == []
    assert isinstance(await apply_plan(writer, plan), Applied)
    reader, _ = await served(READER, hub)
    refused = await reset(reader, ResetRequest(namespace="default"))
    assert isinstance(refused, RequestProblem)
    assert refused.status == 403
    assert isinstance(await reset(writer, ResetRequest(namespace="default")), ResetResult)
    assert audited(caplog) == [
        (WRITER.name, "apply", "default", plan.digest, f"applied {len(plan.changes)}, failed 0"),
        (READER.name, "reset", "default", "", "Forbidden"),
        (WRITER.name, "reset", "default", "", f"deleted {len(plan.changes)}, failed 0"),
    ]


@pytest.mark.parametrize("may_read", [True, False])
async def test_only_who_may_read_a_namespace_is_told_that_it_does_not_exist(may_read: bool) -> None:
    rights = [*reads("nope"), *writes("nope")]
    rights += [right("get", NAMESPACE, "nope")] if may_read else []
    optimizer, _ = await served(WRITER, access=AccessTable(TOKENS, {WRITER.name: rights}))
    asked: Any
    for asked in (
        fleet(optimizer, "nope"),
        placement_status(optimizer, "nope"),
        list_plans(optimizer, "nope"),
        list_rollouts(optimizer, "nope"),
        plan_reset(optimizer, ResetRequest(namespace="nope")),
    ):
        answer: Any = await asked
        told = isinstance(answer, RequestProblem) and answer.reason == "UnknownNamespace"
        assert told == may_read, answer
    assert isinstance(await fleet_facts(optimizer, "nope"), RequestProblem)


async def test_a_user_without_rights_is_refused_before_a_lease_is_taken() -> None:
    reader, hub = await served(READER)
    plan = await planned(reader)
    for outcome in (
        await apply_plan(reader, plan),
        await reset(reader, ResetRequest(namespace="default")),
        await make_plan(reader, request(), to_apply=True),
    ):
        assert isinstance(outcome, RequestProblem)
        missing = "create placements.cluster.open-cluster-management.io in namespace default"
        assert (outcome.status, missing in outcome.detail) == (403, True)
    assert await names(hub, LEASE) == []


async def test_who_did_not_say_its_name_is_refused() -> None:
    nobody, _ = await served(None)
    outcomes = (
        await list_scores(nobody),
        await make_plan(nobody, request()),
        await reset(nobody, ResetRequest(namespace="default")),
    )
    assert [out.status for out in outcomes if isinstance(out, RequestProblem)] == [401] * 3


async def test_without_access_control_a_caller_has_the_rights_of_the_process() -> None:
    hub = await hub_of()
    optimizer = AuthorizedOptimizer(Optimizer(hub, now=lambda: NOW))
    assert isinstance(await apply_plan(optimizer, await planned(optimizer)), Applied)


async def test_scores_of_a_cluster_need_a_right_in_its_namespace_alone() -> None:
    scores = right("list", ADD_ON_PLACEMENT_SCORE, "worker01")
    one, _ = await served(READER, access=AccessTable({}, {READER.name: [scores]}))
    assert not isinstance(await list_scores(one, namespace="worker01"), RequestProblem)
    for refused in (await list_scores(one, namespace="worker02"), await list_scores(one)):
        assert isinstance(refused, RequestProblem)


async def test_scores_are_described_for_users_who_may_list_scorers() -> None:
    scorer = {
        "metadata": {"name": "power", "namespace": "default"},
        "spec": {
            "description": "watts of a device",
            "configURL": "http://scorer.example/config",
            "configSyncMode": "None",
            "scoreDimensionFormat": "${node};${device}",
            "scoring": {"params": {"name": "performance"}},
        },
    }
    lists = right("list", ADD_ON_PLACEMENT_SCORE)
    described = {}
    for rights in ([lists], [lists, right("list", DYNAMIC_SCORER)]):
        reader, hub = await served(READER, access=AccessTable({}, {READER.name: rights}))
        await hub.create(DYNAMIC_SCORER, scorer)
        found = await list_scores(reader)
        assert not isinstance(found, RequestProblem)
        assert found.items
        described[len(rights)] = {(s.description, s.score_dimension_format) for s in found.items}
    assert described[1] == {("", "")}
    assert ("watts of a device", "${node};${device}") in described[2]


async def test_a_reset_that_deletes_policies_needs_the_right_to() -> None:
    writer, hub = await served(WRITER)
    await hub.patch(
        POLICY,
        (await names(hub, POLICY))[0],
        {"metadata": {"labels": {GENERATED_LABEL: "true"}}},
        "default",
    )
    before = await names(hub, POLICY)
    refused = await reset(writer, ResetRequest(namespace="default"))
    assert isinstance(refused, RequestProblem)
    assert "delete policies.policy.open-cluster-management.io in namespace default" in (
        refused.detail
    )
    assert await names(hub, POLICY) == before


def test_changes_need_rights_for_their_kinds() -> None:
    change = Create(POLICY, {"metadata": {"name": "mig", "namespace": "ns"}})
    assert set(changing_rights("ns", [change])) == {
        *writing_rights("ns"),
        right("create", POLICY, "ns"),
        right("delete", POLICY, "ns"),
    }


async def test_a_placement_status_needs_the_rights_to_read_what_it_shows() -> None:
    reader, _ = await served(READER)
    refused = await placement_status(reader, "default")
    assert isinstance(refused, RequestProblem)
    missing = "list placementdecisions.cluster.open-cluster-management.io in namespace default"
    assert (refused.status, missing in refused.detail) == (403, True)
    rights = {READER.name: list(status_rights("default"))}
    allowed, _ = await served(READER, await hub_of(access=AccessTable(TOKENS, rights)))
    assert isinstance(await placement_status(allowed, "default"), PlacementStatus)


async def test_with_impersonation_the_caller_writes_and_the_optimizer_reads() -> None:
    hub = await hub_of(access=table())
    as_caller: list[tuple[UserInfo, Counting]] = []

    def impersonate(user: UserInfo) -> Counting:
        as_caller.append((user, Counting(hub)))
        return as_caller[-1][1]

    class LeasesOnly(ReadOnly):
        """Refuses every write of the optimizer itself, except its Lease and its questions."""

        def before(self, call: Any) -> None:
            if call.kind.resource == PLACEMENT.resource:
                super().before(call)

    own = LeasesOnly(hub)
    access = Access(DelegatedAuth(hub), impersonate)
    writer = AuthorizedOptimizer(Optimizer(own, now=lambda: NOW), WRITER, access)
    plan = await planned(writer)
    assert isinstance(await apply_plan(writer, plan), Applied)
    assert isinstance(await reset(writer, ResetRequest(namespace="default")), ResetResult)
    assert [user for user, _ in as_caller] == [WRITER, WRITER]
    written = [kube.writes for _, kube in as_caller]
    assert written == [len(plan.changes)] * 2
    resources = {resource for _, kube in as_caller for _, resource in kube.calls}
    assert resources == {
        "placements.cluster.open-cluster-management.io",
        "placementbindings.policy.open-cluster-management.io",
    }


async def test_a_read_only_optimizer_refuses_each_write_and_writes_it_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    hub = await hub_of(access=table())
    optimizer = Optimizer(hub, now=lambda: NOW)
    closed = AuthorizedOptimizer(optimizer, WRITER, Access(DelegatedAuth(hub)), read_only=True)
    plan = await planned(closed)
    back = RollbackRequest(namespace="default")
    outcomes = (
        await apply_plan(closed, plan),
        await reset(closed, ResetRequest(namespace="default")),
        await make_plan(closed, request(), to_apply=True),
        await make_rollback(closed, back, to_apply=True),
        await change_rollout(closed, "default", "default", "undo"),
    )
    assert {getattr(outcome, "reason", "") for outcome in outcomes} == {"ReadOnly"}
    assert [line[-1] for line in audited(caplog)] == ["ReadOnly"] * len(outcomes)


async def test_who_may_write_and_see_nothing_is_told_nothing_by_a_write() -> None:
    """A reset tells what runs, and a rollout tells its steps: kubectl would need rights to list."""
    blind = AccessTable(TOKENS, {WRITER.name: list(writing_rights("default"))})
    writer, hub = await served(WRITER, await hub_of(access=blind))
    for outcome, missing in (
        (await reset(writer, ResetRequest(namespace="default")), "list manifestworkreplicasets"),
        (await change_rollout(writer, "default", "default", "pause"), "list placementplans"),
    ):
        assert isinstance(outcome, RequestProblem)
        assert (outcome.reason, missing in outcome.detail) == ("Forbidden", True)
    assert await names(hub, LEASE) == []


async def test_a_server_that_writes_as_its_callers_is_nobody_of_the_control_plane() -> None:
    manager = UserInfo("system:kube-controller-manager")
    hub = await hub_of(access=AccessTable(rights={manager.name: [*reads("default")]}))
    access = Access(DelegatedAuth(hub), lambda _: hub)
    caller = AuthorizedOptimizer(Optimizer(hub, now=lambda: NOW), manager, access)
    assert await planned(caller)
    refused = await make_plan(caller, request(), to_apply=True)
    assert isinstance(refused, RequestProblem)
    assert (refused.status, "no user of Kubernetes itself" in refused.detail) == (403, True)


@pytest.mark.parametrize(
    ("groups", "kept"),
    [
        (("system:masters", "team"), ("team",)),
        (("system:serviceaccounts", "system:serviceaccounts:default"), None),
        (("system:authenticated", "system:nodes"), ("system:authenticated",)),
        (("system-like", "oidc:system:masters"), None),
    ],
)
def test_callers_write_without_the_groups_that_kubernetes_keeps_for_itself(
    groups: tuple[str, ...], kept: tuple[str, ...] | None
) -> None:
    user = UserInfo("system:serviceaccount:default:planner", groups=groups)
    assert impersonated(user) == replace(user, groups=groups if kept is None else kept)
