"""Reading what `dsf plan` is given: Kubernetes objects and a request, from YAML and JSON files."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from dsf.kube.port import Object
from optimizer.field_errors import field_problems
from optimizer.request import OptimizeRequest

SUFFIXES = (".yaml", ".yml", ".json")

_REQUEST_FIELD = "targetWorkloads"


class _Loader(yaml.SafeLoader):
    """Leaves timestamps as text, as Kubernetes does."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class BadFile(Exception):
    """A file that can't be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document and where it came from."""

    path: Path
    content: Any

    @property
    def is_object(self) -> bool:
        """Tell whether this is a Kubernetes object."""
        return isinstance(self.content, dict) and {"apiVersion", "kind"} <= set(self.content)

    @property
    def is_request(self) -> bool:
        """Tell whether this looks like the body of POST /optimize."""
        return isinstance(self.content, dict) and _REQUEST_FIELD in self.content


def documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a file, or of all YAML and JSON files under a folder."""
    files = sorted(item for item in path.rglob("*") if item.suffix in SUFFIXES and item.is_file())
    for file in files if path.is_dir() else [path]:
        yield from (Document(file, content) for content in _contents(file) if content is not None)


def objects(found: Document) -> Iterator[Object]:
    """Yield the objects of a document, a List's items one by one; BadFile where one has no name."""
    items = found.content.get("items") if found.content["kind"].endswith("List") else None
    for item in [found.content] if items is None else items:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise BadFile(f"{found.path}: an object without metadata.name")
        yield item


def request_of(found: Document) -> OptimizeRequest:
    """Return a document as a request; BadFile names each wrong field."""
    try:
        return OptimizeRequest.model_validate(found.content)
    except ValidationError as error:
        problems = field_problems(error.errors(include_input=False, include_url=False))
        wrong = "; ".join(f"{item.field}: {item.message}" for item in problems)
        raise BadFile(f"{found.path}: {wrong}") from error


def _contents(file: Path) -> list[Any]:
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            return [json.loads(text)]
        return list(yaml.load_all(text, _Loader))
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{file}: {error}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        form = "JSON" if file.suffix == ".json" else "YAML"
        raise BadFile(f"{file}: not {form}: {' '.join(str(error).split())}") from error
