"""The samples' `requirements.txt`: what their modules import, and all it needs, as uv.lock has it.

python -m tests.sample_scorers.requirements    # writes them
"""

import ast
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.version import Version

from tests.repository import ROOT
from tests.sample_scorers.serving import SCORERS

SERVICE = SCORERS / "scoring_service"
FIRST_LINE = "# The versions that the tests ran with, indirect ones included."
IMAGE = {"python_version": "3.12", "python_full_version": "3.12.0", "sys_platform": "linux"}
PACKAGES = {"pydantic_core": "pydantic-core", "prometheus_client": "prometheus-client"}
PACKAGES |= {"yaml": "pyyaml"}
"""The package of a module that has another name."""


def for_tests(path: Path) -> bool:
    return path.name.startswith("test_") or path.name in {"testing.py", "fake_model.py"}


def imported(files: Iterable[Path]) -> set[str]:
    """Return the packages whose modules the files import."""
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {
        node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level
    }
    tops = {module.partition(".")[0] for module in modules} - sys.stdlib_module_names
    return {PACKAGES.get(top, top) for top in tops}


@cache
def locked() -> dict[str, dict[str, Any]]:
    """Return each package; of several versions the oldest, which suits each version of Python."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    newest_first = sorted(lock, key=lambda item: Version(item["version"]), reverse=True)
    return {item["name"]: item for item in newest_first}


def with_dependencies(names: Iterable[str]) -> set[str]:
    found, todo = set[str](), list(names)
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += [
                one["name"]
                for one in locked()[name].get("dependencies", ())
                if "marker" not in one or Marker(one["marker"]).evaluate(IMAGE)
            ]
    return found


def pins(names: Iterable[str]) -> list[str]:
    return [f"{name}=={locked()[name]['version']}" for name in sorted(names)]


def expected() -> dict[Path, str]:
    """Return what each file has to say."""
    service = with_dependencies(imported(one for one in SERVICE.glob("*.py") if not for_tests(one)))
    tests = with_dependencies(imported(one for one in SCORERS.rglob("*.py") if for_tests(one)))
    found = {
        SERVICE / "requirements.txt": pins(service),
        SERVICE / "requirements-test.txt": ["-r requirements.txt", *pins(tests - service - EXTRAS)],
    }
    for folder in sorted(path.parent for path in SCORERS.glob("*/Dockerfile")):
        own = imported(one for one in folder.rglob("*.py") if not for_tests(one))
        more = pins(with_dependencies(own) - service)
        found[folder / "requirements.txt"] = ["-r ../scoring_service/requirements.txt", *more]
    return {path: "\n".join((FIRST_LINE, *lines, "")) for path, lines in found.items()}


EXTRAS = {"numpy"}
"""What tests import only if the scorer does."""

if __name__ == "__main__":
    for path, text in expected().items():
        path.write_text(text)
