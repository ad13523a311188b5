"""What an option of a call says."""

from .clusters import Cluster, Reader
from .typed_calls import Call


def values(call: Call, *names: str) -> list[str]:
    """The values of an option, in both spellings."""
    words = call.words
    apart = [words[at + 1] for at, word in enumerate(words[:-1]) if word in names]
    return apart + [word.partition("=")[2] for word in words if word.partition("=")[0] in names]


def value(call: Call, *names: str) -> str:
    """The value of an option, or nothing."""
    return next(iter(values(call, *names)), "")


def pinned(image: str) -> bool:
    """Whether an image has a tag that stays."""
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "@" in image or tag not in ("", "latest")


def cluster_of(call: Call, reader: Reader, *names: str) -> tuple[str, Cluster | None, list[str]]:
    """The cluster that an option names, and what is wrong with the name."""
    name = value(call, *names).removeprefix("kind-")
    found = reader.clusters.get(name)
    wrong = [] if found else [f"there is no cluster {name}" if name else f"{names[0]} is missing"]
    return name, found, wrong
