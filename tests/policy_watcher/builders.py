"""Policies as the policy framework replicates them to a managed cluster."""

from typing import Any

from dsf.kube.kinds import POLICY


def policy(
    name: str = "default.mig-3g",
    compliant: str | None = "Compliant",
    *,
    uid: str = "u1",
    generation: int = 1,
    namespace: str = "worker01",
) -> dict[str, Any]:
    return {
        "apiVersion": POLICY.api_version,
        "kind": POLICY.kind,
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "generation": generation},
        "spec": {"disabled": False, "policy-templates": []},
        **({} if compliant is None else {"status": {"compliant": compliant}}),
    }
