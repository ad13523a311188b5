"""Each program of the samples as an application, by the name of its package."""

from collections.abc import Callable

from fastapi import FastAPI

from sample_scorers.ai_workload.app import create_app as ai_workload
from sample_scorers.latency.score import scorer as latency
from sample_scorers.llm_forecast.__main__ import LanguageModel
from sample_scorers.llm_forecast.score import config as llm_config
from sample_scorers.llm_forecast.score import score as llm_score
from sample_scorers.llm_forecast.shared_model.app import create_app as shared_model
from sample_scorers.llm_forecast.shared_model.model_client import ForecastSettings
from sample_scorers.prediction.combination.app import create_app as combination
from sample_scorers.prediction.score import config as prediction_config
from sample_scorers.prediction.score import scorer as prediction
from sample_scorers.sample.score import scorer as sample
from sample_scorers.scoring_service.application import ServedScorer, create_app
from sample_scorers.static.app import create_app as static

NO_MODEL = "http://127.0.0.1:9/v1"


def llm_template(model_url: str) -> FastAPI:
    model = LanguageModel(model_url, "my-model")
    return create_app(ServedScorer(llm_config(), lambda series: llm_score(series, model.ask)))


APPS: dict[str, Callable[[str], FastAPI]] = {
    "sample": lambda _: create_app(sample()),
    "static": lambda _: static(),
    "prediction": lambda _: create_app(prediction(prediction_config())),
    "prediction.combination": lambda _: combination(),
    "llm_forecast": llm_template,
    "llm_forecast.shared_model": lambda url: shared_model(ForecastSettings(url, "my-model")),
    "latency": lambda _: create_app(latency()),
    "ai_workload": lambda _: ai_workload(),
}
"""At the URL of a model, which only those of `llm_forecast` need."""

SHIPPED = {"prediction": "prediction.combination", "llm_forecast": "llm_forecast.shared_model"}
"""What the image of a folder runs, if that is not its template."""
