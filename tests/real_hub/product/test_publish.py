"""A real API server accepts every converted score, written with the agent's own rights."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from msgspec import Raw

from dsf.agent.publish.placement_score import RoundReport
from dsf.agent.publish.publisher import Publisher
from dsf.agent.score.result_rules import ConversionSettings, convert
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.kube.client.connect import connect

from .conftest import AGENT_NAMESPACE, SCORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

SEED = 20261120
STRANGE = ("", " ", "a b", "ä/ö", "日本", "\x00", "\x1b[0m", '"', "\\", "\u2028", "😀", "x" * 300)
SUMMARY = ScorerSummary(
    name="odd",
    score_name="odd_score",
    source_type="None",
    scoring_endpoint="http://scorer.example/scoring",
    scoring_interval=30,
    score_dimension_format="${app}",
)


@pytest.fixture
def own_object(hub: Hub, agents: dict[str, Part]) -> Iterator[tuple[str, str, str]]:
    """The object that a test publishes; it is deleted afterwards."""
    found = (*SCORE, "odd-score")
    yield found
    hub.api.delete(*found, "east")


def numbers(count: int) -> list[float]:
    draw = random.Random(SEED)  # noqa: S311 - the same odd numbers every time
    odd = [float("nan"), float("inf"), float("-inf"), -0.0, 1e308, -1e308, 5e-324, 100.9, -100.1]
    return odd + [draw.choice((1.0, 1e3, 1e300)) * draw.uniform(-1, 1) for _ in range(count)]


@pytest.mark.parametrize(
    ("names", "cut"),
    [
        ([*STRANGE, *(f"app-{n}" for n in range(10_000))], False),
        # More than fits into an object: the agent cuts what the API server would refuse.
        ([f"{n:05}-{'é' * 240}" for n in range(10_000)], True),
    ],
    ids=["strange", "too many"],
)
async def test_scores_are_taken_as_they_were_converted(
    hub: Hub, east: ManagedCluster, own_object: tuple[str, str, str], names: list[str], cut: bool
) -> None:
    folder = east.mount_secret(AGENT_NAMESPACE, "dynamic-scoring-framework-hub-kubeconfig")
    dimension = DimensionFormat.parse(SUMMARY.score_dimension_format)
    assert isinstance(dimension, DimensionFormat)
    results = [
        ScoringResult(Raw(json.dumps({"app": name}).encode()), score)
        for name, score in zip(names, numbers(len(names)), strict=False)
    ]
    scores = convert(
        results, ConversionSettings("east", SUMMARY.score_name, dimension, series=20_000)
    )
    assert ("EntryCut" in scores.adjusted) == cut

    async with connect(folder / "kubeconfig") as kube:
        publisher = Publisher(kube, "east", lambda: datetime.now(UTC))
        for _ in range(2):  # the second time everything is there already
            told = await publisher.publish(SUMMARY, RoundReport.success(scores), seconds=60)
            assert told.failure is None
    entries = hub.api.get(*own_object, "east")["status"]["scores"]
    assert [(e["name"], e["value"]) for e in entries] == [(e.name, e.value) for e in scores.entries]
