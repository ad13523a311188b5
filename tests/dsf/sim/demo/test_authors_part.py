"""`dsf demo` refuses what an author brings wrongly, before it starts anything."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dsf.cli.root import root
from dsf.sim.cli import demo
from dsf.sim.demo.processes import free_port
from tests.command_line import invoked
from tests.dsf.scorer_kit.programs import started

QUERY = "sum(rate(node_load[5m]))"
START = "python3 service.py"


def scaffold(folder: Path, name: str, changes: dict[str, str]) -> Path:
    """Write a scorer from the template, and change its score.py."""
    assert invoked(root, "scorer", "new", name, "--output-dir", str(folder))[0] == 0
    text = (folder / name / "score.py").read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    (folder / name / "score.py").write_text(text)
    return folder / name


OF_CLUSTER = {
    '"sum by (node, namespace, pod) "\n': "",
    """'(rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))'""": f'"{QUERY}"',
}
"""Changes of the template that make a score for each cluster of it."""


@pytest.fixture(scope="module")
def scorers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """URLs of scorers that run; `nowhere` is one that does not."""
    folder = tmp_path_factory.mktemp("scorers")
    changed = {
        "headroom": OF_CLUSTER,
        "fortnight": {**OF_CLUSTER, '"range": 3600': '"range": 1209600'},
        "taken": {**OF_CLUSTER, '{"name": "taken"': '{"name": "sample_my_score"'},
        "pushed": {
            **OF_CLUSTER,
            f'"{QUERY}"': '"node_load"',
            '"type": "Prometheus"': '"type": "OpenTelemetry"',
        },
    }
    with ExitStack() as stack:
        yield {
            "nowhere": f"http://127.0.0.1:{free_port()}",
            **{
                name: stack.enter_context(started(START, scaffold(folder, name, changes)))
                for name, changes in changed.items()
            },
        }


def recording(path: Path, *metrics: dict[str, str], query: str = QUERY) -> Path:
    series = [{"metric": metric, "values": [1, 2]} for metric in metrics]
    path.write_text(json.dumps({"step": 60, "queries": [{"query": query, "series": series}]}))
    return path


WRONG = [
    (
        "--story airan --scorer {headroom} --manifest-namespace a",
        "--story has scorers and series of its own: leave out --scorer, --manifest-namespace",
    ),
    ("--allow-writes", "--allow-writes is about afterwards: say --keep too"),
    ("--port 0 --port 1", "--port is given twice"),
    ("--recording build-machine", "--recording: no scorer of the demo asks for it"),
    ("--prometheus-url http://p", "--prometheus-url: no scorer of the demo asks for it"),
    (
        "--scorer {headroom} --recording build-machine --prometheus-url http://p",
        "--recording and --prometheus-url: one of them has the series",
    ),
    ("--scorer {headroom} --recording nowhere=build-machine", "the demo has no cluster 'nowhere'"),
    ("--scorer {headroom} --recording yesterday", "no recording 'yesterday'"),
    (
        "--scorer {headroom} --recording one.csv --recording worker01=two.csv",
        "one.csv and two.csv both answer any query: name a CLUSTER= for each",
    ),
    ("--scorer {headroom} --recording other.json", "other.json: no scorer of yours asks for it"),
    ("--scorer {headroom} --recording twins.json", '2 series have the same labels ("pod=a")'),
    ("--scorer {headroom} --recording rowless.csv", "rowless.csv has no rows"),
    ("--scorer {headroom} --recording holes.csv", "holes.csv: there is no finite sample"),
    ("--scorer {headroom} --recording empty.json", "empty.json has no series for the query"),
    ("--scorer {headroom} --recording none.json", "none.json has no queries"),
    ("--scorer {nowhere}", "{nowhere}/config: "),
    ("--scorer {headroom}", "headroom on worker01: source: "),
    ("--scorer {headroom} --recording worker01=one.csv", "headroom on worker02: source: "),
    ("--scorer {headroom} --prometheus-url {nowhere}", "headroom on worker01: source: Unreachable"),
    ("--scorer {taken} --recording one.csv", "score sample-my-score: another scorer of the demo"),
    ("--scorer {headroom} --scorer {headroom}", "score headroom: another scorer of the demo"),
    ("--scorer {pushed}", "write Prometheus or None instead of OpenTelemetry"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[words for words, _ in WRONG])
def test_what_cannot_be_used_is_one_sentence(
    scorers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("time,value\n0,1\n60,2\n")
    (tmp_path / "rowless.csv").write_text("time,value\n")
    (tmp_path / "holes.csv").write_text("time,value\n0,\n60,NaN\n")
    recording(tmp_path / "twins.json", {"pod": "a"}, {"pod": "a"})
    recording(tmp_path / "empty.json")
    recording(tmp_path / "other.json", {}, query="up")
    (tmp_path / "none.json").write_text('{"step": 60, "queries": []}')
    arguments = words.format(**scorers).split()
    port = [] if "--port" in arguments else ["--port", "0"]
    code, _, err = invoked(demo, *port, *arguments)
    lines = err.splitlines()
    assert code in {1, 2}
    assert said.format(**scorers) in lines[-1]
    assert len(lines) == (1 if code == 1 else 4)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_table_says_which_moment_is_now_and_which_window_it_cannot_fill(
    scorers: dict[str, str], tmp_path: Path
) -> None:
    """Twelve and a half days from a Monday on: the newest week is left, and the clock is in it."""
    hours = "".join(f"{1_772_409_600 + hour * 3600},{hour}\n" for hour in range(300))
    (tmp_path / "hours.csv").write_text(f"time,value\n{hours}")
    words = ("--recording", f"worker01={tmp_path / 'hours.csv'}")
    for name, short in (("headroom", ""), ("fortnight", "; a window of 1209600 s is filled by")):
        before = datetime.now(UTC)
        _, out, _ = invoked(demo, "--port", "0", "--scorer", scorers[name], *words)
        line = next(line for line in out.splitlines() if "hours.csv: " in line)
        assert "1 series, 168 steps of 3600 s, on worker01, now at 2026-03-" in line
        moment = datetime.fromisoformat(line.split("now at ")[1].split()[0])
        hours_apart = (before - moment).total_seconds() // 3600 % 168
        assert hours_apart in {0, 167}
        assert (short in line, ";" in line) == (True, bool(short))
