"""Settings of the LLM forecast scorer."""

from dataclasses import dataclass

from ..wire import PROMETHEUS_URL


@dataclass(frozen=True)
class ForecastSettings:
    """Which model is used, and the limits of one scoring request.

    `endpoint` is the base URL of an OpenAI-compatible server, for example http://vllm:8000/v1.
    `deadline` is in seconds and bounds one scoring request with all its prompts; it should be
    below the scoring interval. At most `concurrency` prompts are sent at a time.
    """

    endpoint: str
    model: str
    prometheus_url: str = PROMETHEUS_URL
    deadline: float = 50.0
    concurrency: int = 4
    max_series: int = 200
