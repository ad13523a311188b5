"""How many tokens the model may still use: pure."""

from collections import deque

PERIOD_SECONDS = 3600.0
"""The budget is for each hour, as providers bill and limit."""


class TokenBudget:
    """The tokens of the last hour against a limit; None is no limit. Times are seconds."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._spent = deque[tuple[float, int]]()
        self._sum = 0

    def wait(self, now: float) -> float:
        """Return the seconds until a prompt may be sent; 0 if it may be now."""
        if self._limit is None:
            return 0.0
        while self._spent and self._spent[0][0] <= now - PERIOD_SECONDS:
            self._sum -= self._spent.popleft()[1]
        excess = self._sum - self._limit
        for spent_at, tokens in self._spent:
            if excess < 0:
                break
            excess -= tokens
            if excess < 0:
                return spent_at + PERIOD_SECONDS - now
        return 0.0

    def spend(self, now: float, tokens: int) -> None:
        """Count the tokens of a prompt and its reply."""
        if self._limit is not None:
            self._spent.append((now, tokens))
            self._sum += tokens
