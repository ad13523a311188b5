"""The results of the tools about what is kept placed: structured, and in a few lines of text."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field

from dsf.api.untrusted_text import MESSAGE_LIMIT, UntrustedName, quoted
from mcp_server.results.tool_result import Omitted
from optimizer.plan.text.approval_questions import whose
from optimizer.wire.base import Document, ResultPart
from optimizer.wire.placement_optimization import KeptOptimization


class KeptView(ResultPart):
    """What is kept placed; conditions and history only of one that was named."""

    items: tuple[
        Annotated[Document, Field(description="As GET /placementoptimizations tells them.")], ...
    ]
    omitted: Omitted = Field(default_factory=dict)


def kept_view(items: Sequence[KeptOptimization], *, whole: bool = False) -> KeptView:
    """Return PlacementOptimizations for a model; `whole`: with conditions and history."""
    own = ("observed_generation", "plan_requested", "recent_changes")
    long = {*own, *(() if whole else ("conditions", "history"))}
    shown = (
        item.model_dump(mode="json", exclude_none=True, exclude={"status": long}) for item in items
    )
    return KeptView(items=tuple(shown))


def kept_text(items: Sequence[KeptOptimization]) -> str:
    """Return for each whether it is fine, why it moves nothing, and the plan that waits."""
    return "\n".join(" ".join(_sentences(item)) for item in items) or (
        "Nothing is kept placed here: there is no PlacementOptimization, so nothing moves until"
        " somebody plans and applies. Next: plan_placement says what would move now."
    )


def _sentences(item: KeptOptimization) -> Iterator[str]:
    fine, status = "fine" if item.fine else "not fine", item.status
    yield (
        f"{UntrustedName(item.name)}, mode {UntrustedName(item.mode)}, is {fine}:"
        f" {UntrustedName(item.reason)}: {quoted(item.message, MESSAGE_LIMIT)}."
    )
    if not item.wrong.startswith(f"{item.reason}:") and item.wrong:
        yield f"What is not fine: {quoted(item.wrong, MESSAGE_LIMIT)}."
    for what, told in (
        ("Gain on offer", status.gain),
        ("Next look", status.next_look),
        ("Moves left in the budgets", status.moves_left),
        ("Last change", status.last_change),
        ("Rule", item.move_rule or None),
    ):
        if told is not None:
            yield f"{what}: {told}."
    if item.approved:
        yield f"Plan {UntrustedName(item.waiting)} was approved, and is applied at the next look."
    elif item.waiting:
        yield f"Plan {UntrustedName(item.waiting)} waits for an approval: it {item.effect}."


def approval_question(kept: KeptOptimization, hub: str) -> str:
    """Return the question that a user answers before a plan that waits is approved."""
    head = f"Let the plan that waits be applied on {whose(hub, kept.namespace, kept.name)}?"
    return f"{head}\nIt {kept.effect}.\nDigest: {UntrustedName(kept.waiting)}"
