"""Text of strangers is data: a marker in every text appears nowhere raw or unquoted."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import httpx
import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError

from dsf.api.conditions import Condition, merged
from dsf.kube.changes import Create
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    POLICY,
    Kind,
)
from mcp_server.results import (
    fleet_results,
    history_results,
    plan_results,
    tool_result,
    write_results,
)
from mcp_server.results.fleet_results import DiagnosisView, ScorerView, ScoresView, scores_view
from mcp_server.results.history_results import HistoryView
from mcp_server.results.plan_results import (
    ComparisonView,
    FollowView,
    compared_plan,
    follow_view,
    plan_view,
)
from mcp_server.results.tool_result import cleaned_texts, structured
from mcp_server.results.write_results import AppliedView, ResetView, applied_view, reset_view
from mcp_server.tools.registration import tool_results
from optimizer.domain.issue import Issue
from optimizer.domain.solution import Decision, Solution
from optimizer.follow.overview.fleet_overview import FleetOverview, WorkloadDescription
from optimizer.follow.overview.placement_answer import PlacementAnswer
from optimizer.follow.placement_status.landing_report import status_tables
from optimizer.plan.basis import Basis
from optimizer.plan.plan import Plan
from optimizer.plan.text import approval_questions
from optimizer.plan.text.tables import render
from optimizer.service.plan_writer import PlannedReset
from optimizer.twin.evaluation.figures import SimulationResult
from optimizer.twin.evaluation.report import table
from optimizer.wire.explanation import Explanation, Placed
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.plan_record import PlanRecord, PlanSummary
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import FieldProblem, RequestProblem
from optimizer.wire.result import (
    Applied,
    EnforcementChange,
    ResetResult,
    ScoreObject,
    Unplaced,
    WorkloadMove,
)
from optimizer.wire.rollout import RolloutStatus
from tests.house.marker import MARKER, WORDS, filled, forged_lines, raw, unquoted
from tests.mcp_server.service import POWER, Service, request, serving, wish

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "dynamic-scoring.open-cluster-management.io"


def _plan() -> Plan:
    placed = filled(Placed)
    return Plan(
        digest="d1",
        basis=Basis("b1"),
        request=OptimizeRequest(**request()),
        solution=Solution("Optimal", Decision(), 1.0, 1.0, 0.1, "highs"),
        policies={MARKER: f"{MARKER}, {MARKER}", "east": "all"},
        placements=(placed, placed.model_copy(update={"cluster": "east", "workload": "chat"})),
        unplaced=(filled(Unplaced).model_copy(update={"reason": "NoSupply"}),),
        issues=(Issue(reason="MissingScore", message=MARKER, device=MARKER),),
        manifests=(),
        changes=(Create(PLACEMENT, {"metadata": {"name": MARKER, "namespace": MARKER}}),),
        explanation=filled(Explanation),
        moves=(filled(WorkloadMove),),
        enforcement_changes=(filled(EnforcementChange),),
    )


@cache
def _texts() -> Mapping[str, str]:
    plan, record = _plan(), filled(PlanRecord)
    view = plan_view(plan, applicable=True, objects=True)
    problem = RequestProblem(
        status=409, reason="R", title="t", detail=MARKER, errors=(FieldProblem(MARKER, MARKER),)
    )
    return {
        "plan": plan_results.plan_text(plan, view, read_only=False),
        "question": approval_questions.plan_question(plan, MARKER),
        "rollout question": approval_questions.rollout_question(
            "resume", filled(RolloutStatus), MARKER
        ),
        "reset question": write_results.reset_question(
            MARKER, PlannedReset(MARKER, MARKER, "d1", writes=plan.changes), filled(PlacementStatus)
        ),
        "planned reset": write_results.planned_reset_text(
            filled(ResetView),
            filled(ResetView),
            filled(PlacementStatus),
            PlannedReset(MARKER, MARKER, "d1", writes=()),
        ),
        "explanation": plan_results.explanation_text(filled(PlacementAnswer)),
        "comparison": plan_results.comparison_text(filled(ComparisonView), applicable=True),
        "follow": plan_results.follow_text(filled(FollowView), MARKER),
        "overview": fleet_results.overview_text(filled(FleetOverview), NOW),
        "scores": fleet_results.scores_text(filled(ScoresView), NOW),
        "scorer": fleet_results.scorer_text(filled(ScorerView), NOW),
        "workload": fleet_results.workload_text(filled(WorkloadDescription)),
        "diagnosis": fleet_results.diagnosis_text(filled(DiagnosisView), MARKER),
        "applied": write_results.applied_text(
            filled(AppliedView).model_copy(update={"repeated": False})
        ),
        "reset": write_results.reset_text(filled(ResetView)),
        "simulation": table(
            cleaned_texts(filled(SimulationResult).model_copy(update={"notes": ()}))
        ),
        "history": history_results.history_text(
            filled(HistoryView), [record, filled(PlanSummary)], record
        ),
        "not applied": history_results.not_applied_text(filled(HistoryView), plan),
        "objects": history_results.objects_text(
            [{"kind": "Policy", "metadata": {"name": MARKER, "annotations": {MARKER: MARKER}}}]
        ),
        "refusal": tool_result.refusal(problem),
        "refusal without fields": tool_result.refusal(
            RequestProblem(status=409, reason="R", title="t", detail=MARKER)
        ),
    }


@pytest.mark.parametrize("where", list(_texts()))
def test_a_model_reads_every_text_of_others_in_quotes(where: str) -> None:
    text = _texts()[where]
    assert WORDS in text
    assert not unquoted(text)
    assert not raw(text)
    assert not forged_lines(text)


def test_structured_content_has_no_invisible_characters() -> None:
    plan = _plan()
    scores = (filled(ScoreObject),)
    for view in (
        plan_view(plan, applicable=True, objects=True),
        compared_plan(MARKER, plan),
        cleaned_texts(scores_view([], scores)),
        applied_view(filled(Applied)),
        reset_view("default", filled(ResetResult)),
        follow_view(filled(PlacementStatus), filled(RolloutStatus)),
        cleaned_texts(filled(FleetOverview)),
    ):
        content = json.dumps(view.model_dump(mode="json"), ensure_ascii=False)
        assert WORDS in content
        assert not raw(content)


SENTENCES = {"message", "failures", "detail", "limit", "asked", "not_computed", "title", "rule"}
OURS = SENTENCES | {"answer", "next", "issue", "in_force", "rollout", "missing_right"}
OURS |= {"digest", "current", "namespace", "checked", "omitted", "writes", "reason"}
OURS |= {"notes", "unreadable", "kind", "constraint", "constraints", "annotation", "commands"}
OURS |= {"not_counted"}
"""Fields with words of this program, which quote what others wrote, or what the caller said."""


@pytest.mark.parametrize("result", tool_results().values(), ids=lambda result: result.__name__)
def test_structured_content_names_every_field_with_text_of_others(result: type[Any]) -> None:
    content = structured(filled(result))
    named = set(content.pop("untrusted"))
    assert {field for field, text in _leaves(content) if WORDS in text} - named <= OURS
    assert named <= {field for field, text in _leaves(content) if WORDS in text}


def _leaves(part: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text of a JSON value, keys of free maps too, with the field that holds it."""
    if isinstance(part, dict):
        for name, item in part.items():
            if WORDS in name:
                yield field, name
            yield from _leaves(item, field if WORDS in name else name)
    elif isinstance(part, list):
        for item in part:
            yield from _leaves(item, field)
    elif isinstance(part, str):
        yield field, part


def test_a_terminal_gets_the_plan_escaped() -> None:
    shown = render(_plan())
    assert WORDS in shown
    assert "\\u202e\\u200b\\x1b[31m" in shown
    assert not raw(shown)
    # No text of others ends a line: all tables but one have one row of it.
    assert all(line.count(WORDS) != 1 for line in shown.splitlines() if line.startswith(" plan"))


def test_a_terminal_gets_the_placement_status_escaped() -> None:
    shown = status_tables(filled(PlacementStatus))
    assert WORDS in shown
    assert not raw(shown)


def test_conditions_have_no_invisible_characters() -> None:
    found = merged([], [Condition("Ready", "False", "R", MARKER)], now="2026-01-01T00:00:00Z")
    assert not raw(found[0]["message"])
    assert WORDS in found[0]["message"]
    assert merged(found, [Condition("Ready", "False", "R", found[0]["message"])], now="") == found


async def _write(service: Service, kind: Kind, name: str, namespace: str, patch: Any) -> None:
    status = {"status": patch["status"]} if "status" in patch else None
    plain = {key: value for key, value in patch.items() if key != "status"}
    if plain:
        await service.hub.patch(kind, name, plain, namespace)
    if status:
        await service.hub.patch(kind, name, status, namespace, subresource="status")


def _annotated(**texts: Any) -> dict[str, Any]:
    named = {f"{NAME}/{name.replace('_', '-')}": text for name, text in texts.items()}
    return {"metadata": {"annotations": {**named, "note": MARKER}}}


HANGS_SECONDS = 60
QUICK = frozenset({2, 5, 7, 9, 10})
"""The cases of SAID in the quick suite: at least one of each kind of object."""
SUPPLIES = [{"kind": "gpu", "device": MARKER, "amount": 9}]
SAID: list[tuple[Kind, str, str, dict[str, Any]]] = [
    (
        POLICY,
        "policy-disable-mig-worker01",
        "default",
        _annotated(supplies=json.dumps(SUPPLIES), uses=MARKER),
    ),
    (POLICY, "policy-enable-mig-2g-worker01", "default", _annotated(supplies=MARKER, pool=MARKER)),
    (
        POLICY,
        "policy-enable-mig-3g-worker01",
        "default",
        _annotated(supplies=json.dumps(SUPPLIES), uses=json.dumps({MARKER: 1})),
    ),
    (
        POLICY,
        "policy-enable-mig-2g-worker02",
        "default",
        _annotated(layouts=MARKER, cluster=MARKER),
    ),
    (MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default", _annotated(affinity=MARKER)),
    (
        MANIFEST_WORK_REPLICA_SET,
        "mwrs-app02",
        "default",
        _annotated(requests=json.dumps({MARKER: 1}), unknown=MARKER),
    ),
    (
        MANIFEST_WORK_REPLICA_SET,
        "mwrs-app02",
        "default",
        {"spec": {"placementRefs": [{"name": MARKER}]}},
    ),
    (MANAGED_CLUSTER, "worker01", "", _annotated(allocatable=MARKER)),
    (MANAGED_CLUSTER, "worker02", "", {"status": {"allocatable": {MARKER: "1"}}}),
    (
        ADD_ON_PLACEMENT_SCORE,
        "example-performance-score",
        "worker01",
        {"status": {"scores": [{"name": f"app01;{MARKER}", "value": 90}]}},
    ),
    (
        ADD_ON_PLACEMENT_SCORE,
        "example-performance-score",
        "worker02",
        {
            "status": {
                "conditions": [
                    {
                        "type": "Published",
                        "status": "False",
                        "reason": "R",
                        "message": MARKER,
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            }
        },
    ),
]


def _sentences(part: Any, field: str = "") -> Iterator[str]:
    """Yield what a response says in words; names of devices and such are data in JSON."""
    if isinstance(part, dict):
        for name, item in part.items():
            yield from _sentences(item, name)
    elif isinstance(part, list):
        for item in part:
            yield from _sentences(item, field)
    elif isinstance(part, str) and field in SENTENCES:
        yield part


@pytest.mark.parametrize(
    "number",
    [
        number if number in QUICK else pytest.param(number, marks=pytest.mark.exhaustive)
        for number in range(len(SAID))
    ],
)
async def test_what_stands_on_the_hub_reaches_a_model_in_quotes(number: int) -> None:
    kind, name, namespace, patch = SAID[number]
    shown: list[str] = []

    async def asked(message: str, *_: Any) -> ElicitResult[Any]:
        shown.append(message)
        return ElicitResult(action="decline")

    async with (
        serving(read_only=False) as service,
        Client(service.mcp, elicitation_handler=asked) as client,
    ):
        await _write(service, kind, name, namespace, patch)
        for tool, arguments in (
            ("list_scores", {}),
            ("follow_rollout", {"namespace": "default"}),
            ("fleet_overview", {}),
            ("describe_scorer", {"name": POWER}),
            ("describe_workload", {"name": "app02"}),
            ("diagnose", {}),
            ("compare_plans", {"objectives": ["power", "performance"]}),
            ("explain_placement", {"workload": "mwrs-app02", "objective": "power"}),
            ("plan_placement", wish(explain=True)),
        ):
            try:
                answer = await client.call_tool(tool, arguments)
            except ToolError as error:
                shown.append(str(error))
                continue
            shown.append(answer.content[0].text)
            assert not raw(json.dumps(answer.structured_content, ensure_ascii=False))
            if tool == "plan_placement" and answer.structured_content["writes"]:
                digest = answer.structured_content["digest"]
                with pytest.raises(ToolError, match="did not confirm"):
                    await client.call_tool("apply_plan", {"digest": digest})
        async with httpx.AsyncClient(trust_env=False, timeout=HANGS_SECONDS) as http:
            answer = await http.post(
                f"{service.url}/optimize", json={**request(), "explain": True, "dryRun": True}
            )
            shown += _sentences(answer.json())
    assert len(shown) >= 2
    for text in shown:
        assert not unquoted(text)
        assert not raw(text)
