"""Record the error responses of a real Prometheus.

python -m tests.real_sources.recorded.record URL
"""

import json
import sys
from pathlib import Path
from typing import Any

import httpx

FILE = Path(__file__).with_name("prometheus-2.42.json")

NOW = 1_700_000_000
_RANGE = {"start": str(NOW - 60), "end": str(NOW), "step": "5"}

REQUESTS: dict[str, tuple[str, dict[str, str]]] = {
    "unclosed braces": ("query", {"query": "up{"}),
    "unknown function": ("query", {"query": "nope(up)"}),
    "no query": ("query", {"query": ""}),
    "a range as a value": ("query", {"query": "up[5m] + 1"}),
    "a bad time": ("query", {"query": "up", "time": "abc"}),
    "step 0": ("query_range", {"query": "up", **_RANGE, "step": "0"}),
    "end before start": ("query_range", {"query": "up", **_RANGE, "end": "1"}),
    "too many points": ("query_range", {"query": "up", **_RANGE, "start": "1"}),
    "a bad expression": ("query", {"query": 'label_replace(up, "x", "y", "a", "(")'}),
    "a timeout": ("query", {"query": "up", "timeout": "0.000001"}),
    "an unknown path": ("nope", {}),
}


def ask(url: str, name: str) -> dict[str, Any]:
    """Return status, content type and body of the answer to a request."""
    path, parameters = REQUESTS[name]
    found = httpx.get(f"{url}/api/v1/{path}", params=parameters, trust_env=False)
    kind = found.headers["content-type"]
    return {"status": found.status_code, "content_type": kind, "body": found.text}


def main() -> None:
    """Write all answers of the server at the URL given."""
    answers = {name: ask(sys.argv[1], name) for name in REQUESTS}
    FILE.write_text(json.dumps(answers, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
