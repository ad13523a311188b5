"""The compliance of the policies on a managed cluster at one moment."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

COMPLIANT = "Compliant"


@dataclass(frozen=True, slots=True, order=True)
class PolicyVersion:
    """A policy with its uid and generation: a policy that was edited or replaced is another one."""

    name: str
    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class PolicyCompliance:
    """The policies that exist, and those of them that are Compliant."""

    policies: frozenset[PolicyVersion] = frozenset()
    compliant: frozenset[PolicyVersion] = frozenset()

    @property
    def digest(self) -> str:
        """A hash of exactly these policies; it does not depend on their compliance."""
        lines = [f"{item.name}/{item.uid}/{item.generation}" for item in sorted(self.policies)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def policy_compliance(policies: Iterable[Mapping[str, Any]]) -> PolicyCompliance:
    """Return the compliance of Policy objects (`policy.open-cluster-management.io/v1`).

    A policy is compliant only if `status.compliant` is `Compliant`; a missing status is not.
    """
    seen = {_version(policy): policy for policy in policies}
    return PolicyCompliance(
        policies=frozenset(seen),
        compliant=frozenset(
            version
            for version, policy in seen.items()
            if (policy.get("status") or {}).get("compliant") == COMPLIANT
        ),
    )


def _version(policy: Mapping[str, Any]) -> PolicyVersion:
    metadata = policy["metadata"]
    return PolicyVersion(
        str(metadata["name"]), str(metadata.get("uid") or ""), int(metadata.get("generation") or 0)
    )
