# SPDX-License-Identifier: Apache-2.0
"""Runs score.sh for each request: series on its standard input, results on its standard output."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SECONDS = 25
"""Longest run of score.sh: less than the agent waits with an interval of 30 s."""

CONFIG = json.loads((HERE / "config.json").read_text(encoding="utf-8"))
if "source" in CONFIG:
    CONFIG["source"]["host"] = os.environ.get("PROMETHEUS_URL", CONFIG["source"]["host"])


def score(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what score.sh makes of the series."""
    done = subprocess.run(
        ["sh", HERE / "score.sh"],
        input=json.dumps({"data": data}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return results
