"""Settings of the LLM forecast scorer."""

from dataclasses import dataclass
from pathlib import Path

from ..wire import PROMETHEUS_URL
from .completion_api import CompletionApi

MOST_CORES = 2048.0
"""CPU cores that no node exceeds: the largest machines of the clouds have 1920."""


@dataclass(frozen=True)
class ForecastSettings:
    """Which model is used, and the limits of one scoring request.

    `endpoint` is the base URL of an OpenAI-compatible server, for example http://vllm:8000/v1.
    `deadline` is in seconds and bounds one scoring request with all its prompts; it should be
    below the scoring interval. At most `concurrency` prompts are sent at a time. `max_value` is in
    cores. With `fallback`, series without a forecast get a statistical one that says so. The token
    in `model_token_file` is sent to the model instead of that of the agent.
    """

    endpoint: str
    model: str
    prometheus_url: str = PROMETHEUS_URL
    api: CompletionApi = "chat"
    deadline: float = 50.0
    concurrency: int = 4
    max_series: int = 200
    max_value: float = MOST_CORES
    max_reply_tokens: int = 4096
    tokens_per_hour: int | None = None
    fallback: bool = False
    model_token_file: Path | None = None
