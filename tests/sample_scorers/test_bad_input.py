"""Every sample answers bad input as the table in sample_scorers/README.md says."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from sample_scorers.ai_workload.signals import ACTIVITY, POWER, RUNNING, TOKENS
from sample_scorers.llm_forecast.fake_model import Server
from sample_scorers.scoring_service.bearer_token import require_token
from sample_scorers.scoring_service.testing import client, served
from tests.sample_scorers.applications import APPS
from tests.sample_scorers.serving import SCORERS

TOKEN = "dummy-token-1234"
JSON = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
Labels = dict[str, str]
Samples = list[list[Any]]


def plain(n: int) -> list[Labels]:
    return [{"node": "n", "namespace": "x", "pod": f"p{n}"}]


def probe(n: int) -> list[Labels]:
    return [{"__name__": "probe_duration_seconds", "app": f"a{n}"}]


def served_tokens(n: int) -> list[Labels]:
    pod = {"namespace": "x", "pod": f"a{n}"}
    return [{"signal": TOKENS, **pod}, {"signal": RUNNING, **pod}, device(n)]


def drawn_power(n: int) -> list[Labels]:
    return [{"signal": POWER, "Hostname": "h", "gpu": f"{n}"}, device(n)]


def device(n: int) -> Labels:
    workload = {"exported_namespace": "x", "exported_pod": f"a{n}"}
    return {"signal": ACTIVITY, "Hostname": "h", "gpu": f"{n}", **workload}


@dataclass(frozen=True)
class Sample:
    """A sample's scoring path, and the labels of the series that make its nth result."""

    folder: str
    path: str = "/scoring"
    labels: Callable[[int], list[Labels]] = plain

    def body(self, samples: Samples, count: int = 1) -> bytes:
        data = [
            {"metric": labels, "values": samples} for n in range(count) for labels in self.labels(n)
        ]
        return json.dumps({"data": data[:10_000]}, separators=(",", ":")).encode()


SAMPLES = [
    Sample("sample"),
    Sample("prediction"),
    Sample("prediction.combination"),
    Sample("llm_forecast"),
    Sample("llm_forecast.shared_model"),
    Sample("latency", labels=probe),
    Sample("static", "/performance/scoring"),
    Sample("static", "/cost/scoring"),
    Sample("ai_workload", "/performance/scoring", served_tokens),
    Sample("ai_workload", "/power/scoring", drawn_power),
]
QUICK = SAMPLES[:1]
"""The samples to which the quick suite sends much."""


def named(sample: Sample) -> str:
    return sample.folder + sample.path


for_every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=named)
Answer = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, httpx.Client]]:
    """Serve each sample once, with a token; the model of llm_forecast repeats the last value."""
    token_file = tmp_path_factory.mktemp("token") / "token"
    token_file.write_text(TOKEN)
    with ExitStack() as stack:
        model = stack.enter_context(served(Server().app()))
        yield {
            name: stack.enter_context(client(protected(create(f"{model}/v1"), token_file)))
            for name, create in APPS.items()
        }


def protected(app: FastAPI, token_file: Path) -> FastAPI:
    require_token(app, token_file)
    return app


@pytest.fixture
def ask(sample: Sample, clients: dict[str, httpx.Client]) -> Answer:
    def asked(body: bytes | Iterator[bytes], **headers: str) -> httpx.Response:
        sent = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
        answer = clients[sample.folder].post(sample.path, content=body, headers=sent)
        assert answer.status_code < 500, answer.text
        assert "Traceback" not in answer.text
        return answer

    return asked


def documented() -> dict[str, int]:
    """Return the statuses of the README's table by request."""
    text = (SCORERS / "README.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (\d{3}) \|", text, re.MULTILINE)
    return {request: int(status) for request, status in rows}


STATUS = documented()
ONE: Samples = [[1700000000, "0.5"]]


def results(answer: httpx.Response) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


@for_every_sample
def test_no_series(ask: Answer, sample: Sample) -> None:
    answer = ask(b'{"data": []}')
    assert answer.status_code == STATUS["an empty list of series"]
    assert bool(results(answer)) == (sample.folder == "static")


@for_every_sample
def test_one_point(ask: Answer, sample: Sample) -> None:
    answer = ask(sample.body(ONE))
    assert answer.status_code == STATUS["a series with one sample"]
    assert results(answer)


@for_every_sample
@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf"])
def test_samples_that_are_not_finite(ask: Answer, sample: Sample, text: str) -> None:
    answer = ask(sample.body([[1700000000, text], [1700000060, text]]))
    assert answer.status_code == STATUS["only samples that are `NaN` or infinite"]
    assert bool(results(answer)) == (sample.folder == "static")


@for_every_sample
@pytest.mark.parametrize("text", ["abc", "", "1,5", "0x10", "1e999", "nan"])
def test_samples_that_are_not_numbers(ask: Answer, sample: Sample, text: str) -> None:
    answer = ask(sample.body([[1700000000, "1"], [1700000060, text]]))
    assert answer.status_code == STATUS["a sample that is not a number"]
    assert "data[0].values[1][1]" in answer.json()["detail"]


@for_every_sample
def test_series_with_equal_labels(ask: Answer, sample: Sample) -> None:
    twice = json.loads(sample.body(ONE))["data"] * 2
    answer = ask(json.dumps({"data": twice}).encode())
    assert answer.status_code == STATUS["two series with equal labels"]
    assert results(answer)


@for_every_sample
def test_a_label_that_is_named_twice(ask: Answer, sample: Sample) -> None:
    body = b'{"data":[{"metric":{"pod":"a","pod":"b"},"values":[[1700000000,"1"]]}]}'
    answer = ask(body)
    assert answer.status_code == STATUS["a label that a series names twice"]
    pods = [each["metric"]["pod"] for each in results(answer) if "pod" in each["metric"]]
    assert pods == (["b"] if sample.labels is plain and sample.folder != "static" else [])


@pytest.mark.parametrize(
    "sample",
    [
        each if each in QUICK else pytest.param(each, marks=pytest.mark.exhaustive)
        for each in SAMPLES
    ],
    ids=named,
)
def test_ten_thousand_series(ask: Answer, sample: Sample) -> None:
    answer = ask(sample.body(ONE, count=10_000))
    if sample.folder.startswith("llm_forecast"):
        assert answer.status_code == STATUS["10,000 series, to `llm_forecast`"]
        assert "aggregate more in the query" in answer.json()["detail"]
        return
    assert answer.status_code == STATUS["10,000 series"]
    assert results(answer)


@pytest.mark.exhaustive
@for_every_sample
def test_a_million_points(ask: Answer, sample: Sample) -> None:
    size = 1_000_000 // len(sample.labels(0))
    answer = ask(sample.body([[1, "1"]] * size))
    assert answer.status_code == STATUS["a million samples within 8 MiB"]
    assert results(answer)


@for_every_sample
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_more_than_8_mib(ask: Answer, sample: Sample, declared: bool) -> None:
    body = b" " * (8 * 1024 * 1024 + 1)
    answer = ask(body if declared else iter([body]))
    assert answer.status_code == STATUS["a body over 8 MiB"]
    assert "shorten its range" in answer.json()["detail"]


@for_every_sample
@pytest.mark.parametrize("content_type", ["text/plain", "application/x-protobuf", "nonsense"])
def test_another_content_type(ask: Answer, sample: Sample, content_type: str) -> None:
    answer = ask(sample.body(ONE), Content_Type=content_type)
    assert answer.status_code == STATUS["another content type than JSON"]


@for_every_sample
def test_what_is_not_json(ask: Answer, sample: Sample) -> None:
    assert ask(b"node_load1 0.5\n").status_code == STATUS["a body that is not JSON"]


@for_every_sample
@pytest.mark.parametrize("authorization", ["", "Bearer wrong-token", f"Basic {TOKEN}"])
def test_a_missing_or_wrong_token(ask: Answer, sample: Sample, authorization: str) -> None:
    answer = ask(sample.body(ONE), Authorization=authorization)
    assert answer.status_code == STATUS["without the token, or with a wrong one"]
    assert TOKEN not in answer.text
