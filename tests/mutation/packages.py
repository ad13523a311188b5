"""The packages of decisions: the modules that are changed, and the tests that should notice.

The tests are those that mirror the modules. Tests of whole programs execute the same lines, but
take minutes, and a decision should have a test of its own.

Shells are left out, because they do what decisions say, and `tuning.py`, because its numbers change
time and effort.
"""

from dataclasses import dataclass
from pathlib import Path

TUNING = "tuning.py"


@dataclass(frozen=True)
class DecisionPackage:
    """Files and folders, relative to the repository; `without` are files among them."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()

    def files(self, root: Path) -> list[str]:
        """Return the modules as paths relative to `root`."""
        paths = [root / each for each in self.modules]
        found = [p for path in paths for p in (path.rglob("*.py") if path.is_dir() else [path])]
        names = sorted(p.relative_to(root).as_posix() for p in found if p.name != TUNING)
        return [name for name in names if not any(map(name.startswith, self.without))]


PACKAGES = {
    "agent": DecisionPackage(
        modules=(
            "dsf/agent/otlp/memory",
            "dsf/agent/publish/plan",
            "dsf/agent/schedule",
            "dsf/agent/score",
            "dsf/agent/wire",
        ),
        tests=(
            "tests/dsf/agent/otlp/memory",
            "tests/dsf/agent/publish/plan",
            "tests/dsf/agent/schedule",
            "tests/dsf/agent/score",
            "tests/dsf/agent/wire",
        ),
    ),
    "hub": DecisionPackage(
        modules=(
            "dsf/hub/assess",
            "dsf/hub/distribute",
            "dsf/hub/plan.py",
            "dsf/hub/report",
            "dsf/hub/snapshot",
        ),
        tests=(
            "tests/dsf/hub/assess",
            "tests/dsf/hub/distribute",
            "tests/dsf/hub/report",
            "tests/dsf/hub/snapshot",
            "tests/dsf/hub/test_documented_reasons.py",
            "tests/dsf/hub/test_plan.py",
            "tests/dsf/hub/test_plan_fleet.py",
            "tests/dsf/hub/test_secrets_controller.py",
        ),
    ),
    "engine": DecisionPackage(
        modules=("optimizer/candidates", "optimizer/mig", "optimizer/model", "optimizer/solve"),
        without=(
            "optimizer/solve/solver_process.py",
            "optimizer/solve/supervised_process.py",
        ),
        tests=(
            "tests/optimizer/candidates",
            "tests/optimizer/mig",
            "tests/optimizer/model",
            "tests/optimizer/solve",
        ),
    ),
    "explanation": DecisionPackage(
        modules=("optimizer/explain",),
        without=("optimizer/explain/explanation_process",),
        tests=("tests/optimizer/explain",),
    ),
    "transition": DecisionPackage(
        modules=("optimizer/transition",),
        tests=("tests/optimizer/transition", "tests/optimizer/explain/test_transition_steps.py"),
    ),
}
