"""Scores as bars, their history by a Prometheus, and looks again whenever one changes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from dsf.cli.prometheus import MAX_VALUES, PastValues, PrometheusRefused, past_values
from dsf.cli.scores import score_changes, score_looks, scores
from dsf.cli.terminal_drawing import ASCII_LEVELS, LEVELS, MOST_BARS, bar, bars, history
from dsf.kube.embedded.http.server import kubeconfig, serving
from dsf.kube.errors import Unreachable
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Kube, list_objects
from tests.command_line import invoked_meanwhile
from tests.dsf.cli.test_scores import hub_of_scores
from tests.eventually import eventually
from tests.house.marker import MARKER, raw
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.spellings import CANARY, SPELLINGS, spelled_pieces

DAY = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def test_a_bar_is_as_long_as_its_share_of_the_scale() -> None:
    assert bar(50, 0, 100, ASCII_LEVELS, 10) == "#####"
    assert bar(0, -100, 100, ASCII_LEVELS, 10) == "#####"
    assert bar(-100, -100, 100, ASCII_LEVELS, 10) == "#"
    assert bar(1000, 0, 100, LEVELS, 10) == "█" * 10


def test_bars_have_one_scale_and_expired_scores_none() -> None:
    entries = {"app": {"east": 100, "west": 50}, "web": {"east": 25}}
    table = bars("speed", entries, {("speed", "west")}, ASCII_LEVELS)
    assert table.columns == ("dimension", "cluster", "value", "0 to 100")
    assert [(*row[:3], len(row[3])) for row in table.rows] == [
        ("app", "east", "100", 40),
        ("app", "west", "50 (expired)", 0),
        ("web", "east", "25", 10),
    ]
    assert bars("speed", {"app": {"east": -1}}, (), LEVELS).columns[3] == "-100 to 100"


def test_a_large_fleet_is_counted_and_names_are_escaped() -> None:
    many = {MARKER: {f"c{number}": 1 for number in range(1000)}}
    table = bars("speed", many, (), LEVELS)
    assert table.rows[-1][0] == f"({1000 - MOST_BARS} more)"
    assert not raw(str(table))


def test_history_names_a_score_as_its_object() -> None:
    labels = {"ds_score_name": "My_Speed", "ds_cluster": "east"}
    found = [
        PastValues(labels, (1.0, float("nan"), 8.0)),
        PastValues({**labels, "ds_score_name": "other"}, (1.0,)),
        PastValues({}, ()),
    ]
    table = history(found, ["my-speed"], ASCII_LEVELS)
    assert table.rows == [("my-speed", "east", "_ #", "1", "8", "8")]


async def test_each_change_of_a_score_is_a_new_look() -> None:
    hub = await hub_of_scores()
    looks = score_changes(hub, pause=0)
    await anext(looks)
    waiting = asyncio.ensure_future(anext(looks))
    await asyncio.sleep(0)
    status = {"status": {"scores": [{"name": "app", "value": 1}]}}
    await hub.patch(ADD_ON_PLACEMENT_SCORE, "speed", status, "worker01", subresource="status")
    await asyncio.wait_for(waiting, 10)
    await looks.aclose()


async def test_a_hub_that_goes_away_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    async def said_again() -> bool:
        return "trying again" in capsys.readouterr().err

    gone: list[Fault] = []
    hub = Faulty(await hub_of_scores(), lambda _: gone[0] if gone else None)
    looks = score_looks(hub, count_scores, pause=0)
    before = await anext(looks)
    gone.append(Fault(Unreachable("connection refused")))
    waiting = asyncio.ensure_future(anext(looks))
    await eventually(said_again)
    assert not waiting.done()
    gone.clear()
    assert await asyncio.wait_for(waiting, 10) == before
    await looks.aclose()


async def test_a_hub_that_never_answered_ends_the_watch() -> None:
    hub = Faulty(await hub_of_scores(), lambda _: Fault(Unreachable("connection refused")))
    with pytest.raises(Unreachable):
        await anext(score_looks(hub, count_scores, pause=0))


async def count_scores(kube: Kube) -> int:
    return len(await list_objects(kube, ADD_ON_PLACEMENT_SCORE))


@asynccontextmanager
async def prometheus(answer: web.Response) -> AsyncIterator[str]:
    async def answered(_: web.Request) -> web.Response:
        return answer

    app = web.Application()
    app.router.add_get("/{rest:.*}", answered)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def answer_of(cluster: str) -> web.Response:
    metric = {"ds_score_name": "speed", "ds_cluster": cluster}
    series = {"metric": metric, "values": [[DAY, "1"], [DAY + 60, "3"]]}
    return web.json_response({"status": "success", "data": {"result": [series]}})


async def test_bars_and_history_are_printed(tmp_path: Path) -> None:
    async with serving(await hub_of_scores()) as url, prometheus(answer_of("worker01")) as past:
        config = tmp_path / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        code, out, err = await invoked_meanwhile(
            scores, f"--kubeconfig={config}", "--plot", f"--prometheus-url={past}"
        )
    assert (code, err) == (0, "")
    tables = [table.splitlines() for table in out.split("\n\n")]
    assert tables[0][1].split() == ["DIMENSION", "CLUSTER", "VALUE", "0", "TO", "100"]
    assert tables[0][2].split()[:3] == ["app", "worker01", "60"]
    assert tables[2][0] == "History"
    assert tables[2][2].split()[-3:] == ["1", "3", "3"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda: web.Response(status=503, text="<html>"), 'HTTP 503: "no JSON"'),
        (lambda: web.json_response({"status": "error", "error": MARKER}, status=400), "HTTP 400: "),
        (lambda: web.json_response({"status": "success", "data": {}}), "not one of a Prometheus"),
        (lambda: web.Response(text="[" * 100_000), '"no JSON"'),
        (lambda: web.Response(text=f"[{'0,' * MAX_VALUES}0]"), f"more than {MAX_VALUES} values"),
    ],
)
async def test_a_prometheus_that_gives_no_series_is_told(answer: object, said: str) -> None:
    async with prometheus(answer()) as url:  # type: ignore[operator]
        with pytest.raises(PrometheusRefused) as refused:
            await past_values(url, "q", start=0, end=60, step=60)
    assert said in str(refused.value)
    assert not raw(str(refused.value))


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "answer",
    [
        lambda text: web.json_response({"status": "error", "error": text}, status=400),
        lambda text: web.Response(status=502, text=text),
        lambda text: answer_of(f"worker01 {text}"),
    ],
)
async def test_a_prometheus_that_repeats_the_password_of_its_url_is_not_shown(
    answer: Callable[[str], web.Response], spelling: str, tmp_path: Path
) -> None:
    async with (
        serving(await hub_of_scores()) as hub,
        prometheus(answer(SPELLINGS[spelling](CANARY))) as url,
    ):
        config = tmp_path / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(hub)), encoding="utf-8")
        named = url.replace("://", f"://me:{CANARY}@")
        code, out, err = await invoked_meanwhile(
            scores, f"--kubeconfig={config}", f"--prometheus-url={named}"
        )
    assert code == 1
    assert spelled_pieces(CANARY, out + err) == []
