"""Durations on the command line and in tables, in the format of Go and Kubernetes."""

import re
from typing import Any

import click

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


_SHOWN_UNITS = (("s", 1, 120), ("m", 60, 180), ("h", 3600, 48))
"""Units of a shown duration: seconds of one, and from how many on the next unit is shown."""
_DAY = 86_400


def shown_duration(seconds: float) -> str:
    """Return a duration in one unit, as kubectl shows ages: `85s`, `12m`, `5h`, `3d`."""
    for unit, size, most in _SHOWN_UNITS:
        if seconds < most * size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds // _DAY)}d"


class Duration(click.ParamType[float]):
    """A click type: seconds, from text such as `15s`, `1m30s`, `500ms`."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; fails unless the text is a positive duration."""
        if isinstance(value, int | float):
            return float(value)
        text = str(value)
        parts = _PART.findall(text)
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        if "".join(number + unit for number, unit in parts) != text or seconds <= 0:
            self.fail(f"{text!r} is not a duration: use a form such as 15s or 1m30s", param, ctx)
        return seconds
