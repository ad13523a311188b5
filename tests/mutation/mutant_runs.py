"""Runs tests against mutants, each in a forked process, in a copy of the tree.

A process that has collected the tests forks for each mutant; the fork replaces the code of the
functions of the changed module. What this can't change, because it runs on import, and what
survives it, runs in a fork of a process that has imported nothing of ours.
"""

import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from hypothesis import Phase, settings

from tests.mutation.mutants import Mutant
from tests.mutation.packages import DecisionPackage

SLOWEST_TEST = 8.0
"""Seconds of CPU, measured while lines are recorded, from which a test is left out: it would cost
more than all others together. So a figure is never better than that of the whole suite."""
PATIENCE = 5.0
"""Times the CPU time of the same tests without a mutant, after which a loop counts as endless."""
LEAST_CPU_SECONDS = 20
STANDSTILL_SECONDS = 60.0
"""Seconds in which a process used no CPU, after which it waits for what never comes."""
STOOD_STILL = "the process stood still"
OUT_OF_TIME = "the process reached its limit of CPU time"
LIMITS = (STOOD_STILL, OUT_OF_TIME)
"""Fates of mutants that no assertion noticed: they ran for too long, as an endless loop does."""
NOT_REPLACED = "not replaced"
"""The code of the mutant runs on import, so the tests that are collected already can't see it."""

REPORT = os.fdopen(os.dup(1), "w", buffering=1)
"""Where progress is printed, by forks too, whose own output is dropped."""


@dataclass(frozen=True)
class ExecutedLines:
    """Which tests execute which lines, and the CPU seconds that each test takes.

    `tests`: by module, then by line. `left_out`: tests that fail without a mutant, or are slow.
    """

    seconds: Mapping[str, float]
    tests: Mapping[str, Mapping[int, Sequence[str]]]
    left_out: Sequence[str]

    def covering(self, mutant: Mutant) -> list[str]:
        """Return the tests for a mutant, the fastest first.

        Those that execute its lines; else (it runs on import, or in a process of its own) those
        that execute any line of its module; else all.
        """
        lines = self.tests.get(mutant.module, {})
        span = range(mutant.line, mutant.end_line + 1)
        found = {test for line in span for test in lines.get(line, ())}
        found = found or {test for tests in lines.values() for test in tests}
        return sorted(found or self.seconds, key=lambda test: (self.seconds[test], test))

    def cpu_limit(self, tests: Sequence[str]) -> float:
        """Return the CPU seconds that these tests may take."""
        return LEAST_CPU_SECONDS + PATIENCE * sum(self.seconds[test] for test in tests)


class RecordedRun:
    """A pytest plugin that searches without shrinking and without chance, and records failures.

    `run` is called once with the collected tests, instead of running them one after another.
    """

    def __init__(self, run: Callable[[list[pytest.Item]], None] | None = None) -> None:
        self.run = run
        self.failed: list[str] = []

    def pytest_sessionstart(self) -> None:
        settings.register_profile(
            "mutants",
            settings.default,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self.run is None or session.testsfailed:
            return None
        self.run(session.items)
        return True

    def pytest(self, tests: Sequence[str]) -> int:
        """Run pytest with this plugin; return its exit code."""
        arguments = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
        marks = ["-m", "not exhaustive and not fire"]
        warned = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis is imported here.
        return int(pytest.main([*warned, *marks, *arguments], plugins=[self]))


def in_fork(work: Callable[[], Any], *, cpu_limit: float | None = None) -> Any:
    """Return what `work` returns in a process of its own, or a sentence on why it returned nothing.

    With `cpu_limit`, the process and all that it started are killed when it has used more CPU
    seconds, or when it stands still.
    """
    answer = tempfile.TemporaryFile()  # noqa: SIM115 - both processes close their own
    child = os.fork()
    if child == 0:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        if cpu_limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_limit), int(cpu_limit) + 5))
        status = 1
        try:
            answer.write(json.dumps(work()).encode())
            answer.flush()
            status = 0
        finally:
            os._exit(status)
    with answer:
        reason = _wait(child, None if cpu_limit is None else STANDSTILL_SECONDS)
        answer.seek(0)
        return reason or json.loads(answer.read())


def _wait(child: int, standstill: float | None) -> str:
    """Wait until `child` has ended or stands still, and end what it started; return a failure."""
    ended = os.pidfd_open(child)
    used, reason = -1, ""
    while not reason and not select.select([ended], [], [], standstill)[0]:
        now_used = group_cpu_ticks(child)
        reason = STOOD_STILL if now_used == used else ""
        used = now_used
    os.close(ended)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not reason and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return OUT_OF_TIME
    return reason or (f"the process ended with status {status}" if status else "")


def group_cpu_ticks(group: int) -> int:
    """Return the CPU time that a group of processes has used, in clock ticks."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks += sum(map(int, fields[11:15]))
    return ticks


def functions_of(code: CodeType, outer: str = "") -> Iterator[tuple[str, CodeType]]:
    """Yield the code of each function and class body in a module's code, with its scope."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            scope = f"{outer}{constant.co_name}"
            yield scope, constant
            yield from functions_of(constant, f"{scope}.")


def replace_code(path: Path, mutant: Mutant) -> bool:
    """Replace the code of the module's functions; return whether the mutant's is among them."""
    codes: list[dict[str, list[CodeType]]] = []
    for source in (path.read_text(), mutant.source):
        by_scope = defaultdict(list)
        for scope, code in functions_of(compile(source, str(path), "exec")):
            by_scope[scope].append(code)
        codes.append(by_scope)
    mutated = {
        (scope, old.co_firstlineno): new
        for scope, olds in codes[0].items()
        for old, new in zip(olds, codes[1].get(scope, ()), strict=False)
    }
    replaced = set()
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            scope = function.__code__.co_qualname.replace(".<locals>", "")
            code = mutated.get((scope, function.__code__.co_firstlineno))
            if code is not None and len(code.co_freevars) == len(function.__code__.co_freevars):
                function.__code__ = code
                replaced.add(scope)
    return any(f"{mutant.function}.".startswith(f"{scope}.") for scope in replaced)


class MutantRuns:
    """Runs the tests of one package; `tree` is a copy that may change, and the current folder."""

    def __init__(self, tree: Path, package: DecisionPackage) -> None:
        self.tree = tree
        self.package = package
        self.modules = package.files(tree)

    def noticed_by(self, mutants: Sequence[Mutant]) -> dict[str, str]:
        """Return what notices each mutant, by its name: a test, or how the process ended.

        It is empty where nothing does.
        """
        found = in_fork(lambda: self._of_collected(mutants))
        if isinstance(found, str):
            raise TypeError(f"the tests can't be collected: {found}")
        lines = ExecutedLines(
            found["seconds"],
            {
                module: {int(line): tests for line, tests in by_line.items()}
                for module, by_line in found["tests"].items()
            },
            found["left_out"],
        )
        for mutant in mutants:
            if found["noticed_by"][mutant.name] in {"", NOT_REPLACED}:
                found["noticed_by"][mutant.name] = self._anew(mutant, lines.covering(mutant), lines)
                say_fate(mutant, found["noticed_by"][mutant.name])
        return dict(found["noticed_by"])

    def _of_collected(self, mutants: Sequence[Mutant]) -> dict[str, Any]:
        """Collect the tests, record which lines they execute, and run them against each mutant."""
        found: dict[str, Any] = {}

        def run(items: list[pytest.Item]) -> None:
            by_name = {item.nodeid: item for item in items}
            lines = self._executed_lines(items)
            found.update(vars(lines))
            left_out = ", ".join(lines.left_out) or "none"
            REPORT.write(f"{len(lines.seconds)} tests; left out: {left_out}\n")
            found["noticed_by"] = {}
            for mutant in mutants:
                fate = self._fate(mutant, lines, by_name)
                found["noticed_by"][mutant.name] = fate
                if fate not in {"", NOT_REPLACED}:
                    say_fate(mutant, fate)

        if RecordedRun(run).pytest(self.package.tests) or not found:
            raise RuntimeError
        return found

    def _executed_lines(self, items: Sequence[pytest.Item]) -> ExecutedLines:
        recorded = in_fork(lambda: self._recorded(items))
        if isinstance(recorded, str):
            raise TypeError(f"the tests can't be run: {recorded}")
        failed, seconds = set(recorded["failed"]), recorded["seconds"]
        usable = {test for test in seconds if seconds[test] < SLOWEST_TEST and test not in failed}
        tests = {
            module: {
                int(line): [test for test in tests if test in usable]
                for line, tests in by_line.items()
            }
            for module, by_line in recorded["lines"].items()
        }
        left_out = sorted(set(seconds) - usable)
        return ExecutedLines({test: seconds[test] for test in usable}, tests, left_out)

    def _recorded(self, items: Sequence[pytest.Item]) -> dict[str, Any]:
        """Run all tests while recording lines; return failures, seconds, and tests by line."""
        paths = [str(self.tree / name) for name in self.modules]
        lines = coverage.Coverage(data_file=None, include=paths, config_file=False)
        failed, seconds = list[str](), dict[str, float]()
        lines.start()
        for item in items:
            before = sum(os.times()[:4])
            lines.switch_context(item.nodeid)
            if not passes(item):
                failed.append(item.nodeid)
            seconds[item.nodeid] = sum(os.times()[:4]) - before
        lines.stop()
        data = lines.get_data()
        by_line = {name: data.contexts_by_lineno(str(self.tree / name)) for name in self.modules}
        return {"failed": failed, "seconds": seconds, "lines": by_line}

    def _fate(
        self, mutant: Mutant, lines: ExecutedLines, by_name: Mapping[str, pytest.Item]
    ) -> str:
        """Return which collected test notices a mutant; empty if none does."""
        tests = [test for test in lines.covering(mutant) if test in by_name]

        def run() -> str:
            if not replace_code(self.tree / mutant.module, mutant):
                return NOT_REPLACED
            with self._applied(mutant):
                return next((test for test in tests if not passes(by_name[test])), "")

        while tests:
            found = str(in_fork(run, cpu_limit=lines.cpu_limit(tests)))
            if found not in tests or in_fork(lambda: passes(by_name[found])):  # noqa: B023
                return found
            tests.remove(found)  # It fails without the mutant, too: the machine is slow.
        return ""

    def _anew(self, mutant: Mutant, tests: Sequence[str], lines: ExecutedLines) -> str:
        """Return what notices a mutant in a process that imports everything with the mutant."""

        def run() -> str:
            recorded = RecordedRun()
            status = recorded.pytest(tests)
            return (recorded.failed or [f"pytest's exit code {status}" if status else ""])[0]

        with self._applied(mutant):
            return str(in_fork(run, cpu_limit=lines.cpu_limit(tests)))

    @contextlib.contextmanager
    def _applied(self, mutant: Mutant) -> Iterator[None]:
        """Write the mutant to the tree; later its original, with the time that it had."""
        path = self.tree / mutant.module
        original, times = path.read_bytes(), path.stat()
        path.write_text(mutant.source)
        # A time that no compiled file has been made for, whatever the clock says.
        os.utime(path, (times.st_atime, times.st_mtime + 1 + int(mutant.name, 16) % 1_000_000))
        try:
            yield
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def passes(item: pytest.Item) -> bool:
    """Run one collected test and undo its set-up; return whether it passes."""
    reports: list[pytest.TestReport] = []

    class Reports:
        """A plugin that keeps the reports of this test."""

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            reports.append(report)

    plugin = Reports()
    item.config.pluginmanager.register(plugin)
    try:
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        item.config.pluginmanager.unregister(plugin)
    return not any(report.failed for report in reports)


def say_fate(mutant: Mutant, noticed_by: str) -> None:
    """Print what became of a mutant."""
    if "--verbose" in sys.argv or not noticed_by:
        REPORT.write(f"{mutant.described}\n    {noticed_by or 'SURVIVED'}\n")
