"""What the controller observes, kind by kind: values, not objects.

Of the fleet's objects only what matters here is kept, so that thousands of managed clusters with
dozens of scores each fit into memory: see `dsf.hub.observe`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.api.scoring_api import ScorerConfig

Object = Mapping[str, Any]
Key = tuple[str, str]

CLUSTER_UNAVAILABLE = "ClusterUnavailable"


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

    `config` is None where it was not asked for. `unknown` names the fields of its document that
    nobody reads.
    """

    health: ProbeFailure | None = None
    config: ScorerConfig | ProbeFailure | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something on a managed cluster that is not as it should be; `since` is an RFC 3339 time.

    Other words for the same are no news: they may hold a number that changes with every round.
    """

    reason: str
    message: str = field(compare=False)
    since: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A ManagedCluster."""

    name: str
    accepted: bool = True
    leaving: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class AddOn:
    """The add-on on one managed cluster."""

    leaving: bool = False
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Our ManifestWork on one managed cluster.

    `text` is the `data.summaries` that it carries. `drifted` is the whole object where it is not
    exactly the work that we would write with that text.
    """

    text: str
    uid: str = ""
    version: str = field(default="", compare=False)
    leaving: bool = False
    drifted: Object | None = None
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """An AddOnPlacementScore that carries our label; times are RFC 3339 in UTC, or empty.

    `trouble` is the first stage that failed in the agent's last round, `answered` tells whether
    the scoring API gave usable scores in it.
    """

    score_label: str
    uid: str = ""
    created: str = ""
    valid_until: str = field(default="", compare=False)
    answered: bool = False
    trouble: Trouble | None = None
