"""The program of each image that the charts name, as it is started here."""

import sys

DSF = (sys.executable, "-m", "dsf")
SAMPLES = {
    "sample-scorer": "sample",
    "static-scorer": "static",
    "simple-prediction-scorer": "prediction.combination",
    "latency-scorer": "latency",
    "ai-workload-scorer": "ai_workload",
    "llm-forecast-scorer": "llm_forecast.shared_model",
}
"""The package that each image of a sample scorer runs."""


def entrypoint(image: str) -> tuple[str, ...]:
    """The words that stand for the entry point of an image; raises KeyError for a foreign one."""
    name = image.rpartition("/")[2].partition("@")[0].partition(":")[0]
    if name == "dynamic-scoring-framework":
        return DSF
    return (sys.executable, "-m", f"sample_scorers.{SAMPLES[name]}")
