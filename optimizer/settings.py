"""What an operator of the optimizer can choose."""

from dataclasses import dataclass
from typing import Literal

from dsf.api import names
from optimizer.mig.policies import GPU_OPERATOR, MigLabels

SolverName = Literal["highs", "cbc"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the optimizer; `missing_score` is the value of a pair without a usable score."""

    cluster_label_key: str = "cluster-name"
    claim_name: str = names.CLUSTER_CLAIM
    solver: SolverName = "highs"
    time_limit_seconds: float = 30.0
    missing_score: Literal["forbid"] | float = "forbid"
    max_solves: int = 4
    mig: MigLabels = GPU_OPERATOR


DEFAULTS = Settings()
