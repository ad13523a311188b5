"""The documents name only modules, folders, symbols and pages that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "GOVERNANCE.md",
    ROOT / "MAINTAINERS.md",
    ROOT / "ADOPTERS.md",
    ROOT / "CODE_OF_CONDUCT.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "sample_scorers").rglob("README.md")),
]
CODE = "dsf|optimizer|mcp_server|policy_watcher|sample_scorers|benchmarks|tests"

DOTTED = re.compile(rf"(?<![\w/.@-])(?:{CODE})(?:\.(?!md\b)[A-Za-z_]\w*)+")
PATH = re.compile(rf"(?<![\w/.@-])(?:{CODE}|charts|docs)/[\w./-]*[\w/]")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def top_level_names(module: Path) -> set[str]:
    """Return what a module defines or imports at its top level."""
    names = set()
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def exists(dotted: str) -> bool:
    """Return whether a dotted name is a module, a package, or a symbol of one."""
    *parents, last = dotted.split(".")
    path = ROOT.joinpath(*parents, last)
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    parent = ROOT.joinpath(*parents)
    module = parent / "__init__.py" if parent.is_dir() else parent.with_suffix(".py")
    return module.is_file() and last in top_level_names(module)


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_every_name_of_a_module_exists(document: Path) -> None:
    text = document.read_text()
    assert sorted({name for name in DOTTED.findall(text) if not exists(name)}) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_every_path_and_link_exists(document: Path) -> None:
    text = document.read_text()
    missing = {path for path in PATH.findall(text) if not (ROOT / path).exists()}
    links = {link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)}
    assert sorted(missing) == []
    assert sorted(link for link in links if not (document.parent / link).exists()) == []
