"""Recorded plans as the HTTP API, the command line and MCP tools show them."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from dsf.api.times import rfc3339
from dsf.api.untrusted_text import InvalidInput, UntrustedName, joined
from dsf.cli.output import TextTable
from optimizer.domain.arrays import members_by_key
from optimizer.domain.solution import Assignment
from optimizer.follow.record.content import RecordContent
from optimizer.follow.record.plan_history import history_of
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.model.wire_values import assignment_value, policy_value
from optimizer.plan.plan import Plan, result
from optimizer.plan.workload_moves import moved_between
from optimizer.wire.plan_record import PlanRecord, PlanSummary, RollbackResult, ScoreVersion
from optimizer.wire.request_problem import ProblemKind, RequestProblem
from optimizer.wire.result import Applied, WorkloadMove


def plan_summary(record: RecordedPlan) -> PlanSummary:
    """Return a recorded plan without its content."""
    return PlanSummary(**_summary(record))


def plan_record(record: RecordedPlan, records: Iterable[RecordedPlan] = ()) -> PlanRecord:
    """Return a recorded plan as a whole; `records`: those that the plan before is one of."""
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
        moved=_moved(record, content, records) if content else None,
        scores=scores.count if scores else 0,
        score_versions=tuple(
            ScoreVersion(**item.model_dump()) for item in (scores and scores.versions) or ()
        ),
    )


def _moved(
    record: RecordedPlan, content: RecordContent, records: Iterable[RecordedPlan]
) -> tuple[WorkloadMove, ...] | None:
    """Return the workloads that the plan before had elsewhere; None if it is not known."""
    now = _places(content)
    own = history_of(records, record.spec.optimization)
    earlier = [i for i in own if i.spec.revision < record.spec.revision and not i.problem]
    then, is_whole = dict[str, list[Assignment]](), record.spec.revision == 1
    for before in earlier:
        if before.was_written and not is_whole:
            found = before.content()
            if not isinstance(found, RecordContent) or (places := _places(found)) is None:
                return None
            then = places | then
            is_whole = found.prunes or before.spec.revision == 1
    names = sorted({*then, *(now or ())} if content.prunes else now or ())
    if now is None or not (is_whole or then.keys() >= {*names}):
        return None
    moves = (moved_between(name, then.get(name, ()), now.get(name, ())) for name in names)
    return tuple(item for item in moves if item.before != item.after)


def _places(content: RecordContent) -> dict[str, list[Assignment]] | None:
    """Return where a plan has each workload that it names; None: its request can't be read."""
    asked = content.asked()
    if isinstance(asked, InvalidInput):
        return None
    named = {item.name: list[Assignment]() for item in asked.target_workloads}
    return named | members_by_key((item.workload, item) for item in content.assignments)


def rollback_result(made: Plan, applied: Applied | None) -> RollbackResult:
    """Return the answer of POST /rollback; `applied` is None for a dry run."""
    if made.rollback is None:
        raise ValueError("the plan restores none")
    said = {"optimization": made.optimization, **made.rollback.model_dump()}
    return RollbackResult(**dict(result(made, applied)), **said)


def unknown_plan(said: str, namespace: str, plans: Iterable[PlanSummary]) -> RequestProblem:
    """Return the problem of a revision or a digest that no recorded plan has, with near ones."""
    kept = {item.digest[:DIGEST_SHOWN]: item for item in plans}
    near = get_close_matches(said[:DIGEST_SHOWN], kept, n=_NEAR) or kept
    named = joined((_named(kept[digest]) for digest in near), _NEAR)
    return ProblemKind.UNKNOWN_PLAN.because(
        f"no plan that is kept in namespace {namespace} has the revision or digest"
        f" {UntrustedName(said)}; there {f'are {named}' if named else 'is none'}"
    )


_NEAR = 5
"""Plans that a refusal names."""


def _named(item: PlanSummary) -> str:
    when = f" of {rfc3339(item.created)}" if item.created else ""
    of = UntrustedName(item.optimization)
    return f"revision {item.revision} of optimization {of}{when} ({item.digest[:DIGEST_SHOWN]})"


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
    "what became of it",
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
