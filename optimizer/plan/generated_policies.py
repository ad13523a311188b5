"""The generated Policies of a decision."""

from collections.abc import Iterator

from dsf.api.names import SUPPLY_AMOUNT, SUPPLY_DEVICE, SUPPLY_KIND
from dsf.kube.port import Object
from optimizer.domain.fleet import CandidatePolicy, Fleet
from optimizer.domain.gpu_layout import gpu_name
from optimizer.domain.mig_manager_settings import MigLabels
from optimizer.domain.solution import Decision
from optimizer.mig.mig_parted import layout_text
from optimizer.mig.policy_spec import generated_policy, policy_specs
from optimizer.snapshot.annotations import PREFIX


def generated_policies(fleet: Fleet, decision: Decision, labels: MigLabels) -> Iterator[Object]:
    """Yield the Policies of the generated candidates that a decision chose.

    They state their supplies like hand-written policies, so a later request can list them.
    """
    chosen = set(decision.policies)
    for cluster in fleet.clusters:
        made = [
            item
            for item in cluster.candidates
            if item.layouts and (cluster.name, item.policy) in chosen
        ]
        for item, spec in zip(made, policy_specs(made, labels) if made else (), strict=True):
            yield generated_policy(fleet.owner, item.policy, _said(cluster.name, item), spec)


def _said(cluster: str, item: CandidatePolicy) -> Object:
    """Return the labels of the wire contract if there is one supply, else an annotation."""
    pool = {f"{PREFIX}pool": item.pool} if item.pool else {}
    alone = {f"{PREFIX}cluster": cluster, f"{PREFIX}layouts": _layouts(item)}
    if len(item.supplies) == 1:
        (supply,) = item.supplies
        return {
            "labels": {
                SUPPLY_KIND: supply.kind,
                SUPPLY_DEVICE: supply.device,
                SUPPLY_AMOUNT: str(int(supply.amount)),
                **pool,
            },
            "annotations": alone,
        }
    listed = ",".join(f"{item.kind}/{item.device}={int(item.amount)}" for item in item.supplies)
    return {"labels": pool, "annotations": {**alone, f"{PREFIX}supplies": listed}}


def _layouts(item: CandidatePolicy) -> str:
    """Return the layout of each GPU, in the form that PolicySpec.layouts reads."""
    return ",".join(
        f"{gpu_name(node.node, index)}={layout_text(gpu)}"
        for node in item.layouts
        for index, gpu in enumerate(node.gpus)
    )
