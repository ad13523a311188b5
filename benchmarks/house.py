"""How large the code is, and how much of it a reader meets: lines, modules, rooms, files that run.

python -m benchmarks.house

Lines are all lines of files that git knows. A room is a folder or a module directly in
`optimizer`; a floor is one more room in the longest chain of imports. A module has one importer if
only one other module of the product imports it. The files that run are those of the product with a
function, not a body, that `dsf plan -f` of the guide's request executes in its own process.
"""

import ast
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from inspect import CO_OPTIMIZED
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("dsf", "optimizer", "mcp_server", "policy_watcher")
MODULES = (*PRODUCT, "sample_scorers")
SCENARIO = ROOT / "dsf/sim/scenario"
GUIDE = (
    *("plan", f"--request={SCENARIO / 'params.json'}"),
    *(f"-f{SCENARIO / part}" for part in ("manifests", "clusters", "scores")),
)
"""The development guide's fleet and request, which the demo has too."""


def files(folders: Iterable[str]) -> list[Path]:
    """Return the Python files of folders that git tracks or would track, and that are there."""
    words = ["git", "ls-files", "-co", "--exclude-standard", "--", *(f"{i}/*.py" for i in folders)]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({ROOT / line for line in listed.splitlines() if (ROOT / line).exists()})


def lines(paths: Iterable[Path]) -> int:
    """Return the number of lines of files, blank ones too."""
    return sum(path.read_text().count("\n") for path in paths)


def module_of(path: Path) -> str:
    """Return the dotted name of a file of the repository; a package is named by its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(paths: Iterable[Path]) -> dict[str, set[str]]:
    """Return the modules of the product that each module imports."""
    known = {module_of(path): path for path in paths}
    return {name: set(_imported(path, known.keys())) - {name} for name, path in known.items()}


def _imported(path: Path, known: Iterable[str]) -> Iterable[str]:
    known = frozenset(known)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in inner if name in known)
            if node.module in known and any(name not in known for name in inner):
                yield node.module


def lonely_siblings(imported: Mapping[str, Iterable[str]], packages: Iterable[str]) -> list[str]:
    """Return modules whose only importer is a module of the same folder, sorted."""
    packages = frozenset(packages)
    importers = defaultdict[str, set[str]](set)
    for name, others in imported.items():
        for other in others:
            importers[other].add(name)
    return sorted(
        name
        for name, found in importers.items()
        if name not in packages
        and len(found) == 1
        and _folder(next(iter(found)), packages) == name.rpartition(".")[0]
    )


def _folder(name: str, packages: frozenset[str]) -> str:
    return name if name in packages else name.rpartition(".")[0]


def floors(imported: Mapping[str, Iterable[str]], package: str) -> tuple[int, int]:
    """Return how many rooms a package has, and on how many floors."""
    above = defaultdict[str, set[str]](set)
    for name, others in imported.items():
        for other in others:
            upper, lower = _room(name, package), _room(other, package)
            if upper and lower and upper != lower:
                above[upper].add(lower)
    rooms = {room for name in imported if (room := _room(name, package))}

    @cache
    def height(room: str) -> int:
        return 1 + max((height(lower) for lower in above[room]), default=0)

    return len(rooms), max(map(height, rooms))


def _room(name: str, package: str) -> str:
    return name.split(".")[1] if name.startswith(f"{package}.") else ""


def executed_files(arguments: Iterable[str]) -> list[str]:
    """Return the product's files of which a run of `dsf` executes functions, sorted."""
    traced = [sys.executable, "-m", __spec__.name, "traced", *arguments]
    done = subprocess.run(traced, cwd=ROOT, check=True, capture_output=True, text=True)
    return list(json.loads(done.stderr.splitlines()[-1]))


def _trace(arguments: list[str]) -> None:
    """Run `dsf` in this process, then print the files with an executed function to stderr."""
    from threading import setprofile as profile_threads  # noqa: PLC0415 - only what is traced needs it

    found = set[str]()

    def profile(frame: object, event: str, _argument: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and code.co_flags & CO_OPTIMIZED:  # not the body of a class or a module
            found.add(code.co_filename)

    from dsf.cli.root import main as dsf  # noqa: PLC0415 - after what measures it

    sys.argv = ["dsf", *arguments]
    profile_threads(profile)
    sys.setprofile(profile)
    try:
        dsf()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    inside = [path.relative_to(ROOT) for name in found if (path := Path(name)).is_relative_to(ROOT)]
    product = sorted(str(path) for path in inside if path.parts[0] in PRODUCT)
    print(json.dumps(product), file=sys.stderr)


def main() -> None:
    """Print the figures."""
    product, tests = files(PRODUCT), files(["tests"])
    modules = files(MODULES)
    imported = imports(modules)
    packages = [module_of(path) for path in modules if path.name == "__init__.py"]
    rooms, height = floors(imported, "optimizer")
    executed = executed_files(GUIDE)
    for name, value in {
        "product lines": lines(product),
        "test lines": lines(tests),
        "modules": len(modules),
        "modules with one importer, in the same folder": len(lonely_siblings(imported, packages)),
        "rooms in optimizer": rooms,
        "floors of optimizer": height,
        "files that run in dsf plan -f": len(executed),
    }.items():
        print(f"{name:<48}{value:>8,}")
    if "--names" in sys.argv:
        print("\n".join(["", *lonely_siblings(imported, packages), "", *executed]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["traced"]:
        _trace(sys.argv[2:])
    else:
        main()
