"""Expected failure of one stage of a round."""

from dataclasses import dataclass
from typing import Literal

Stage = Literal["source", "scoring", "publish", "agent"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Which stage failed, a CamelCase reason, and a message: what, where, what to do.

    The reason becomes a Condition's `reason`, the message its `message`. Both stay the same as
    long as the cause does, so that a lasting failure is written once. `retry_after` are the
    seconds for which the server asked to be left alone, None where it asked for nothing.
    """

    stage: Stage
    reason: str
    message: str
    retry_after: float | None = None


def broken(error: BaseException) -> Failure:
    """Return the failure of a round that broke by a bug of the agent.

    The error's own words may quote anything, a token too, so they stay in the log.
    """
    message = (
        f"the agent itself broke ({type(error).__name__}), which is a bug: its log has the trace at"
        " `round broke`; other scorers go on, and this one is tried again"
    )
    return Failure("agent", "AgentBroke", message)
