"""Results as a few lines of text, for clients that pass only text to their model.

Every text from the cluster is quoted, except names of Kubernetes objects.
"""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from dsf.api.optimization import Optimization
from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, cleaned, listed, quoted
from mcp_server.results.result_views import (
    LIST_LIMIT,
    AppliedView,
    ResetView,
    ScorePage,
)
from optimizer.wire.field_problems import field_problems
from optimizer.wire.request import REQUEST_FIELDS
from optimizer.wire.request_problem import UNPROCESSABLE, RequestProblem
from optimizer.wire.result import FailedChange, ObjectRef, ScoreObject

NAMES_LIMIT = 20
"""Existing names that an error lists."""

_ARGUMENTS = {"body": "arguments"}
"""Fields that have another name in a tool than in the HTTP API."""


def score_lines(page: ScorePage) -> list[str]:
    """Return a heading, and one line for each AddOnPlacementScore of a page."""
    if not page.total:
        return ["There are no scores."]
    shown = sum(max(1, len(item.scores)) for item in page.items)
    more = "" if page.next_offset is None else f" Next page: offset {page.next_offset}."
    head = f"{shown} of {page.total} score entries from offset {page.offset}.{more}"
    return [head, *map(_score_line, page.items)]


def _score_line(score: ScoreObject) -> str:
    values = ", ".join(f"{quoted(entry.name)}={entry.value}" for entry in score.scores)
    until = f" until {score.valid_until.isoformat()}" if score.valid_until else ""
    validity = "EXPIRED" if score.expired else f"valid{until}"
    trust = "" if score.trust is None else f", trust {score.trust:.2f}"
    about = f"{UntrustedName(score.cluster)} {UntrustedName(score.name)}"
    return f"{about} ({validity}{trust}): {values or 'no entries'}"


def reset_question(namespace: str, optimization: str | None) -> str:
    """Return the question that a user answers before generated objects are deleted."""
    which = f"{Optimization(namespace, optimization)}" if optimization else f"namespace {namespace}"
    return f"Delete every generated Placement, PlacementBinding and Policy of {which}?"


def applied_text(view: AppliedView) -> str:
    """Return how many changes were written, and which failed."""
    if view.repeated:
        return "This plan was applied before; nothing was written now. Next: follow_rollout."
    done = len(view.applied) + view.omitted.get("applied", 0)
    return "\n".join(
        [f"Applied {done} changes. Next: follow_rollout.", *_failures(view.failed, view.omitted)]
    )


def reset_text(view: ResetView) -> str:
    """Return which objects were deleted, and which could not be."""
    done = len(view.deleted) + view.omitted.get("deleted", 0)
    head = f"Deleted {done} generated objects of namespace {UntrustedName(view.namespace)}."
    names = ", ".join(map(_ref, view.deleted))
    return "\n".join([head, *([names] if names else []), *_failures(view.failed, view.omitted)])


def _failures(failed: Sequence[FailedChange], omitted: Mapping[str, int]) -> list[str]:
    lines = [f"Failed: {item.action} {_ref(item)}: {quoted(item.message)}" for item in failed]
    left_out = omitted.get("failed", 0)
    return [*lines, *([f"and {left_out} more failures"] if left_out else [])]


def _ref(ref: ObjectRef) -> str:
    kind = ref.kind if ref.kind.isalnum() else quoted(ref.kind)
    return f"{kind} {UntrustedName(ref.namespace)}/{UntrustedName(ref.name)}"


def refusal(problem: RequestProblem) -> str:
    """Return why a request was refused: one line for each wrong field, or the detail."""
    wrong = problem.errors if problem.status == UNPROCESSABLE else ()
    fields = [f"{error.field}: {error.message}" for error in wrong]
    lines = [quoted(text, MESSAGE_LIMIT) for text in fields or [problem.detail]]
    return "\n".join(_capped(lines, "wrong fields"))


def wrong_arguments(error: ValidationError) -> str:
    """Return one line for each wrong argument."""
    problems = field_problems(error.errors(include_url=False, include_input=False), REQUEST_FIELDS)
    lines = [f"{_ARGUMENTS.get(item.field, item.field)}: {item.message}" for item in problems]
    return "\n".join(map(cleaned, _capped(lines, "wrong arguments")))


def few(names: Sequence[str]) -> str:
    """Return `a, b and 3 more`, or `none`."""
    left_out = len(names) - NAMES_LIMIT
    more = f" and {left_out} more" if left_out > 0 else ""
    return listed(names[:NAMES_LIMIT]) + more or "none"


def _capped(lines: Sequence[str], what: str) -> list[str]:
    left_out = len(lines) - LIST_LIMIT
    return [*lines[:LIST_LIMIT], *([f"and {left_out} more {what}"] if left_out > 0 else [])]
