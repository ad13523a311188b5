"""Finds the object that a person means by a part of its name, and names near ones."""

from collections.abc import Iterable
from difflib import get_close_matches

from dsf.api.untrusted_text import UntrustedName, listed
from optimizer.wire.request_problem import UNPROCESSABLE, FieldProblem, RequestProblem

MAX_NEAR = 8
"""Near names in one refusal: more than a person compares."""

MAX_WANTED = 253
"""Characters of a name that is looked for; objects of Kubernetes have no longer ones."""


def find_name(wanted: str, names: Iterable[str], *, field: str, what: str) -> str | RequestProblem:
    """Return the name that is meant: the equal one, or the only one that contains the words.

    `what`: the noun of a refusal, which lists near names, or else the first ones.
    """
    known = sorted(set(names))
    if wanted in known:
        return wanted
    asked = wanted[:MAX_WANTED].lower().replace("_", "-").strip()
    words = asked.replace("-", " ").split()
    found = [name for name in known if words and all(word in name.lower() for word in words)]
    if len(found) == 1:
        return found[0]
    near = found or get_close_matches(asked, known, n=MAX_NEAR, cutoff=0.4)
    if found:
        said = f"{UntrustedName(wanted)} is ambiguous; {what}s that match: {_few(found)}"
    elif near:
        said = f"no {what} is named {UntrustedName(wanted)}; near names: {_few(near)}"
    else:
        said = f"no {what} is named {UntrustedName(wanted)}; there is {_few(known) or 'none'}"
    return RequestProblem(
        status=UNPROCESSABLE,
        reason="AmbiguousName" if found else "UnknownName",
        title="A name is not that of one object",
        detail=said,
        errors=(FieldProblem(field, said, tuple((near or known)[:MAX_NEAR])),),
    )


def _few(names: list[str]) -> str:
    left = len(names) - MAX_NEAR
    return listed(names[:MAX_NEAR]) + (f" and {left} more" if left > 0 else "")
