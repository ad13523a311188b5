"""CEL for the simulated placement, by the same library that checks the CRDs' rules."""

from collections.abc import Mapping
from typing import Any

import cel


def holds(expression: str, variables: Mapping[str, Any]) -> bool:
    """Tell whether an expression is true; one that can't be evaluated selects nothing."""
    try:
        return cel.evaluate(expression, dict(variables)) is True
    except (KeyError, RuntimeError, TypeError, ValueError):
        return False
