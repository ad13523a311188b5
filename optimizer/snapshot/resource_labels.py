"""What the labels `resource-supply-*` of a Policy and `resource-request-*` of a workload mean.

A supply: the policy supplies `amount` devices of a kind. A request: each replica of the workload
needs `amount` of a kind.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dsf.api.names import (
    APP,
    REQUEST_AMOUNT,
    REQUEST_KIND,
    SUPPLY_AMOUNT,
    SUPPLY_DEVICE,
    SUPPLY_KIND,
)
from dsf.api.untrusted_text import UntrustedName, listed, quoted
from optimizer.domain.fleet import Supply

_AMOUNT = re.compile(r"[0-9]{1,9}")


class LabelledRequest(NamedTuple):
    """The app whose scores count for a workload, and the amount of a kind that it requests."""

    app: UntrustedName
    kind: UntrustedName
    amount: int


def supply_of(labels: Mapping[str, str]) -> Supply | str:
    """Return what a policy with these labels supplies, or what is wrong with the labels."""
    amount = _amount(labels.get(SUPPLY_AMOUNT))
    wrong = _wrong(labels, (SUPPLY_KIND, SUPPLY_DEVICE), SUPPLY_AMOUNT)
    if wrong or amount is None:
        return wrong
    return Supply(UntrustedName(labels[SUPPLY_KIND]), UntrustedName(labels[SUPPLY_DEVICE]), amount)


def request_of(labels: Mapping[str, str]) -> LabelledRequest | str:
    """Return what a workload with these labels requests, or what is wrong with the labels."""
    amount = _amount(labels.get(REQUEST_AMOUNT))
    wrong = _wrong(labels, (APP, REQUEST_KIND), REQUEST_AMOUNT)
    if wrong or amount is None:
        return wrong
    return LabelledRequest(UntrustedName(labels[APP]), UntrustedName(labels[REQUEST_KIND]), amount)


def _amount(text: str | None) -> int | None:
    return int(text) if text is not None and _AMOUNT.fullmatch(text) else None


def _wrong(labels: Mapping[str, str], texts: Iterable[str], amount: str) -> str:
    missing = [key for key in (*texts, amount) if not labels.get(key)]
    if missing:
        return f"label {listed(missing)} is missing"
    if _amount(labels[amount]) is None:
        return f"label {amount} is {quoted(labels[amount])}, not a whole number"
    return ""
