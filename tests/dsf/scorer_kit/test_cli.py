"""`dsf scorer check` as an author meets it: options, exit codes, output."""

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from dsf.cli.root import root
from tests.command_line import invoked, invoked_meanwhile
from tests.dsf.agent.servers import matrix
from tests.dsf.scorer_kit.scorers import (
    QUERY,
    TOKEN,
    TestApi,
    broken,
    changed,
    config,
    protected,
    served,
    unless,
)
from tests.house.marker import MARKER, forged_lines, raw, unquoted
from tests.spellings import SPELLINGS, spelled_pieces

SMALL = ("--series", "20", "--samples", "5")


async def checked(url: str, *options: str) -> tuple[int, str, str]:
    return await invoked_meanwhile(root, "scorer", "check", url, *SMALL, *options)


async def test_a_correct_api_is_exit_code_0() -> None:
    async with served({"api": TestApi()}) as url:
        code, out, err = await checked(f"{url}/api/config")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("16 passed, 0 warnings, 0 failed, 2 skipped; 19 calls")


async def test_a_broken_api_is_exit_code_1_and_json_for_programs() -> None:
    api = TestApi(unless(lambda body, _: b"NaN" in body, broken))
    async with served({"api": api}) as url:
        code, out, err = await checked(f"{url}/api/config", "-o", "json")
    assert (code, err) == (1, "")
    document = json.loads(out)
    assert document["passed"] is False
    findings = {one["name"]: one["findings"] for one in document["checks"]}
    assert {one["severity"] for one in findings["not-finite"]} == {"error"}
    assert findings["not-finite"][0]["fix"]


@pytest.mark.parametrize("command", ["check", "try", "backtest", "register"])
def test_an_api_that_does_not_answer_is_exit_code_2_and_one_line(command: str) -> None:
    code, out, err = invoked(root, "scorer", command, "http://127.0.0.1:9")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("Error: GET http://127.0.0.1:9/config: ")


async def test_an_address_that_agents_may_not_call_is_not_called() -> None:
    code, _, err = await checked("http://169.254.169.254/latest/meta-data")
    assert code == 2
    assert "link-local" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ftp://scorer"], "write it as http://host:port"),
        (["http://user:word@scorer"], "remove it and use auth.tokenSecretRef"),
        (["http://scorer", "--skip", "speed"], "no check 'speed'; there are: health"),
        (["http://scorer", "--dimension-format", "${pods}"], "unknown placeholder"),
        (["http://scorer", "--series", "10001"], "10001 is not in the range"),
        (["http://scorer", "--timeout", "soon"], "is not a duration"),
        (["http://scorer", "--token-file", "{tmp}/two-lines"], "holds no token"),
        (["http://scorer", "--ca-file", "{tmp}/two-lines"], "holds no PEM certificate"),
        (["http://scorer", "--data", "{tmp}/two-lines"], "is not JSON"),
        (["http://scorer", "--data", "{tmp}/one.csv"], "try and backtest take .csv"),
        (["http://scorer", "--data", "{tmp}/empty.json"], "has no series"),
        (["http://scorer", "--data", "{tmp}/text.json"], "series 0"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "two-lines").write_text("a token\nand more")
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "one.csv").write_text("time,value\n0,1\n")
    (tmp_path / "text.json").write_text('{"data": [{"metric": {}, "values": [[0, 1]]}]}')
    filled = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    code, _, err = invoked(root, "scorer", "check", *filled)
    assert code == 2
    assert said in err


async def test_the_token_of_a_file_is_sent(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    async with served({"api": TestApi(protected())}) as url:
        code, out, _ = await checked(f"{url}/api/config", "--token-file", str(tmp_path / "token"))
    assert code == 0
    assert TOKEN not in out


@pytest.mark.parametrize("command", ["check", "try"])
@pytest.mark.parametrize("status", [200, 500])
async def test_a_token_that_is_sent_back_is_not_shown(
    tmp_path: Path, command: str, status: int
) -> None:
    spelled = "\n".join([TOKEN, *(spell(TOKEN) for spell in SPELLINGS.values())])
    results = [{"metric": {"node": spelled}, "score": spelled}]

    async def echo(request: web.Request) -> web.StreamResponse:
        # Also without a token: a server may remember the one of an earlier call.
        assert request.headers.get("Authorization", "Bearer").startswith("Bearer")
        return web.json_response({"detail": spelled, "results": results}, status=status)

    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "data.json").write_text('{"data": []}')
    options = ("--token-file", str(tmp_path / "token"), "--data", str(tmp_path / "data.json"))
    async with served({"api": TestApi(echo)}) as url:
        code, out, err = await invoked_meanwhile(
            root, "scorer", command, f"{url}/api/config", *options
        )
    assert code == 1
    assert status == 200 or "not repeated, because it was sent a credential" in out + err
    assert TOKEN not in out + err
    assert spelled_pieces(TOKEN, out + err) == []


@pytest.mark.parametrize("command", ["check", "try", "register"])
async def test_a_private_authority_is_trusted_if_it_is_named(tmp_path: Path, command: str) -> None:
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    api = TestApi(config=lambda base: config(base, {"type": "None"}))
    async with served({"api": api}, tls=context) as url:
        typed = ("scorer", command, f"{url}/api/config")
        code, _, err = await invoked_meanwhile(root, *typed)
        assert code == 2
        assert "certificate" in err
        code, out, _ = await invoked_meanwhile(root, *typed, "--ca-file", str(tmp_path / "ca.crt"))
    assert code == 0
    assert out


@pytest.mark.parametrize("form", ["request", "prometheus"])
async def test_the_series_of_a_file_are_sent(tmp_path: Path, form: str) -> None:
    sent = list[Any]()

    async def respond(request: web.Request) -> web.StreamResponse:
        sent.append(json.loads(await request.read()))
        return web.json_response({"results": []})

    series = ({"pod": "mine"}, [[0, "1"]])
    data = {"data": [{"metric": series[0], "values": series[1]}]}
    content = data if form == "request" else matrix(series)
    (tmp_path / "data.json").write_text(json.dumps(content))
    async with served({"api": TestApi(respond)}) as url:
        await checked(f"{url}/api/config", "--data", str(tmp_path / "data.json"))
    assert sent[0] == data


async def test_text_of_a_hostile_api_is_shown_quoted() -> None:
    def refusing() -> web.StreamResponse:
        return web.Response(status=500, text=MARKER)

    served_config = config("/api") | {"name": MARKER, MARKER: MARKER}
    api = TestApi(unless(lambda *_: True, refusing), lambda _: served_config)
    async with served({"api": api}) as url:
        code, out, _ = await checked(f"{url}/api/config")
    assert code == 1
    assert (raw(out), forged_lines(out), unquoted(out)) == (set(), [], False)


def reference(score: str, source: dict[str, Any], interval: int = 30) -> dict[str, Any]:
    return {
        "name": f"{score.removesuffix('_score').replace('_', '-')}-scorer",
        "description": "A score",
        "source": source,
        "scoring": {"params": {"name": score, "interval": interval}},
    }


def asking(query: str, step: int, **more: str) -> dict[str, Any]:
    params = {"query": query, "range": 3600, "step": step}
    return {"type": "Prometheus", "host": "http://prometheus:9090", **more, "params": params}


PATH = {"path": "/api/v1/query_range"}
THANOS = {"host": "https://thanos-querier.openshift-monitoring.svc.cluster.local:9091", **PATH}
POWER_BY_DEVICE = (
    "sum(DCGM_FI_DEV_POWER_USAGE) by (GPU_I_ID, GPU_I_PROFILE, exported_pod, Hostname)"
)
TOKENS_BY_POD = "sum(irate(vllm:generation_tokens_total[1m])) by (pod)"
REFERENCE: dict[str, Any] = {
    "sample": reference("sample_my_score", asking(QUERY, 60, **PATH, type="prometheus")),
    "prediction": reference("simple_prediction_score", asking(f"{QUERY};{QUERY}", 30, **PATH)),
    "llm-forecast": reference("llm_forecast_score", asking(QUERY, 60), interval=60),
    "performance": reference("example_performance_score", {"type": "None"}),
    "powerconsumption": reference(
        "example_powerconsumption_score", {"type": "none", "host": "", "path": ""}
    ),
    "ai-workload-power": reference(
        "ai_workload_power_score", asking(POWER_BY_DEVICE, 60, **THANOS)
    ),
    "ai-workload-perf": reference("ai_workload_perf_score", asking(TOKENS_BY_POD, 60, **THANOS)),
}
"""The configs of the reference project's five sample scorers, of which `static` and `ai-workload`
have two each; the path of each call is added."""


def by_app_and_device(found: list[Any]) -> list[Any]:
    """Label results as the reference's AI workload scorer does: by the pod and the profile."""
    for one in found:
        pod, profile = one["metric"].get("exported_pod"), one["metric"].get("GPU_I_PROFILE")
        if pod is not None:
            one["metric"] = {"app": pod, "device": profile}
    return found


@pytest.mark.parametrize("name", REFERENCE)
async def test_the_shapes_of_the_reference_scorers_pass(name: str) -> None:
    document = REFERENCE[name]
    document["scoring"]["path"] = f"/{name}/scoring"
    api = TestApi(changed(by_app_and_device), config=lambda _: document)
    async with served({name: api}) as url:
        code, out, _ = await checked(f"{url}/{name}/config")
    assert code == 0, out
