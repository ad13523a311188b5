"""One check of an installation: what it found, and the fix of what is wrong."""

from collections.abc import Iterable
from functools import partial
from typing import Literal, NamedTuple

from pydantic import Field

from dsf.kube.kinds import Kind
from optimizer.follow.hub_health.hub_installation import HubInstallation
from optimizer.wire.base import ResultPart, Sentence

MAX_NAMED = 5
"""Objects that one sentence names."""

CheckState = Literal["ok", "warning", "failed", "skipped"]


class HubCheck(ResultPart):
    """What one check found, and the fix of what is wrong."""

    check: str
    state: CheckState = Field(description="warning: something works less well. skipped: not known.")
    message: Sentence
    fix: Sentence = ""


class Judgement(NamedTuple):
    """What a check found, without its name."""

    state: CheckState
    message: str
    fix: str = ""

    def on(self, check: str) -> HubCheck:
        """Return the check of this name."""
        return HubCheck(check=check, **self._asdict())


ok = partial(Judgement, "ok")
failed = partial(Judgement, "failed")
warning = partial(Judgement, "warning")
skipped = partial(Judgement, "skipped")


def unread(found: HubInstallation, kind: Kind) -> Judgement | None:
    """Return the check as skipped if the user may not list a kind; None if it can be judged."""
    if found.served.get(kind) != "forbidden":
        return None
    return skipped(f"you may not list {kind.plural}")


def missing(found: HubInstallation, wanted: Iterable[Kind]) -> list[Kind]:
    """Return the kinds that the hub does not serve."""
    return [kind for kind in wanted if found.served.get(kind) == "missing"]


def plurals(kinds: Iterable[Kind]) -> str:
    """Return kinds by the names that kubectl takes."""
    return ", ".join(kind.plural for kind in kinds)
