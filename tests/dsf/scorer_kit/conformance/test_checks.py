"""Scoring APIs that break the contract in one way, and the check that names it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from dsf.scorer_kit.conformance.checks import CHECKS, NAMES
from dsf.scorer_kit.conformance.evidence import CheckSettings, ConformanceReport
from dsf.scorer_kit.conformance.run import check
from dsf.scorer_kit.invented_series import SeriesForm, invented
from dsf.scorer_kit.scorer_target import NamedApi, look_at, named_api
from tests.dsf.scorer_kit.scorers import (
    TOKEN,
    TestApi,
    broken,
    changed,
    config,
    counting,
    endless,
    never,
    parsed,
    protected,
    served,
    unless,
)
from tests.repository import ROOT

SECTION = (ROOT / "docs/how-to/scorer-kit.md").read_text().split("\n## Check ")[1].split("\n## ")[0]
TABLE = [line for line in SECTION.splitlines() if line.startswith("| `")]
NOW = 1_700_000_000
OWN = invented([SeriesForm(("node", "namespace", "pod"), 5, 60, NOW)], 3)
SMALL = {"series": 20, "samples": 5}


def replying(body: bytes, kind: str = "application/json", status: int = 200) -> TestApi:
    """Reply to every scoring request with the same answer, and refuse what is none."""

    async def respond(request: web.Request) -> web.StreamResponse:
        await parsed(request)
        return web.Response(body=body, status=status, content_type=kind)

    return TestApi(respond)


def configured(**changes: Any) -> TestApi:
    return TestApi(config=lambda path: config(path) | changes)


def scoring(**changes: Any) -> TestApi:
    return TestApi(config=lambda path: config(path, **changes))


def scaled(factor: float) -> TestApi:
    return TestApi(
        changed(lambda found: [{**one, "score": factor * one["score"]} for one in found])
    )


def relabelled(*labels: str) -> TestApi:
    return TestApi(
        changed(
            lambda found: [
                {**one, "metric": {name: one["metric"][name] for name in labels}} for one in found
            ]
        )
    )


def ok() -> web.StreamResponse:
    return web.json_response({"results": []})


WRONG: dict[str, tuple[TestApi, str, str]] = {
    # name: the API, the check that fails or warns, and a part of what it says
    "no-json": (TestApi(config=lambda _: b"<html>"), "config", "not JSON"),
    "no-name": (TestApi(config=lambda _: {"source": {}, "scoring": {}}), "config", "name"),
    "wrong-source": (configured(source={"type": "graphite"}), "config", "source.type"),
    "misspelt": (scoring(normalise={"min": 0, "max": 1}), "config", "did you mean"),
    "no-description": (configured(description=""), "registration", "description is empty"),
    "no-query": (configured(source={"host": "http://a"}), "registration", "MissingQuery"),
    "no-score-name": (scoring(params={"interval": 30}), "registration", "MissingScoreName"),
    "elsewhere": (scoring(host="http://192.0.2.1"), "registration", "another server"),
    "wrong-path": (scoring(path="/nowhere"), "scoring", "404"),
    "failing": (TestApi(unless(lambda *_: True, broken)), "scoring", "answered 500"),
    "redirecting": (replying(b"", status=307), "scoring", "redirects are not followed"),
    "endless": (TestApi(endless), "scoring", "is larger than 10240000 bytes"),
    "html": (replying(b"<html>", "text/html"), "schema", "malformed JSON"),
    "other-field": (replying(b'{"scores": []}'), "schema", "results"),
    "text-score": (
        replying(b'{"results": [{"metric": {}, "score": "high"}]}'),
        "schema",
        "expected a number",
    ),
    "number-label": (
        replying(b'{"results": [{"metric": {"pod": 1}, "score": 1}]}'),
        "schema",
        "labels",
    ),
    "untyped": (
        replying(b'{"results": [{"metric": {"pod": "a"}, "score": 1}]}', "text/plain"),
        "schema",
        "content type",
    ),
    "silent": (TestApi(changed(lambda _: [])), "schema", "no result"),
    "no-series-no-answer": (
        TestApi(unless(lambda body, _: body == b'{"data":[]}', broken)),
        "empty",
        "answered 500",
    ),
    "needs-samples": (
        TestApi(unless(lambda body, _: b'"values":[]' in body, broken)),
        "few-samples",
        "answered 500",
    ),
    "no-nan": (TestApi(unless(lambda body, _: b"NaN" in body, broken)), "not-finite", "500"),
    "nan-score": (
        TestApi(
            unless(
                lambda body, _: b"NaN" in body,
                lambda: web.Response(
                    text='{"results": [{"metric": {"pod": "a"}, "score": NaN}]}',
                    content_type="application/json",
                ),
            )
        ),
        "not-finite",
        "NaN or infinite",
    ),
    "small": (TestApi(unless(lambda body, _: body.count(b"metric") > 10, broken)), "large", "500"),
    "small-but-says-so": (
        TestApi(
            unless(
                lambda body, _: body.count(b"metric") > 10,
                lambda: web.Response(status=413, text="at most 10 series"),
            )
        ),
        "large",
        "at most 10 series",
    ),
    "random": (TestApi(counting()), "determinism", "different score"),
    "nameless": (relabelled(), "dimensions", "tell them apart"),
    "huge": (scaled(1e6), "values", "clamped"),
    "tiny": (scaled(1e-6), "values", "rounded down"),
    "outside": (configured(range={"max": -1}), "values", "outside the declared range ..-1"),
    "no-range": (configured(range={"min": 2, "max": 1}), "config", "min has to be less than max"),
    "control": (configured(unit="W\x1b[31m"), "config", "unit"),
    "strict-type": (
        TestApi(unless(lambda _, headers: "text/plain" in headers["Content-Type"], broken)),
        "content-type",
        "500",
    ),
    "crashing": (
        TestApi(unless(lambda body, _: body == b'{"data": [', broken)),
        "malformed",
        "500",
    ),
    "lenient": (
        TestApi(unless(lambda body, _: body in {b"[]", b"{}"}, ok)),
        "wrong-shape",
        "answered 200",
    ),
    "crashing-on-text": (
        TestApi(unless(lambda body, _: b"high" in body, broken)),
        "wrong-shape",
        "500",
    ),
}
WARNED = {
    "misspelt",
    "no-description",
    "untyped",
    "silent",
    "small-but-says-so",
    "huge",
    "outside",
    "tiny",
}
"""The APIs that pass nevertheless."""

RIGHT = {"correct": TestApi(), "protected": TestApi(protected()), "hanging": TestApi(never)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url() -> AsyncIterator[str]:
    async with served(RIGHT | {name: api for name, (api, _, _) in WRONG.items()}) as base:
        yield base


async def checked(url: str, form: str = "", **settings: Any) -> ConformanceReport:
    named = named_api(url, dimension_formats=[form] if form else [])
    assert isinstance(named, NamedApi)
    return await check(await look_at(named), CheckSettings(**(SMALL | settings)), NOW)


def told(report: ConformanceReport) -> dict[str, str]:
    """Return what checks found, by their names."""
    return {
        result.name: " ".join(finding.what for finding in result.findings)
        for result in report.results
        if result.findings
    }


def statuses(report: ConformanceReport) -> dict[str, str]:
    return {result.name: result.status for result in report.results}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("name", WRONG)
async def test_a_broken_promise_is_named_by_one_check(url: str, name: str) -> None:
    _, expected, part = WRONG[name]
    own = {"typical": OWN} if expected == "values" else {}
    report = await checked(f"{url}/{name}/config", **own)
    found = told(report)
    assert list(found) == [expected]
    assert part in found[expected]
    assert report.passed == (name in WARNED)


async def test_a_correct_api_passes_every_check(url: str) -> None:
    report = await checked(f"{url}/correct/config", typical=OWN)
    assert told(report) == {}
    assert statuses(report) == dict.fromkeys(NAMES, "passed") | {"token": "skipped"}
    assert report.dimension_format == "${node};${namespace};${pod}"


async def test_a_token_is_required_where_one_is_named(url: str) -> None:
    good = await checked(f"{url}/protected/config", token=TOKEN, typical=OWN)
    assert statuses(good) == dict.fromkeys(NAMES, "passed")
    open_ = await checked(f"{url}/correct/config", token=TOKEN)
    assert list(told(open_)) == ["token"]
    missing = await checked(f"{url}/protected/config")
    assert "--token-file" in str(missing.text())
    assert statuses(missing)["scoring"] == "failed"


async def test_only_latency_fails_where_no_answer_comes_in_time(url: str) -> None:
    report = await checked(f"{url}/hanging/config", seconds=0.05)
    assert list(told(report)) == ["latency"]
    assert report.calls == 1
    assert statuses(report)["malformed"] == "skipped"


async def test_nothing_is_called_after_the_time_limit(url: str) -> None:
    report = await checked(f"{url}/correct/config", total=0.0)
    assert report.calls == 0
    assert "is over" in report.text()


async def test_the_format_of_a_scorer_is_checked_if_it_is_given(url: str) -> None:
    missing = await checked(f"{url}/correct/config", "${app}")
    assert "without a label" in told(missing)["dimensions"]
    alike = await checked(f"{url}/correct/config", "${cluster}")
    assert "with the name of another" in told(alike)["dimensions"]


async def test_a_check_can_be_left_out(url: str) -> None:
    report = await checked(f"{url}/random/config", skipped=frozenset({"determinism"}))
    assert report.passed


async def test_an_unhealthy_server_fails_though_it_scores() -> None:
    async with served({"api": TestApi()}, health=lambda: 503) as url:
        assert sorted(told(await checked(f"{url}/api/config"))) == ["health", "survival"]


async def test_a_server_that_dies_of_a_wrong_request_is_named() -> None:
    state = {"health": 200}

    def dies() -> web.StreamResponse:
        state["health"] = 500
        return web.Response(status=400)

    api = TestApi(unless(lambda body, _: body == b"[]", dies))
    async with served({"api": api}, health=lambda: state["health"]) as url:
        assert list(told(await checked(f"{url}/api/config"))) == ["survival"]


async def test_another_server_is_never_called() -> None:
    other = TestApi()
    async with served({"api": other}) as elsewhere:
        api = TestApi(config=lambda path: config(path, host=elsewhere, path="/api/scoring"))
        async with served({"api": api}) as url:
            assert list(told(await checked(f"{url}/api/config"))) == ["registration"]
            assert other.asked == []
            named = named_api(f"{url}/api/config", f"{elsewhere}/api/scoring")
            assert isinstance(named, NamedApi)
            report = await check(await look_at(named), CheckSettings(**SMALL), NOW)
            assert report.passed
            assert len(other.asked) == report.calls


async def test_a_scorer_without_a_source_gets_no_series_and_may_ignore_the_body() -> None:
    bodies = list[bytes]()

    async def respond(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.read())
        found = [{"metric": {"app": "a", "device": device}, "score": 1} for device in "xy"]
        return web.json_response({"results": found})

    api = TestApi(respond, lambda path: config(path, {"type": "None"}))
    async with served({"api": api}) as url:
        report = await checked(f"{url}/api/config")
    assert report.passed
    assert report.dimension_format == "${app};${device}"
    assert sorted(told(report)) == ["content-type", "malformed", "wrong-shape"]
    assert not any(b"metric" in body and b"pod-0" in body for body in bodies)


async def test_the_calls_are_bounded(url: str) -> None:
    report = await checked(f"{url}/protected/config", token=TOKEN)
    assert report.calls == 21


async def test_the_report_says_the_same_to_programs(url: str) -> None:
    report = await checked(f"{url}/random/config")
    document = json.loads(json.dumps(report.document()))
    assert document["passed"] is False
    failed = [item["name"] for item in document["checks"] if item["status"] == "failed"]
    assert failed == ["determinism"]
    assert document["checks"][0]["promise"] in report.text()


async def test_every_check_is_broken_by_a_server_and_documented() -> None:
    named = {expected for _, expected, _ in WRONG.values()}
    assert set(NAMES) - named == {"health", "survival", "latency", "token"}
    assert len(CHECKS) == len(set(NAMES))
    assert [f"| `{item.name}` | {item.promise} |" for item in CHECKS] == TABLE
