"""The results of the tools about what is kept placed: structured, and in a few lines of text."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, quoted
from mcp_server.results.tool_result import Omitted
from optimizer.follow.optimization.kept_conditions import APPLIED
from optimizer.follow.optimization.kept_optimization import OVERDUE
from optimizer.plan.text.approval_questions import move_sentence, whose, worst_first
from optimizer.wire.base import Document, ResultPart
from optimizer.wire.placement_optimization import KeptOptimization
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import OptimizeResult, WorkloadMove

Waiting = OptimizeResult | RequestProblem | None
"""The plan that waits, or why it can't be shown; None: nobody asked."""


class KeptView(ResultPart):
    """What is kept placed; conditions, history and moves only of one that was named."""

    items: tuple[
        Annotated[Document, Field(description="As GET /placementoptimizations tells them.")], ...
    ]
    moves: Annotated[
        tuple[WorkloadMove, ...], Field(description="Of the plan that waits; those that stop first")
    ] = ()
    omitted: Omitted = Field(default_factory=dict)


def kept_view(
    items: Sequence[KeptOptimization], waiting: Waiting = None, *, whole: bool = False
) -> KeptView:
    """Return PlacementOptimizations for a model; `whole`: with conditions and history."""
    own = ("observed_generation", "plan_requested", "recent_changes")
    long = {*own, *(() if whole else ("conditions", "history"))}
    shown = (
        item.model_dump(mode="json", exclude_none=True, exclude={"status": long}) for item in items
    )
    moves = waiting.moves if isinstance(waiting, OptimizeResult) else ()
    changed = (item for item in worst_first(moves) if item.action != "stays")
    return KeptView(items=tuple(shown), moves=tuple(changed))


def kept_text(
    items: Sequence[KeptOptimization], waiting: Waiting = None, moves: Sequence[WorkloadMove] = ()
) -> str:
    """Return for each whether it is fine, why it moves nothing, and the plan that waits.

    `moves`: those of the plan that waits, on this page.
    """
    told = (" ".join(_sentences(item, waiting)) for item in items)
    return "\n".join([*told, *map(move_sentence, moves)]) or (
        "Nothing is kept placed here: there is no PlacementOptimization, so nothing moves until"
        " somebody plans and applies. Next: plan_placement says what would move now."
    )


def _sentences(item: KeptOptimization, waiting: Waiting) -> Iterator[str]:
    state, status = "fine" if item.fine else "not fine", item.status
    yield (
        f"{UntrustedName(item.name)}, mode {UntrustedName(item.mode)}, is {state}:"
        f" {UntrustedName(item.reason)}: {quoted(item.message, MESSAGE_LIMIT)}."
    )
    if not item.wrong.startswith(f"{item.reason}:") and item.wrong:
        yield f"What is not fine: {quoted(item.wrong, MESSAGE_LIMIT)}."
    applied = next((i for i in status.conditions or () if i.type == APPLIED), None)
    if status.gain and not item.waiting and applied and applied.message != item.message:
        yield f"Why it is not taken: {quoted(applied.message, MESSAGE_LIMIT)}."
    for what, told in (
        ("Gain on offer, of all moves together", status.gain),
        ("Next look, if nothing changes", None if item.reason == OVERDUE else status.next_look),
        ("Moves left in the budgets", status.moves_left),
        ("Last change", status.last_change),
        ("Rule", item.move_rule or None),
    ):
        if told is not None:
            yield f"{what}: {told}."
    if item.waiting and not item.approved:
        yield f"Plan {UntrustedName(item.waiting)} waits for an approval: it {item.effect}."
        if waiting is None:
            yield f"kept_placements with name {UntrustedName(item.name)} lists its moves."
        elif isinstance(waiting, RequestProblem):
            yield f"Its moves can't be shown: {quoted(waiting.detail, MESSAGE_LIMIT)}."


def approval_question(kept: KeptOptimization, hub: str) -> str:
    """Return the question that a user answers before a plan that waits is approved."""
    head = f"Let the plan that waits be applied on {whose(hub, kept.namespace, kept.name)}?"
    return f"{head}\nIt {kept.effect}.\nDigest: {UntrustedName(kept.waiting)}"
