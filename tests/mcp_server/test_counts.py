"""Counts are of the whole, and each list that is cut is followed by how many more there are."""

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from dsf.kube.changes import Create, Delete
from dsf.kube.kinds import PLACEMENT
from mcp_server.results import fleet_results, plan_results, tool_result, write_results
from mcp_server.results.fleet_results import DiagnosisView, ScoresView
from mcp_server.results.plan_results import compared_plan, follow_view, plan_view
from mcp_server.results.write_results import applied_view, planned_reset_view, reset_view
from mcp_server.tools.fleet_tools import FINDINGS_SHOWN, OVERVIEW_ITEMS, SCORES_SHOWN
from mcp_server.tools.hub_calls import paged
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Decision, Solution
from optimizer.follow.overview.findings.finding import FleetFinding
from optimizer.follow.overview.fleet_overview import (
    FleetOverview,
    WorkloadDescription,
    WorkloadOverview,
)
from optimizer.follow.overview.score_overview import ScoreOverview
from optimizer.plan.basis import Basis
from optimizer.plan.plan import Plan
from optimizer.plan.text import approval_questions
from optimizer.service.plan_writer import PlannedReset
from optimizer.wire.base import ResultPart
from optimizer.wire.placement_status import (
    BoundPolicy,
    PlacementDrift,
    PlacementStatus,
    WorkloadLanding,
)
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import UNPROCESSABLE, FieldProblem, RequestProblem
from optimizer.wire.result import (
    Applied,
    EnforcementChange,
    FailedChange,
    ObjectRef,
    PlannedChange,
    Removal,
    ResetResult,
    WorkloadMove,
    WorkloadPlace,
)
from tests.mcp_server.service import request

ALL = 143
"""More than any list shows."""
LANDED = 51

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def names(prefix: str) -> list[str]:
    return [f"{prefix}{number:03}" for number in range(ALL)]


def page(text: Callable[[Any], str], view: ResultPart, most: int, offset: int = 0) -> str:
    return str(paged(text, view, most, offset).content[0].text)  # type: ignore[union-attr]


def plan() -> Plan:
    place = WorkloadPlace(cluster="c", device="d", scores={})
    return Plan(
        digest="d1",
        basis=Basis("b1"),
        request=OptimizeRequest(**request()),
        solution=Solution("Optimal", Decision(), 1.0, 1.0, 0.1, "highs"),
        policies={},
        placements=(),
        unplaced=(),
        issues=tuple(Issue(reason="MissingScore", message=name) for name in names("issue")),
        manifests=(),
        changes=tuple(
            Create(PLACEMENT, {"metadata": {"name": name, "namespace": "n"}})
            for name in names("object")
        ),
        removals=tuple(
            Removal(workload=name, clusters=(), message=f"removes {name}")
            for name in names("removal")
        ),
        moves=tuple(
            WorkloadMove(workload=name, action="stops", before=(place,), after=(), gain={})
            for name in names("move")
        ),
        enforcement_changes=tuple(
            EnforcementChange(cluster=name, before=(), after=()) for name in names("cluster")
        ),
    )


def status() -> PlacementStatus:
    return PlacementStatus(
        namespace="n",
        landed=False,
        workloads=tuple(
            WorkloadLanding(
                workload=name,
                cluster="c",
                state="Landed" if number < LANDED else "Planned",
                reason="r",
                message="m",
            )
            for number, name in enumerate(names("landing"))
        ),
        policies=tuple(BoundPolicy(cluster=name, policy="p") for name in names("bound")),
        drift=tuple(
            PlacementDrift(reason="r", kind="Placement", name=name, message="m")
            for name in names("drift")
        ),
        unbound_policies=(),
    )


def findings() -> tuple[FleetFinding, ...]:
    return tuple(
        FleetFinding(stage="score", name=name, reason="r", message="m", next="n")
        for name in names("finding")
    )


def scores() -> tuple[ScoreOverview, ...]:
    return tuple(
        ScoreOverview(
            name=name,
            clusters=1,
            entries=1,
            expired=0,
            valid_until=None,
            mean=None,
            best=(),
            worst=(),
        )
        for name in names("score")
    )


def overview() -> FleetOverview:
    return FleetOverview(
        namespace="n",
        ready_clusters=ALL,
        total_clusters=ALL,
        total_workloads=ALL,
        placed_workloads=0,
        total_findings=ALL,
        clusters=(),
        workloads=tuple(WorkloadOverview(name=name, places={}) for name in names("workload")),
        scores=scores(),
        findings=findings(),
    )


def view(objects: bool = False) -> Any:
    return plan_view(plan(), applicable=True, objects=objects)


def failed(action: Any = "create") -> tuple[FailedChange, ...]:
    return tuple(
        FailedChange(kind="K", namespace="n", name=name, action=action, message="m")
        for name in names("failure")
    )


def written() -> Applied:
    made = tuple(
        PlannedChange(kind="K", namespace="n", name=name, action="create") for name in names("made")
    )
    return Applied(digest="d", applied=made, failed=failed())


def after_reset() -> ResetResult:
    gone = tuple(ObjectRef(kind="K", namespace="n", name=name) for name in names("gone"))
    return ResetResult(deleted=gone, failed=failed("delete"))


def problem() -> RequestProblem:
    errors = tuple(FieldProblem(name, "m") for name in names("field"))
    return RequestProblem(status=UNPROCESSABLE, reason="R", title="t", detail="d", errors=errors)


def planned_reset(offset: int = 0) -> str:
    whole = planned_reset_view(reset())
    text = partial(write_results.planned_reset_text, whole=whole, status=status(), planned=reset())
    return page(text, whole, tool_result.LIST_LIMIT, offset)


def reset() -> PlannedReset:
    writes = tuple(Delete(i.kind, i.name, i.namespace) for i in plan().changes)
    return PlannedReset("n", None, "d1", writes=writes)


TEXTS: dict[str, tuple[Callable[[], str], dict[str, int]]] = {
    "plan": (
        lambda: plan_results.plan_text(plan(), view(), read_only=False),
        {"removal": ALL, "move": ALL, "cluster": ALL, "issue": ALL},
    ),
    "question": (
        lambda: approval_questions.plan_question(plan(), "hub"),
        {"removal": ALL, "move": ALL, "cluster": ALL, "issue": ALL},
    ),
    "follow": (
        lambda: plan_results.follow_text(follow_view(status(), None), "default"),
        {"landing": ALL},
    ),
    "overview": (
        lambda: page(partial(fleet_results.overview_text, now=NOW), overview(), OVERVIEW_ITEMS),
        {"score": ALL, "workload": ALL, "finding": ALL},
    ),
    "scores": (
        lambda: page(
            partial(fleet_results.scores_text, now=NOW), ScoresView(scores=scores()), SCORES_SHOWN
        ),
        {"score": ALL},
    ),
    "diagnosis": (
        lambda: page(
            partial(fleet_results.diagnosis_text, name=""),
            DiagnosisView(findings=findings(), total=ALL, checked={}),
            FINDINGS_SHOWN,
        ),
        {"finding": ALL},
    ),
    "applied": (lambda: write_results.applied_text(applied_view(written())), {"failure": ALL}),
    "reset": (
        lambda: write_results.reset_text(reset_view("n", after_reset())),
        {"gone": ALL, "failure": ALL},
    ),
    "planned reset": (planned_reset, {"object": ALL, "bound": ALL, "landing": ALL}),
    "reset question": (
        lambda: write_results.reset_question("hub", reset(), status()),
        {"object": ALL, "bound": ALL, "landing": ALL},
    ),
    "refusal": (lambda: tool_result.refusal(problem()), {"field": ALL}),
}


@pytest.mark.parametrize("where", TEXTS)
def test_what_a_text_names_and_the_rest_that_it_counts_are_all(where: str) -> None:
    make, lists = TEXTS[where]
    text = make()
    for prefix, whole in lists.items():
        named = list(re.finditer(rf"\b{prefix}\d{{3}}\b", text))
        what = "workload" if prefix == "landing" else prefix
        rest = re.search(rf"and (\d+) more|Left out: .*?(\d+) {what}s", text[named[-1].end() :])
        assert rest, (prefix, text)
        assert len({item[0] for item in named}) + int(rest[1] or rest[2]) == whole, (prefix, text)


@pytest.mark.parametrize("where", TEXTS)
def test_a_text_names_all_of_short_lists_and_counts_no_rest(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ALL", 2)
    monkeypatch.setattr(sys.modules[__name__], "LANDED", 0)
    make, lists = TEXTS[where]
    text = make()
    assert not re.search(r"\d more|Left out|-1", text)
    for prefix in lists:
        assert {*re.findall(rf"\b{prefix}\d{{3}}\b", text)} == set(names(prefix)), text


def test_pages_of_how_far_a_plan_is_name_each_placement_once() -> None:
    found = list[str]()
    for offset in range(0, ALL, 12):
        shown = follow_view(status(), None, offset=offset)
        found += [item.workload for item in shown.status.workloads]
        following = f"Next page: offset {offset + 12}." in plan_results.follow_text(
            shown, "default", offset
        )
        assert following is (offset + 12 < ALL)
    assert sorted(found) == names("landing")


def test_pages_of_how_far_a_plan_is_list_each_policy_that_nothing_binds_once() -> None:
    free, found = status().model_copy(update={"unbound_policies": (*names("free"),)}), list[str]()
    for offset in range(0, ALL, 12):
        shown = follow_view(free, None, offset=offset)
        found += shown.status.unbound_policies
        text = plan_results.follow_text(shown, "default", offset)
        assert ("unbound_policies" in text) is (offset + 12 < ALL)
    assert sorted(found) == names("free")


def test_pages_of_a_reset_name_each_object_and_count_all() -> None:
    found, offset = list[str](), 0
    while True:
        told = planned_reset(offset)
        assert f"deletes {ALL} generated objects" in told
        found += re.findall(r"\bobject\d{3}\b", told)
        following = re.search(r"Next page: offset (\d+)\.", told)
        if not following:
            break
        offset = int(following[1])
    assert found == names("object")
    assert offset


def test_pages_of_a_workload_name_each_of_its_places_once() -> None:
    places = tuple(
        WorkloadLanding(workload="w", cluster=name, state="Planned", reason="r", message="m")
        for name in names("place")
    )
    one = WorkloadDescription(
        workload="w", namespace="n", requests={}, constraints={}, placement="p", places=places,
        policies=(), findings=(),
    )  # fmt: skip
    found, offset = list[str](), 0
    while True:
        told = page(fleet_results.workload_text, one, 8, offset)
        found += re.findall(r"^On (place\d{3}):", told, re.MULTILINE)
        following = re.search(r"Next page: offset (\d+)\.", told)
        if following is None:
            break
        offset = int(following[1])
    assert found == names("place")


def test_the_counts_of_a_text_are_of_the_whole() -> None:
    assert f"{LANDED} of {ALL} placements" in TEXTS["follow"][0]()
    assert f"Stop {ALL}, move 0, start 0 of {ALL} workloads" in TEXTS["question"][0]()
    assert f"create {ALL}" in TEXTS["question"][0]()
    assert f"{ALL} findings" in TEXTS["diagnosis"][0]()
    assert f"0 of {ALL} workloads placed, {ALL} findings" in TEXTS["overview"][0]()
    assert f"Applied {ALL} changes" in TEXTS["applied"][0]()
    assert f"Deleted {ALL} generated objects" in TEXTS["reset"][0]()
    assert f"deletes {ALL} generated objects" in TEXTS["planned reset"][0]()


def test_structured_results_say_how_many_items_of_each_list_they_leave_out() -> None:
    shown = view(objects=True)
    for name in ("moves", "enforcement_changes", "issues", "objects"):
        assert len(getattr(shown, name)) + shown.omitted[name] == ALL
    assert shown.writes == {"create": ALL}
    followed = follow_view(status(), None)
    for name in ("workloads", "policies", "drift"):
        assert len(getattr(followed.status, name)) + followed.omitted[name] == ALL
    assert (followed.placed, followed.landed) == (ALL, LANDED)
    row = compared_plan("o", plan())
    assert len(row.places) + row.omitted == ALL
    assert row.changed_clusters == ALL
    made, gone = applied_view(written()), reset_view("n", after_reset())
    for part, names_ in ((made, ("applied", "failed")), (gone, ("deleted", "failed"))):
        for name in names_:
            assert len(getattr(part, name)) + part.omitted[name] == ALL
    assert len(planned_reset_view(reset()).goes) == ALL
