"""Durations on the command line, in the format of Go and Kubernetes."""

import re
from typing import Any

import click

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


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
