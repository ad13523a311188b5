"""What an operator of the optimizer can choose."""

from dataclasses import dataclass
from typing import Literal

from dsf.api import names
from optimizer.domain.mig_labels import GPU_OPERATOR, MigLabels

SolverName = Literal["highs", "cbc"]


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """Settings of the optimizer; `missing_score` is the value of a pair without a usable score.

    `gap`: how far from the best, as a share of the value, a proven decision may be.
    `memory_mib`: the address space of a solver's process; 0 for no limit. `seed`: of the search.
    `max_places`: workloads x devices of one request, which sets the memory that a solve needs.
    `max_listed`: entries of scores that one answer lists.
    """

    cluster_label_key: str = "cluster-name"
    claim_name: str = names.CLUSTER_CLAIM
    solver: SolverName = "highs"
    time_limit_seconds: float = 30.0
    gap: float = 0.0
    memory_mib: int = 8_192
    seed: int = 0
    missing_score: Literal["forbid"] | float = "forbid"
    max_solves: int = 4
    max_places: int = 40_000_000
    max_listed: int = 500_000
    mig: MigLabels = GPU_OPERATOR


DEFAULTS = OptimizerSettings()
