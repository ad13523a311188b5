"""Numbers of things, for messages."""

from collections.abc import Iterable


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return the number and the noun, in the plural unless the number is 1."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def joined(texts: Iterable[str], most: int, *, separator: str = ", ", of: int = 0) -> str:
    """Return the first texts, and how many more there are: `a, b and 3 more`.

    `of` is the number of all, if `texts` are only the first of them.
    """
    every = [f"{text}" for text in texts]
    left = max(len(every), of) - most
    before = " " if separator == ", " else separator
    return separator.join(every[:most]) + (f"{before}and {left} more" if left > 0 else "")
