"""One thing that is broken or missing, and how findings with one cause become one."""

from collections.abc import Hashable, Iterable, Iterator
from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import Field

from dsf.api.untrusted_text import listed
from optimizer.domain.arrays import members_by_key
from optimizer.wire.base import Name, ResultPart, Sentence

Stage = Literal["scorer", "score", "cluster", "namespace", "workload", "generated object", "plan"]

Severity = Literal["error", "warning", "info"]
SEVERITIES = get_args(Severity)

MAX_NAMED = 5
"""Managed clusters that one sentence names."""


class FleetFinding(ResultPart):
    """Something that is broken or missing, since when, and the next step."""

    stage: Annotated[Stage, Field(description="Where on the way from scorer to workload.")]
    name: Name
    reason: Name
    message: Sentence
    next: Sentence
    severity: Annotated[
        Severity,
        Field(description="warning: a part is missing. info: at work, or on purpose. Else error."),
    ] = "error"
    since: datetime | None = Field(
        default=None,
        description="Of the oldest with this cause; left out: not known.",
        exclude_if=lambda value: value is None,
    )
    cause: Name = Field(
        default="",
        description="Reason of the finding that it follows from; left out: of none.",
        exclude_if=lambda value: not value,
    )
    count: Annotated[int, Field(description="Objects with this cause; `name` is the first.")] = 1
    names: Annotated[tuple[Name, ...], Field(exclude=True)] = ()
    """All objects with this cause, and the managed clusters that it is about."""

    @property
    def names_cut(self) -> bool:
        """Whether its message may not name all of these."""
        return len({*self.names}) > MAX_NAMED


Found = tuple[FleetFinding, Hashable]
"""A finding about one object, and its cause: findings with equal causes are merged."""


def by_cause(found: Iterable[Found]) -> Iterator[FleetFinding]:
    """Yield one finding for each cause: that of the first object, with the names of the others."""
    alike = members_by_key(
        ((item.stage, item.reason, item.severity, cause), item) for item, cause in found
    )
    for items in alike.values():
        first, names = items[0], list(dict.fromkeys(item.name for item in items))
        said = first.message
        if len(names) > 1:
            nouns = "objects" if first.stage == "generated object" else f"{first.stage}s"
            said = f"{len(names)} {nouns} ({listed(names, MAX_NAMED)}); the first: {said}"
        since = min((item.since for item in items if item.since), default=None)
        about = (*names, *(name for item in items for name in item.names))
        summary = {"message": said, "count": len(names), "names": about, "since": since}
        yield first.model_copy(update=summary)


def finding(
    stage: Stage,
    name: str,
    reason: str,
    message: str,
    next_step: str,
    severity: Severity = "error",
    *,
    since: datetime | None = None,
    cause: str = "",
    clusters: Iterable[str] = (),
) -> FleetFinding:
    """Return a finding about one object; `clusters` are the managed clusters that it is about."""
    return FleetFinding(
        stage=stage,
        name=name,
        reason=reason,
        message=message,
        next=next_step,
        severity=severity,
        since=since,
        cause=cause,
        names=tuple(clusters),
    )
