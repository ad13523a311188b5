"""What the policies on a managed cluster say, as one value."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

COMPLIANT = "Compliant"


@dataclass(frozen=True, slots=True, order=True)
class PolicyVersion:
    """One policy as it is asked for: another uid or generation is another policy."""

    name: str
    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class PolicyCompliance:
    """The policies seen at one moment, and those of them that are Compliant."""

    policies: frozenset[PolicyVersion] = frozenset()
    compliant: frozenset[PolicyVersion] = frozenset()

    @property
    def digest(self) -> str:
        """A short name for exactly these policies, whatever their compliance."""
        lines = [f"{item.name}/{item.uid}/{item.generation}" for item in sorted(self.policies)]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def policy_compliance(policies: Iterable[Mapping[str, Any]]) -> PolicyCompliance:
    """Read Policy objects (`policy.open-cluster-management.io/v1`).

    Anything but `status.compliant: Compliant`, no state at all included, is not compliant.
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
