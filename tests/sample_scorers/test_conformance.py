"""Every sample passes `dsf scorer check`."""

from collections.abc import Callable

import pytest
from fastapi import FastAPI

from dsf.cli.root import root
from sample_scorers.latency.app import create_app as latency_app
from sample_scorers.llm_forecast.app import create_app as llm_forecast_app
from sample_scorers.llm_forecast.model_client import ForecastSettings
from sample_scorers.prediction.app import create_app as prediction_app
from sample_scorers.sample.app import create_app as sample_app
from sample_scorers.static.app import create_app as static_app
from tests.command_line import invoked
from tests.sample_scorers.fake_model import Server
from tests.sample_scorers.serving import SCORERS, served

SMALL = ("--series", "50")
STATIC = ("--dimension-format", "${app};${device}", *SMALL)


def passes(url: str, *options: str) -> None:
    code, out, err = invoked(root, "scorer", "check", url, *options)
    assert code == 0, out + err


@pytest.mark.parametrize("create", [sample_app, prediction_app, latency_app])
def test_a_sample_with_a_source_passes_the_check(create: Callable[[], FastAPI]) -> None:
    with served(create()) as url:
        passes(url, *SMALL)


def test_a_sample_tells_that_a_request_is_too_large() -> None:
    """It used to close the connection while the body arrived, so nobody saw its answer."""
    with served(sample_app()) as url:
        size = ("--series", "3300", "--samples", "120")
        code, out, _ = invoked(root, "scorer", "check", url, *size)
    assert code == 0
    assert "answered 413" in out
    assert "shorten its range" in out


def test_the_static_scorers_pass_the_check() -> None:
    with served(static_app()) as url:
        passes(f"{url}/performance/config", *STATIC)
        passes(f"{url}/powerconsumption/config", *STATIC)
        passes(f"{url}/cost/config", "--dimension-format", "${device}", *SMALL)
        passes(f"{url}/carbon/config", "--dimension-format", "${scoreName}", *SMALL)


def test_the_latency_of_recorded_probes_passes_the_check() -> None:
    data = str(SCORERS / "latency/static/data.json")
    with served(latency_app()) as url:
        passes(url, "--data", data, "--dimension-format", "${app}", *SMALL)


def test_the_llm_forecast_passes_the_check() -> None:
    with (
        served(Server().app()) as model,
        served(llm_forecast_app(ForecastSettings(f"{model}/v1", "tiny"))) as url,
    ):
        passes(url, *SMALL)
