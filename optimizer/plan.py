"""The plan: a decision, what it rests on, and the changes that it implies."""

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from dsf.kube.changes import Change
from dsf.kube.port import Object
from optimizer.request import OptimizeRequest
from optimizer.results import Gap, Placed, Unplaced
from optimizer.solution import Solution


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision that can be shown, approved by its digest, and applied as it is.

    `digest` is the SHA-256 of the facts used, the decision and the changes; `basis` that of the
    facts that must not move between planning and applying.
    """

    digest: str
    basis: str
    request: OptimizeRequest
    solution: Solution
    policies: Mapping[str, str]
    placements: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]
    gaps: tuple[Gap, ...]
    manifests: tuple[Object, ...]
    changes: tuple[Change, ...]

    @property
    def output_yaml(self) -> str:
        """The generated objects as a YAML stream."""
        return yaml.safe_dump_all(self.manifests, sort_keys=False) if self.manifests else ""
