"""Objects of the hub as YAML: bounded, without credentials, and what others wrote in quotes."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from dsf.api.untrusted_text import joined, plain
from dsf.kube.kinds import PLACEMENT_PLAN, SECRET
from dsf.kube.port import Object
from dsf.kube.redaction import REDACTED, redact
from mcp_server.results.tool_result import bare_name

YAML_CHARACTERS = 4_400
"""Characters of all objects of an answer."""

_NAMED = 8
"""Objects that are named after those that are shown."""

_PACKED = ("content", "rollout")
"""Fields of a PlacementPlan that are compressed."""

_SECRET_IN_TEXT = re.compile(rf"\bkind\W*:\W*{SECRET.kind}\b")
"""Of text in any quotes, also in those of JSON within JSON."""

_CREDENTIAL = re.compile(r"(?i)secret|passw|token|credential|(?:^|[_-])key")
"""In names of environment variables; better a harmless value hidden than a credential shown."""

_NOT_SHOWN = ("managedFields", "kubectl.kubernetes.io/last-applied-configuration")
"""What the API server and kubectl keep for themselves; the second repeats the object as text."""


class _Quoting(yaml.SafeDumper):
    """Quotes each text that is not a word, so that no stranger's sentence looks like ours."""

    def ignore_aliases(self, _: Any) -> bool:
        """Write what occurs twice in full each time."""
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    shown = plain(text)
    style = None if bare_name(shown) == shown else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", shown, style=style)


_Quoting.add_representer(str, _quoted)
_Quoting.add_multi_representer(str, _quoted)


def objects_yaml(
    objects: Sequence[Object], offset: int = 0, most: int = YAML_CHARACTERS, following: str = ""
) -> str:
    """Return objects as YAML documents as far as they fit, then how to see the others.

    `offset` skips objects; where there is only one, its lines, of which long ones are in parts.
    `following`: the call that has the next page of objects that the hub does not have yet.
    """
    alone = len(objects) == 1
    parts = [*_lines(_yaml(objects[0]), most)] if alone else objects
    texts, left = list[str](), most
    for part in parts[offset:]:
        text = part if isinstance(part, str) else _yaml(part)
        if len(text) > left and texts:
            break
        over = len(text) - left
        how = f"\n# and {over} more characters of this object: name it alone\n"
        texts.append(text[:left] + (how if over > 0 else ""))
        left -= len(text)
    if not texts:
        return "# offset: there is nothing left to show from there\n"
    end = offset + len(texts)
    rest = f"{len(parts) - end} more lines"
    if not alone:
        names = [f"{plain(obj['kind'])} {bare_name(obj['metadata']['name'])}" for obj in objects]
        rest = "" if following else "name one: "
        rest += joined(names[end : end + _NAMED], _NAMED, of=len(names) - end)
    more = f"# Left out, {rest}. Next page: {following}offset {end}.\n" if end < len(parts) else ""
    shown = ("" if alone else "---\n").join(texts)
    return shown + (more if shown.endswith("\n") else f"\n{more}")


def _lines(text: str, most: int) -> Iterator[str]:
    """Yield the lines of a text, one that is longer than `most` in parts."""
    for line in text.splitlines(keepends=True):
        yield from (line[at : at + most] for at in range(0, len(line), most))


def _yaml(obj: Object) -> str:
    return redact(yaml.dump(_shown(obj), Dumper=_Quoting, sort_keys=False, width=10**6))


def _shown(obj: Object) -> Object:
    shown: Object = _without_credentials(obj)
    if obj["kind"] == PLACEMENT_PLAN.kind:
        spec = {key: "(packed)" if key in _PACKED else i for key, i in shown["spec"].items()}
        return {**shown, "spec": spec}
    return shown


def _without_credentials(part: Any) -> Any:
    """Return a part of an object without the data of Secrets in it, and without _NOT_SHOWN."""
    match part:
        case {"name": str(name), "value": str(value)} if (
            _CREDENTIAL.search(name) or redact(said := f"{name}={value}") != said
        ):
            return {**part, "value": REDACTED}
        case dict():
            hidden = ("data", "stringData") if part.get("kind") == SECRET.kind else ()
            kept = {key: item for key, item in part.items() if key not in _NOT_SHOWN}
            return {k: REDACTED if k in hidden else _without_credentials(kept[k]) for k in kept}
        case list():
            return [_without_credentials(item) for item in part]
        case str() if _SECRET_IN_TEXT.search(part):
            return REDACTED
        case _:
            return part
