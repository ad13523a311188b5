"""Recorded loads, by name. README.md says where each comes from, and under which licence.

Shell: files. May import `dsf.sim`, which reads recordings, and `dsf.scorer_kit.series_file`.
"""

from pathlib import Path

from dsf.scorer_kit.series_file import UnusableFile
from dsf.sim import prometheus_replay
from dsf.sim.prometheus_replay import Recording

_FOLDER = Path(__file__).parent

RECORDINGS = {
    "build-machine": Path(prometheus_replay.__file__).with_name("recording.json"),
    "aws-load-balancer": _FOLDER / "aws-load-balancer.json",
    "aws-database": _FOLDER / "aws-database.json",
    "gpu-inference": _FOLDER / "gpu-inference.json",
    "shared-machine": _FOLDER / "shared-machine.json",
}
"""The recordings that are shipped."""


def load(path: Path) -> Recording:
    """Return the recording in a file. Raises UnusableFile."""
    try:
        return Recording.load(path)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        said = "write {step, queries: [{query, series: [{metric, values}]}]}"
        raise UnusableFile(f"{path} is not a recording: {said}") from error


def name_of(path: Path) -> str:
    """Return the name of a recording: its own, or that of its file."""
    return next((name for name, known in RECORDINGS.items() if known == path), path.name)
