# SPDX-License-Identifier: Apache-2.0
"""Serve the forecasts of a language model: `python -m` and the name of this package."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import httpx
from starlette.exceptions import HTTPException

from ..scoring_service import program
from ..scoring_service.application import ServedScorer, create_app
from ..scoring_service.bearer_token import read_token
from .score import INSTRUCTION, config, score

NAME = "llm-forecast-scorer"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = program.command_line(NAME, "Scores each pod by a language model's forecast.")
    program.add_prometheus_option(parser)
    add_model_options(parser)
    args = parser.parse_args(argv)
    if not args.endpoint or not args.model:
        parser.error("set VLLM_ENDPOINT and MODEL_NAME, or use --endpoint and --model")
    model = LanguageModel(args.endpoint, args.model, args.model_token_file)
    served = ServedScorer(config(args.prometheus_url), lambda series: score(series, model.ask))
    return program.serve(NAME, create_app(served), args)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the model, and the token for its server."""
    for option, variable, kind, meaning in (
        ("--endpoint", "VLLM_ENDPOINT", program.http_url, "server such as http://vllm:8000/v1"),
        ("--model", "MODEL_NAME", str, "name of the model on that server"),
        ("--model-token-file", "MODEL_TOKEN_FILE", program.token_file, "token for that server"),
    ):
        default = os.environ.get(variable) or None
        parser.add_argument(option, type=kind, default=default, help=f"{meaning}; also {variable}")


@dataclass(frozen=True)
class LanguageModel:
    """A model behind an OpenAI-compatible server, such as http://vllm:8000/v1."""

    endpoint: str
    name: str
    token_file: Path | None = None
    deadline: float = 50.0
    """Seconds of one question: less than an agent waits."""
    max_bytes: int = 256 * 1024
    max_retry_seconds: int = 3600

    def ask(self, data: str) -> str:
        """Return the reply to a question; raises HTTPException, which the agents are answered."""
        until, roles = time.monotonic() + self.deadline, (("system", INSTRUCTION), ("user", data))
        messages = [{"role": role, "content": text} for role, text in roles]
        body = {"model": self.name, "temperature": 0, "messages": messages}
        token = read_token(self.token_file) if self.token_file else None
        # So that max_bytes limits what is decoded, too.
        headers = {"Accept-Encoding": "identity"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        url, reply = f"{self.endpoint}/chat/completions", b""
        try:
            with (
                httpx.Client(timeout=self.deadline, trust_env=False) as client,
                client.stream("POST", url, json=body, headers=headers) as answer,
            ):
                for piece in answer.iter_raw():
                    reply += piece
                    if len(reply) > self.max_bytes or time.monotonic() > until:
                        raise HTTPException(502, f"{url} answers too much, or too slowly")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HTTPException(502, f"no answer from {url} ({type(error).__name__})") from error
        if answer.status_code != HTTPStatus.OK:
            detail = f"{url} answered {answer.status_code}; check the model's name and token"
            wait = answer.headers.get("retry-after", "")[:10]
            if not wait.isdecimal():
                raise HTTPException(502, detail)
            seconds = min(int(wait), self.max_retry_seconds)
            raise HTTPException(503, detail, headers={"Retry-After": str(seconds)})
        try:
            return str(json.loads(reply)["choices"][0]["message"]["content"])
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise HTTPException(502, f"{url} did not answer with a completion") from error


if __name__ == "__main__":
    sys.exit(main())
