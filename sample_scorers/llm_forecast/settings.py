"""What the LLM forecast scorer is told when it starts."""

from dataclasses import dataclass

from ..wire import PROMETHEUS_URL


@dataclass(frozen=True)
class ForecastSettings:
    """`endpoint` is the base URL of an OpenAI-compatible server, for example http://vllm:8000/v1.

    `deadline` (seconds) bounds one scoring request with all its questions to the model, of which
    at most `concurrency` are asked at a time; it should be below the scoring interval.
    """

    endpoint: str
    model: str
    prometheus_url: str = PROMETHEUS_URL
    deadline: float = 50.0
    concurrency: int = 4
    max_series: int = 200
