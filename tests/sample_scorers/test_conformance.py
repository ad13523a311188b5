"""Every sample passes `dsf scorer check`."""

from pathlib import Path

import pytest

from dsf.cli.root import root
from sample_scorers.llm_forecast.fake_model import Server
from sample_scorers.scoring_service.bearer_token import require_token
from sample_scorers.scoring_service.testing import served
from tests.command_line import invoked
from tests.sample_scorers.applications import APPS, NO_MODEL
from tests.sample_scorers.serving import SCORERS

SMALL = ("--series", "50")
STATIC = ("--dimension-format", "${app};${device}", *SMALL)


def passes(url: str, *options: str) -> None:
    code, out, err = invoked(root, "scorer", "check", url, *options)
    assert code == 0, out + err


@pytest.mark.parametrize("name", [name for name in APPS if name not in {"static", "ai_workload"}])
def test_a_sample_with_a_source_passes_the_check(name: str) -> None:
    few = ("--series", "10") if name == "llm_forecast" else SMALL
    with served(Server().app()) as model, served(APPS[name](f"{model}/v1")) as url:
        passes(url, *few)


def test_a_sample_with_a_token_passes_the_check(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("dummy-token-1234\n")
    app = APPS["sample"](NO_MODEL)
    require_token(app, file)
    with served(app) as url:
        passes(url, "--token-file", str(file), *SMALL)


def test_a_sample_tells_that_a_request_is_too_large() -> None:
    """It used to close the connection while the body arrived, so nobody saw its answer."""
    with served(APPS["sample"](NO_MODEL)) as url:
        size = ("--series", "3300", "--samples", "120")
        code, out, _ = invoked(root, "scorer", "check", url, *size)
    assert code == 0
    assert "answered 413" in out
    assert "shorten its range" in out


def test_the_static_scorers_pass_the_check() -> None:
    with served(APPS["static"](NO_MODEL)) as url:
        passes(f"{url}/performance/config", *STATIC)
        passes(f"{url}/powerconsumption/config", *STATIC)
        passes(f"{url}/cost/config", "--dimension-format", "${device}", *SMALL)
        passes(f"{url}/carbon/config", "--dimension-format", "${scoreName}", *SMALL)


def test_the_latency_of_recorded_probes_passes_the_check() -> None:
    data = str(SCORERS / "latency/static/data.json")
    with served(APPS["latency"](NO_MODEL)) as url:
        passes(url, "--data", data, "--dimension-format", "${app}", *SMALL)
