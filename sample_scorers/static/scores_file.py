"""Reads a file with tables of scores."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from .score import StaticScoreTable

SHIPPED = Path(__file__).with_name("scores.yaml")

_TABLES = TypeAdapter(list[StaticScoreTable])


@dataclass(frozen=True)
class InvalidScoresFile:
    """Why a scores file can't be used, in one line."""

    message: str


def shipped() -> list[StaticScoreTable]:
    """Return the tables of this folder's `scores.yaml`."""
    return _TABLES.validate_python(yaml.safe_load(SHIPPED.read_text(encoding="utf-8")))


def read(path: Path) -> list[StaticScoreTable] | InvalidScoresFile:
    """Return the tables of a YAML (or JSON) file, or why they can't be used."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return InvalidScoresFile(f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
    read = parse(text)
    return (
        InvalidScoresFile(f"{path}: {read.message}")
        if isinstance(read, InvalidScoresFile)
        else read
    )


def parse(text: str) -> list[StaticScoreTable] | InvalidScoresFile:
    """Return the tables in a YAML text, or why they can't be used."""
    try:
        tables = _TABLES.validate_python(yaml.safe_load(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        return InvalidScoresFile(f"line {line} is not YAML: {error.problem}")
    except ValidationError as error:
        return InvalidScoresFile(_first(error))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return InvalidScoresFile(f"is not YAML: {error}".splitlines()[0])
    return _without_clashes(tables)


def _without_clashes(tables: list[StaticScoreTable]) -> list[StaticScoreTable] | InvalidScoresFile:
    if not tables:
        return InvalidScoresFile("has no table")
    for key, values in (
        ("path", [table.path for table in tables]),
        ("scoreName", [table.score_name for table in tables]),
    ):
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            return InvalidScoresFile(f"{key} {twice[0]} is used twice")
    return tables


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    where = "".join(f"[{step}]" for step in found["loc"]) or "the document"
    return f"{where}: {found['msg']}"
