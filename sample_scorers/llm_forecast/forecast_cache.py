"""The forecasts of late questions, so that an equal question has an equal answer: pure."""

from collections import OrderedDict

from .question import Question

MOST_FORECASTS = 10_000
"""Forecasts that are kept: about 20 MB, the questions included."""


class ForecastCache:
    """Forecasts by token and question; the one that was used longest ago goes first.

    The token is part of the key, because only the model's server can tell whether it is valid.
    """

    def __init__(self, most: int = MOST_FORECASTS) -> None:
        self._most = most
        self._kept = OrderedDict[tuple[str | None, Question], float]()

    def get(self, token: str | None, question: Question) -> float | None:
        """Return the forecast of a question, if it is kept."""
        if (token, question) not in self._kept:
            return None
        self._kept.move_to_end((token, question))
        return self._kept[token, question]

    def put(self, token: str | None, question: Question, forecast: float) -> None:
        """Keep a forecast of the model."""
        self._kept[token, question] = forecast
        self._kept.move_to_end((token, question))
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
