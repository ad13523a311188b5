"""Lists of names and values such as `cpu=4,memory=16Gi`, the short form of annotations."""


def parse_pairs(text: str) -> list[tuple[str, str]] | None:
    """Return the names and values of `a=1,b=2`; None if a part has another form.

    The last `=` of a part separates its value.
    """
    parts = [part.strip().rpartition("=") for part in text.split(",")]
    if not all(name.strip() and value.strip() for name, _, value in parts):
        return None
    return [(name.strip(), value.strip()) for name, _, value in parts]
