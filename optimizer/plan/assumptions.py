"""What a decision rests on, in words: what its policies supply and its workloads request."""

from collections.abc import Iterable

from dsf.api.untrusted_text import UntrustedName
from optimizer.domain.fleet import Fleet, Supply
from optimizer.domain.quantity import format_quantity
from optimizer.domain.solution import Decision


def assumptions(fleet: Fleet, decision: Decision) -> dict[str, str]:
    """Return what each enforced policy supplies, and what each assigned workload requests.

    The keys are `policy NAME` and `workload NAME`, the values such as `supplies 2 gpu of 3g.48gb`.
    """
    enforced = {choice.policy for choice in decision.policies}
    assigned = {item.workload for item in decision.assignments}
    supplies = {
        f"policy {UntrustedName(item.policy)}": _said("supplies", item.supplies)
        for cluster in fleet.clusters
        for item in cluster.candidates
        if item.policy in enforced
    }
    requests = {
        f"workload {UntrustedName(item.name)}": _said(
            "requests",
            (
                Supply(item.kind, "", item.amount),
                *(Supply(kind, "", amount) for kind, amount in item.requests),
            ),
        )
        for item in fleet.workloads
        if item.name in assigned
    }
    return supplies | requests


def _said(verb: str, supplies: Iterable[Supply]) -> str:
    parts = (
        f"{format_quantity(float(item.amount))} {UntrustedName(item.kind)}"
        + (f" of {UntrustedName(item.device)}" if item.device else "")
        for item in supplies
    )
    return f"{verb} {', '.join(parts) or 'nothing'}"
