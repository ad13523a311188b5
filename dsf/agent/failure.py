"""The failure of one stage of a round, as a value."""

from dataclasses import dataclass, replace
from typing import Literal

OUTAGES = frozenset({"Unreachable", "DeadlineExceeded", "NotHTTP", "ServerError"})
"""Reasons of a failed call after which a healthy answer of the same server is news."""

Stage = Literal["source", "scoring", "publish", "agent"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Which stage failed, a CamelCase reason, and a message: what, where, what to do.

    The reason and the message become those of a Condition. Neither changes while the cause stays
    the same, so a lasting failure is written once. `retry_after` is the number of seconds that the
    server asked the agent to wait, None if it did not ask. `source` is the name of the source that
    failed, of a scorer with several.
    """

    stage: Stage
    reason: str
    message: str
    retry_after: float | None = None
    source: str = ""

    def of_source(self, name: str) -> "Failure":
        """Return the failure of one of several sources: it names the source."""
        return replace(self, message=f"source {name}: {self.message}", source=name)

    @property
    def outage(self) -> bool:
        """Whether the scoring API seems to be down, so its health endpoint may show the end."""
        return self.stage == "scoring" and self.reason in OUTAGES


def agent_bug(error: BaseException) -> Failure:
    """Return the failure of a round that raised an unexpected exception.

    Only the exception's type is named: its text may quote anything, even a token.
    """
    message = (
        f"the agent failed with {type(error).__name__}, which is a bug: its log has the stack trace"
        " at `round broke`. Other scorers continue, and this one is tried again"
    )
    return Failure("agent", "AgentBroke", message)
