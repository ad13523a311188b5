"""What the controller observes: everything that a plan is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.api.scoring_api import ScorerConfig

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """What is probed for a scorer: its `configURL`, and whether its config is fetched as well."""

    config_url: str
    full: bool


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """An endpoint that gave no usable answer: a CamelCase reason and a message for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What a scoring API answered: `health` is None where it is well.

    `config` is None where it was not asked for.
    """

    health: ProbeFailure | None = None
    config: ScorerConfig | ProbeFailure | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The hub at one moment, as Kubernetes objects, and the last answers of the scoring APIs.

    `refusals` tells, by managed cluster, why the API server refused our last write there.
    """

    scorers: tuple[Object, ...] = ()
    config: Object | None = None
    clusters: tuple[Object, ...] = ()
    works: tuple[Object, ...] = ()
    probes: Mapping[Target, Probe] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
