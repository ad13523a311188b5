"""The settings that an operator chooses, and the names by which policies set a MIG layout."""

from dataclasses import dataclass
from typing import Literal

from dsf.api import names


@dataclass(frozen=True, slots=True)
class MigLabels:
    """The labels by which a layout is asked for and confirmed, and the ConfigMap that holds it.

    `present` selects the node where a candidate names none.
    """

    wanted: str = "nvidia.com/mig.config"
    state: str = "nvidia.com/mig.config.state"
    done: str = "success"
    present: str = "nvidia.com/gpu.present"
    config_map: str = "dsf-mig-parted-config"
    config_namespace: str = "gpu-operator"


GPU_OPERATOR = MigLabels()
GUIDE = MigLabels(wanted="migsettinglabel", state="migresultlabel", done="true")
"""The labels with which the development guide mocks the GPU operator's."""

SolverName = Literal["highs", "cbc"]

ANSWER_GAP = 0.001
"""Optimality gap at which solving stops where a person waits for the answer.

To prove the rest can take many times as long as to find the plan.
"""


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """Settings of the optimizer.

    `missing_score`: the value of an app on a device without a usable score. `gap`: the relative
    optimality gap at which solving stops. `memory_mib`: the address space of the solver's process
    in MiB; 0 for no limit. `seed`: of the heuristic search. `max_solves`: plans made at once.
    `max_places`: workloads x devices of one request, which bounds the memory of a solve.
    `max_listed`: score entries in one response. `default_toleration_seconds`: for so long what runs
    on a cluster that is lost stays there; 0 for not at all, and kube-apiserver's default is the
    same. `prefer_no_select_cost`: see Fleet.avoidance_cost. `pending_grace_seconds`: for so long
    Pods may lack a node until plans avoid the cluster for their workload. `plan_history_limit`:
    PlacementPlans kept for each optimization, the current one included. `rollout_namespaces`:
    namespaces whose Stepwise rollouts are executed; none: all. `prometheus_url`: where the history
    of scores is read; empty: nowhere. `watched_score_entries`: of how many entries scores are kept
    in memory; 0: of none. `record_key_secret`: namespace and name of the Secret whose key signs
    records.
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
    default_toleration_seconds: int = 300
    prefer_no_select_cost: float = 10.0
    pending_grace_seconds: int = 300
    plan_history_limit: int = 10
    rollout_namespaces: tuple[str, ...] = ()
    prometheus_url: str = ""
    watched_score_entries: int = 4_000_000
    record_key_secret: tuple[str, str] = (names.HUB_NAMESPACE, names.RECORD_KEY_SECRET)
    mig: MigLabels = GPU_OPERATOR


DEFAULTS = OptimizerSettings()
