"""CEL selectors of Placements, evaluated by the library that also checks the CRDs' rules."""

from collections.abc import Mapping
from typing import Any

import cel


def holds(expression: str, variables: Mapping[str, Any]) -> bool:
    """Return whether an expression is true; one that can't be evaluated is not."""
    try:
        return cel.evaluate(expression, dict(variables)) is True
    except (KeyError, RuntimeError, TypeError, ValueError):
        return False
