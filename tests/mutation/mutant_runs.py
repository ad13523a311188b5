"""Runs tests against mutants, each in a forked process, in a copy of the tree.

A process that has collected the tests forks for each mutant; the fork replaces the code of the
functions of the changed module. What this can't change, because it ran when the tests were
collected, runs in a fork of a process that has imported nothing of ours.
"""

import contextlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import coverage
import pytest
from hypothesis import Phase, settings

from tests.mutation.mutants import Mutant, replace_code
from tests.mutation.packages import DecisionPackage

SLOWEST_TEST = 8.0
"""Seconds of CPU, measured while lines are recorded, from which a test is left out: it would cost
more than all others together. So a figure is never better than that of the whole suite."""
PATIENCE = 5.0
"""Times the CPU time of a test without a mutant, after which a loop counts as endless."""
LEAST_CPU_SECONDS = 10.0
"""CPU time that each test has besides, and the imports before the first one."""
MOST_CPU_SECONDS = 30.0
"""CPU time of the tests that are asked about one mutant: a line that all tests execute would cost
an hour."""
STANDSTILL_SECONDS = 30.0
"""Seconds of which a process slept the most, after which it waits for what never comes."""
AWAKE = 0.2
"""Share of that time in which a process runs, or waits for a processor, that has work to do."""
STOOD_STILL = "the process stood still"
OUT_OF_TIME = "the process reached its limit of CPU time"
LIMITS = (STOOD_STILL, OUT_OF_TIME)
"""Fates of mutants that no assertion noticed: they ran for too long, as an endless loop does."""
RAN_ON_IMPORT = "ran on import"
"""The code of the mutant ran before the tests, which may not see a change of it afterwards."""

ON_IMPORT = ""
"""What coverage.py names what runs before the first test: the collection of all tests."""

REPORT = os.fdopen(os.dup(1), "w", buffering=1)
"""Where progress is printed, by forks too, whose own output is dropped."""


@dataclass(frozen=True)
class ExecutedLines:
    """Which tests execute which lines, and the CPU seconds that each test takes.

    `tests`: by module, then by line; a line that ran on import has `ON_IMPORT` among them.
    `left_out`: tests that fail without a mutant, or are slow.
    """

    seconds: Mapping[str, float]
    tests: Mapping[str, Mapping[int, Sequence[str]]]
    left_out: Sequence[str]

    def executing(self, mutant: Mutant) -> set[str]:
        """Return the tests that execute the mutant's lines, and `ON_IMPORT` if that does."""
        lines = self.tests.get(mutant.module, {})
        span = range(mutant.line, mutant.end_line + 1)
        return {test for line in span for test in lines.get(line, ())}

    def covering(self, mutant: Mutant) -> list[str]:
        """Return the tests for a mutant, in the order in which to run them.

        Those that execute its lines, the fastest first. If it runs on import only, all tests in
        the order of the package. Else (it runs in a process of its own) all tests, first those that
        execute any line of its module. They take up to `MOST_CPU_SECONDS`.
        """
        executing = self.executing(mutant)
        ordered = sorted(executing - {ON_IMPORT}, key=lambda test: (self.seconds[test], test))
        if not ordered:
            lines = {} if executing else self.tests.get(mutant.module, {})
            near = {test for tests in lines.values() for test in tests}
            ordered = sorted(self.seconds, key=lambda test: test not in near)
        ends = accumulate(self.seconds[test] for test in ordered)
        return [test for test, end in zip(ordered, ends, strict=True) if end <= MOST_CPU_SECONDS]

    def limit_cpu(self, test: str) -> None:
        """Let this process end by SIGXCPU if the next test takes far longer than it should."""
        most = sum(os.times()[:2]) + LEAST_CPU_SECONDS + PATIENCE * self.seconds.get(test, 0.0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(most) + 1, resource.RLIM_INFINITY))


class RecordedRun:
    """A pytest plugin that searches without shrinking and without chance, and records failures.

    `run` is called once with the collected tests, instead of running them one after another.
    `before_each` is called with the name of each test that runs.
    """

    def __init__(
        self,
        run: Callable[[list[pytest.Item]], None] | None = None,
        before_each: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.run = run
        self.before_each = before_each
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

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.before_each(nodeid)

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


def in_fork(work: Callable[[], Any], *, standstill: float | None = None) -> Any:
    """Return what `work` returns in a process of its own, or a sentence on why it returned nothing.

    The process and all that it started are killed when they slept for most of `standstill` seconds.
    """
    answer = tempfile.TemporaryFile()  # noqa: SIM115 - both processes close their own
    child = os.fork()
    if child == 0:
        os.setsid()
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        status = 1
        try:
            answer.write(json.dumps(work()).encode())
            answer.flush()
            status = 0
        finally:
            os._exit(status)
    with answer:
        reason = _wait(child, standstill)
        answer.seek(0)
        return reason or json.loads(answer.read())


def _wait(child: int, standstill: float | None) -> str:
    """Wait until `child` has ended or stands still, and end what it started; return a failure."""
    ended = os.pidfd_open(child)
    before, reason = dict[Path, float](), ""
    while not reason and not select.select([ended], [], [], standstill)[0]:
        now = seconds_awake(child)
        awake = sum(seconds - before.get(task, 0.0) for task, seconds in now.items())
        reason = STOOD_STILL if awake < AWAKE * (standstill or 0.0) else ""
        before = now
    os.close(ended)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not reason and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return OUT_OF_TIME
    return reason or (f"the process ended with status {status}" if status else "")


def seconds_awake(group: int) -> dict[Path, float]:
    """Return for how long each thread of a group of processes ran, or waited for a processor.

    Source: https://docs.kernel.org/scheduler/sched-stats.html, /proc/<pid>/schedstat
    """
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(process.name)) == group:
                for task in process.glob("task/*/schedstat"):
                    ran, waited, _ = map(int, task.read_text().split())
                    found[task] = (ran + waited) / 1e9
    return found


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
            if found["noticed_by"][mutant.name] == RAN_ON_IMPORT:
                found["noticed_by"][mutant.name] = self._anew(mutant, lines.covering(mutant), lines)
                say_fate(mutant, found["noticed_by"][mutant.name])
        return dict(found["noticed_by"])

    def _of_collected(self, mutants: Sequence[Mutant]) -> dict[str, Any]:
        """Collect the tests, record which lines they execute, and run them against each mutant."""
        found: dict[str, Any] = {}
        paths = [str(self.tree / name) for name in self.modules]
        recorder = coverage.Coverage(data_file=None, include=paths, config_file=False)

        def run(items: list[pytest.Item]) -> None:
            by_name = {item.nodeid: item for item in items}
            lines = self._executed_lines(items, recorder)
            recorder.stop()
            found.update(vars(lines))
            left_out = ", ".join(lines.left_out) or "none"
            REPORT.write(f"{len(lines.seconds)} tests; left out: {left_out}\n")
            found["noticed_by"] = {}
            for mutant in mutants:
                fate = self._fate(mutant, lines, by_name)
                found["noticed_by"][mutant.name] = fate
                if fate != RAN_ON_IMPORT:
                    say_fate(mutant, fate)

        recorder.start()
        if RecordedRun(run).pytest(self.package.tests) or not found:
            raise RuntimeError
        return found

    def _executed_lines(
        self, items: Sequence[pytest.Item], recorder: coverage.Coverage
    ) -> ExecutedLines:
        recorded = in_fork(lambda: self._recorded(items, recorder))
        if isinstance(recorded, str):
            raise TypeError(f"the tests can't be run: {recorded}")
        failed, seconds = set(recorded["failed"]), recorded["seconds"]
        usable = {
            test: each
            for test, each in seconds.items()
            if each < SLOWEST_TEST and test not in failed
        }
        tests = {
            module: {
                int(line): [test for test in tests if test in {*usable, ON_IMPORT}]
                for line, tests in by_line.items()
            }
            for module, by_line in recorded["lines"].items()
        }
        return ExecutedLines(usable, tests, sorted(seconds.keys() - usable))

    def _recorded(
        self, items: Sequence[pytest.Item], recorder: coverage.Coverage
    ) -> dict[str, Any]:
        """Run all tests while recording lines; return failures, seconds, and tests by line."""
        failed, seconds = list[str](), dict[str, float]()
        for item in items:
            before = sum(os.times()[:4])
            recorder.switch_context(item.nodeid)
            if not passes(item):
                failed.append(item.nodeid)
            seconds[item.nodeid] = sum(os.times()[:4]) - before
        recorder.stop()
        data = recorder.get_data()
        by_line = {name: data.contexts_by_lineno(str(self.tree / name)) for name in self.modules}
        return {"failed": failed, "seconds": seconds, "lines": by_line}

    def _fate(
        self, mutant: Mutant, lines: ExecutedLines, by_name: Mapping[str, pytest.Item]
    ) -> str:
        """Return which collected test notices a mutant; empty if none does."""
        tests = [test for test in lines.covering(mutant) if test in by_name]

        survived = RAN_ON_IMPORT if ON_IMPORT in lines.executing(mutant) else ""

        def run() -> str:
            if not replace_code(self.tree / mutant.module, mutant):
                return RAN_ON_IMPORT
            with self._applied(mutant):
                for test in tests:
                    lines.limit_cpu(test)
                    if not passes(by_name[test]):
                        return test
                return survived

        while tests:
            found = str(in_fork(run, standstill=STANDSTILL_SECONDS))
            if found not in tests or in_fork(lambda: passes(by_name[found])):  # noqa: B023
                return found
            tests.remove(found)  # It fails without the mutant, too: the machine is slow.
        return survived

    def _anew(self, mutant: Mutant, tests: Sequence[str], lines: ExecutedLines) -> str:
        """Return what notices a mutant in a process that imports everything with the mutant."""

        def run() -> str:
            lines.limit_cpu("the imports")
            recorded = RecordedRun(before_each=lines.limit_cpu)
            status = recorded.pytest(tests)
            return (recorded.failed or [f"pytest's exit code {status}" if status else ""])[0]

        with self._applied(mutant):
            return str(in_fork(run, standstill=STANDSTILL_SECONDS))

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
