"""Kubernetes quantities, and the kinds and devices that they count.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import re

_QUANTITY = re.compile(
    r"\+?(\d{1,18}(?:\.\d{0,9})?|\.\d{1,9})(?:[eE]([+-]?\d{1,2})|([a-zA-Z]{1,2}))?", re.ASCII
)
_SUFFIXES = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
    "Pi": 2.0**50,
    "Ei": 2.0**60,
}
_EXACT_SUFFIXES = ("Pi", "Ti", "Gi", "Mi")
_MAX_DEFAULT_PRECISION = 1e6


def parse_quantity(text: str) -> float | None:
    """Return the number of a quantity such as `500m` or `16Gi`; None if the text is not one."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    number, exponent, suffix = found.groups()
    if suffix:
        return float(number) * _SUFFIXES[suffix] if suffix in _SUFFIXES else None
    return float(f"{number}e{exponent or 0}")


def format_quantity(amount: float) -> str:
    """Return a number as a quantity: whole ones exactly, as `16Gi` if divisible, others rounded."""
    if not amount.is_integer():
        return f"{amount:.12g}" if abs(amount) >= _MAX_DEFAULT_PRECISION else f"{amount:g}"
    whole = int(amount)
    for suffix in _EXACT_SUFFIXES:
        size = int(_SUFFIXES[suffix])
        if abs(whole) >= size and whole % size == 0:
            return f"{whole // size}{suffix}"
    return str(whole)


def parse_resource(text: str) -> tuple[str, str]:
    """Return the kind and device of `gpu/3g.48gb`, of `cpu`, of `nvidia.com/gpu/3g.48gb`.

    If the part before the first slash has a dot, it is a domain and belongs to the kind.
    """
    first, slash, rest = text.partition("/")
    if not slash or "." not in first:
        return first, rest
    name, _, device = rest.partition("/")
    return f"{first}/{name}", device


def parse_pairs(text: str) -> list[tuple[str, str]] | None:
    """Return the names and values of `a=1,b=2`; None if a part has another form.

    The last `=` of a part separates its value.
    """
    parts = [part.strip().rpartition("=") for part in text.split(",")]
    if not all(name.strip() and value.strip() for name, _, value in parts):
        return None
    return [(name.strip(), value.strip()) for name, _, value in parts]
