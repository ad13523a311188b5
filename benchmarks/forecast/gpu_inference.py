"""Makes the recording gpu-inference: the GPU utilisation of a made LLM service on four clusters.

Requests arrive as a Poisson process; its rate has a wave of two hours (a day, compressed), a
random walk and bursts, with another phase on each cluster. Output lengths are lognormal with a
median of 90 tokens. A GPU makes 4,200 tokens a minute, the rest waits in a queue of at most five
minutes; the utilisation is the share of a minute that it works. Nothing of it is measured.

    python -m benchmarks.forecast.gpu_inference > dsf/scorer_kit/recordings/gpu-inference.json
"""

import json
import math
import random
import sys
from collections.abc import Iterator

SEED = 7
CLUSTERS = 4
MINUTES = 720
WAVE_MINUTES = 120
REQUESTS_A_MINUTE = 12.0
MEDIAN_TOKENS, SPREAD_OF_TOKENS = 90.0, 1.0
TOKENS_A_MINUTE = 4_200.0
LONGEST_QUEUE_MINUTES = 5
QUERY = "avg by (cluster) (DCGM_FI_DEV_GPU_UTIL)"


def recording() -> dict[str, object]:
    source = random.Random(SEED)  # noqa: S311  # a made load
    series = [
        {
            "metric": {"cluster": f"cluster{index + 1}"},
            "values": [round(value, 1) for value in utilisation(source, index / CLUSTERS)],
        }
        for index in range(CLUSTERS)
    ]
    description = "Made by benchmarks/forecast/gpu_inference.py, not measured; see README.md"
    return {"description": description, "step": 60, "queries": [{"query": QUERY, "series": series}]}


def utilisation(source: random.Random, phase: float) -> Iterator[float]:
    """Yield the percent of each minute that the GPU works."""
    walk, burst, left, queue = 0.0, 1.0, 0, 0.0
    for minute in range(MINUTES):
        walk += source.gauss(0, 0.015)
        if left == 0 and source.random() < 1 / 90:
            left, burst = 1 + int(source.expovariate(1 / 6)), source.uniform(1.5, 2.5)
        wave = 1 + 0.5 * math.sin(2 * math.pi * (minute / WAVE_MINUTES + phase))
        rate = REQUESTS_A_MINUTE * wave * math.exp(walk) * (burst if left else 1.0)
        left = max(left - 1, 0)
        queue += sum(_tokens(source) for _ in range(_poisson(source, rate)))
        queue = min(queue, TOKENS_A_MINUTE * LONGEST_QUEUE_MINUTES)
        done = min(queue, TOKENS_A_MINUTE)
        queue -= done
        yield 100 * done / TOKENS_A_MINUTE


def _tokens(source: random.Random) -> float:
    return MEDIAN_TOKENS * math.exp(source.gauss(0, SPREAD_OF_TOKENS))


def _poisson(source: random.Random, rate: float) -> int:
    """Return the number of arrivals in a minute, by the times between them."""
    count, time = 0, source.expovariate(rate)
    while time < 1:
        count, time = count + 1, time + source.expovariate(rate)
    return count


if __name__ == "__main__":
    json.dump(recording(), sys.stdout)
    sys.stdout.write("\n")
