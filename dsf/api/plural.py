"""Numbers of things, for messages."""


def counted(number: int, noun: str) -> str:
    """Return the number and the noun, in the plural unless the number is 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
