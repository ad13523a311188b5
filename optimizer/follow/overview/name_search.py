"""Finds the object that a person means by a part of its name, and names near ones."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

from dsf.api.untrusted_text import UntrustedName, listed
from optimizer.wire.request_problem import FieldProblem, RequestProblem, refused_fields

MAX_NEAR = 8
"""Near names in one refusal: more than a person compares."""

MAX_WANTED = 253
"""Characters of a name that is looked for; objects of Kubernetes have no longer ones."""


class Search(NamedTuple):
    """Names or parts of names that a field says, and the names of what they may mean."""

    field: str
    what: str
    wanted: Iterable[str]
    known: Collection[str]


def found_names(searches: Iterable[Search]) -> dict[str, dict[str, str]] | RequestProblem:
    """Return what each name means, by what is sought; a problem if one is unknown or ambiguous."""
    names: dict[str, dict[str, str]] = defaultdict(dict)
    for field, what, wanted, known in searches:
        for said in wanted:
            meant = find_name(said, known, field=field, what=what)
            if isinstance(meant, RequestProblem):
                return meant
            names[what][said] = meant
    return names


def find_name(
    wanted: str,
    names: Iterable[str],
    *,
    field: str,
    what: str,
    same: Mapping[str, str] = MappingProxyType({}),
) -> str | RequestProblem:
    """Return the name that is meant: the equal one, or the only one that contains the words.

    `what`: the noun of a refusal, which lists near names, or else the first ones. `same`: names
    that mean the object of another name, which is returned unless they are said in full.
    """
    known = sorted(set(names))
    if wanted in known:
        return wanted
    asked = wanted[:MAX_WANTED].lower().replace("_", "-").strip()
    words = asked.replace("-", " ").split()
    matching = [name for name in known if words and all(word in name.lower() for word in words)]
    found = list(dict.fromkeys(same.get(name, name) for name in matching))
    if len(found) == 1:
        return found[0]
    near = found or get_close_matches(asked, known, n=MAX_NEAR, cutoff=0.4)
    shown = UntrustedName(wanted)
    if found:
        said = f"{shown} is ambiguous; {what}s that match: {listed(found, MAX_NEAR)}"
    elif near:
        said = f"no {what} is named {shown}; near names: {listed(near, MAX_NEAR)}"
    else:
        said = f"no {what} is named {shown}; there is {listed(known, MAX_NEAR) or 'none'}"
    wrong = FieldProblem(field, said, tuple((near or known)[:MAX_NEAR]))
    reason = "AmbiguousName" if found else "UnknownName"
    return refused_fields(reason, "A name is not that of one object", wrong)
