"""The scoring APIs of these tests, and how they are registered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dsf.sim.demo.scorers import sample_scorer, scoring_config, static_scorers
from sample_scorers.static.score import SHIPPED

from . import replay
from .parts import run_program

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.hub import Hub

PERFORMANCE = "example-performance-score"
POWER = "example-powerconsumption-score"
SAMPLE = "sample-my-score"
# Masked on west: what a Placement can tell the clusters apart by.
NEARNESS = "nearness-score"
SCORES = (PERFORMANCE, POWER, SAMPLE, NEARNESS)
NEAR = 77
MASKED = ("west", NEARNESS)
TOKEN = {"name": "api-auth-secret", "key": "token"}
MASK = {"clusterName": "west", "scoreName": "nearness_score"}


def start_scoring_apis(hub: Hub) -> list[Object]:
    """Start the sample scorers with a Prometheus, and return the DynamicScorers that name them."""
    prometheus = run_program(hub, "prometheus-replay", [str(Path(replay.__file__))], "/-/ready")
    sample = run_program(
        hub,
        "sample-scorer",
        ["-m", "sample_scorers.sample", f"--prometheus-url={prometheus}", "--port"],
        "/healthz",
    )
    tables = hub.directory / "scores.yaml"
    tables.write_text(yaml.safe_dump(quick_tables()))
    static = run_program(
        hub,
        "static-scorer",
        ["-m", "sample_scorers.static", f"--scores={tables}", "--port"],
        "/healthz",
    )
    return [sample_scorer(sample), *static_scorers(static), nearness(static)]


def quick_tables() -> list[dict[str, Any]]:
    """The shipped tables and one of ours, scored every second."""
    shipped = yaml.safe_load(SHIPPED.read_text())
    ours = {
        "path": "/nearness",
        "name": "nearness",
        "description": "How near a cluster is",
        "scoreName": "nearness_score",
        "scores": {"shop": {"any": NEAR}},
    }
    return [{**table, "interval": 1} for table in [*shipped, ours]]


def nearness(static: str) -> Object:
    """A scorer that uses only the health of the API: configSyncMode None."""
    [template, _] = static_scorers(static)
    spec = {
        **template["spec"],
        "configURL": f"{static}/nearness/config",
        "configSyncMode": "none",
        "source": {"type": "none"},
        "scoring": {
            "path": "/nearness/scoring",
            "params": {"name": "nearness_score", "interval": 1},
            "auth": {"tokenSecretRef": TOKEN},
        },
        "scoreDimensionFormat": "${app}",
    }
    return {**template, "metadata": {**template["metadata"], "name": "nearness"}, "spec": spec}


def token(namespace: str) -> Object:
    """The Secret that the scorer of ours refers to."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": TOKEN["name"], "namespace": namespace},
        "stringData": {TOKEN["key"]: "dummy-token-1234"},
    }


def masked_config() -> Object:
    """The DynamicScoringConfig, which masks one score on west."""
    return {**scoring_config(), "spec": {"masks": [MASK]}}
