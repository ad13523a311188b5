"""Recorded plans as the HTTP API, the command line and MCP tools show them."""

from collections.abc import Iterable, Mapping
from typing import Any

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import UntrustedName
from dsf.cli.output import TextTable
from optimizer.follow.record.content import RecordContent
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.model.wire_values import assignment_value, policy_value
from optimizer.plan.plan import Plan, result
from optimizer.wire.plan_record import PlanRecord, PlanSummary, RollbackResult, ScoreVersion
from optimizer.wire.request_problem import NOT_FOUND, RequestProblem
from optimizer.wire.result import Applied


def plan_summary(record: RecordedPlan) -> PlanSummary:
    """Return a recorded plan without its content."""
    return PlanSummary(**_summary(record))


def plan_record(record: RecordedPlan) -> PlanRecord:
    """Return a recorded plan as a whole."""
    found, scores = record.content(), record.spec.scores
    content = found if isinstance(found, RecordContent) else None
    return PlanRecord(
        **_summary(record),
        request=dict(content.request) if content else {},
        policies=tuple(map(policy_value, content.policies)) if content else (),
        assignments=tuple(map(assignment_value, content.assignments)) if content else (),
        unplaced=content.unplaced if content else (),
        objects=content.objects if content else (),
        changes=content.changes if content else (),
        scores=scores.count if scores else 0,
        score_versions=tuple(
            ScoreVersion(**item.model_dump()) for item in (scores and scores.versions) or ()
        ),
    )


def rollback_result(made: Plan, applied: Applied | None) -> RollbackResult:
    """Return the answer of POST /rollback; `applied` is None for a dry run."""
    if made.rollback is None:
        raise ValueError("the plan restores none")
    return RollbackResult(**dict(result(made, applied)), **made.rollback.model_dump())


def unknown_digest(namespace: str) -> RequestProblem:
    """Return the problem of a digest that no recorded plan has."""
    return RequestProblem(
        status=NOT_FOUND,
        reason="UnknownPlan",
        title="The plan is not recorded",
        detail=f"no recorded plan in namespace {namespace} has this digest; GET /plans lists them",
    )


def _summary(record: RecordedPlan) -> Mapping[str, Any]:
    spec, failed, latest = record.spec, record.solver_failure, record.latest
    return {
        "name": record.name,
        "optimization": spec.optimization,
        "revision": spec.revision,
        "digest": spec.digest,
        "request_digest": spec.request_digest,
        "requested_by": spec.requested_by or "",
        "created": record.created,
        "phase": record.phase,
        "reason": latest.reason if latest else "",
        "message": latest.message if latest else "",
        "solver_failure": failed.message if failed else "",
        "objective": spec.objective,
        "bound": spec.bound,
        "gap": spec.gap,
        "created_objects": spec.changes.create if spec.changes else 0,
        "patched_objects": spec.changes.patch if spec.changes else 0,
        "deleted_objects": spec.changes.delete if spec.changes else 0,
        "moves": spec.changes.moves if spec.changes else None,
        "first_placements": spec.changes.first_placements if spec.changes else None,
        "unplaced_workloads": spec.changes.unplaced if spec.changes else None,
        "restored_revision": spec.rollback.to_revision if spec.rollback else None,
        "intact": record.problem is None,
    }


_COLUMNS = (
    "optimization",
    "revision",
    "phase",
    "objective",
    "gap",
    "changes",
    "requested by",
    "applied",
    "digest",
    "message",
)

DIGEST_SHOWN = 12
"""Characters of a digest in a table: enough to tell plans apart."""


def plans_table(namespace: str, plans: Iterable[PlanSummary]) -> str:
    """Return the plans of a namespace as a table, and why solvers failed; or a sentence."""
    listed = list(plans)
    rows = [
        (
            f"{item.optimization}",
            f"{item.revision}",
            item.phase if item.intact else f"{item.phase} (not as it was written)",
            f"{item.objective:g}",
            "-" if item.gap is None else f"{item.gap:.2%}",
            f"+{item.created_objects} ~{item.patched_objects} -{item.deleted_objects}",
            f"{item.requested_by}" or "-",
            rfc3339(item.created) if item.created else "-",
            item.digest[:DIGEST_SHOWN],
            item.message,
        )
        for item in listed
    ]
    if not rows:
        return f"No plan is recorded in namespace {UntrustedName(namespace)}.\n"
    failures = [
        f"{item.optimization} {item.revision}: {item.solver_failure}\n"
        for item in listed
        if item.solver_failure
    ]
    return f"{TextTable(_COLUMNS, rows)}\n{''.join(failures)}"
