"""The rights that a user of the optimizer must have on the hub.

The optimizer gives nobody more than kubectl would: who plans may read what a plan shows, and who
applies may write what it writes. A patch needs no right of its own, because who may create and
delete an object can replace it.
"""

from collections.abc import Iterable

from dsf.kube import kinds
from dsf.kube.access_reviews import NonResourceAttributes, Right, missing_right, right
from dsf.kube.changes import Change
from dsf.kube.errors import KubeError
from dsf.kube.kinds import Kind
from optimizer.service.observe import SHARED_KINDS
from optimizer.snapshot.ownership.others import Dependents
from optimizer.wire.request_problem import RequestProblem, optimizer_forbidden

Rights = tuple[Right, ...]


def scraping_rights() -> Rights:
    """Return the right to read the metrics: the one that Kubernetes' own servers ask for."""
    return (NonResourceAttributes("get", "/metrics"),)


def listing_rights(namespace: str | None) -> Rights:
    """Return the rights to list the scores of a namespace, or of all clusters."""
    return (right("list", kinds.ADD_ON_PLACEMENT_SCORE, namespace or ""),)


def describing_rights() -> Rights:
    """Return the rights to see how the DynamicScorers describe their scores."""
    return (right("list", kinds.DYNAMIC_SCORER),)


def planning_rights(namespace: str) -> Rights:
    """Return the rights to see a plan for the workloads of a namespace."""
    return (
        right("list", kinds.ADD_ON_PLACEMENT_SCORE),
        right("list", kinds.MANAGED_CLUSTER),
        right("list", kinds.POLICY, namespace),
        right("list", kinds.MANIFEST_WORK_REPLICA_SET, namespace),
    )


def naming_rights() -> Rights:
    """Return the rights to see by name what other namespaces enforce and use."""
    return tuple(right("list", kind) for kind in SHARED_KINDS)


def status_rights(namespace: str) -> Rights:
    """Return the rights to see what OCM has made of the generated objects of a namespace."""
    return (
        right("list", kinds.MANAGED_CLUSTER),
        *(right("list", kind, namespace) for kind in SHARED_KINDS),
    )


def fleet_rights(namespace: str) -> Rights:
    """Return the rights to see the fleet: all scores, and the objects of a namespace."""
    return listing_rights(None) + status_rights(namespace)


def record_rights(namespace: str) -> Rights:
    """Return the rights to see the recorded plans of a namespace: what they generated, too."""
    listed = (kinds.PLACEMENT_PLAN, kinds.POLICY, kinds.PLACEMENT, kinds.PLACEMENT_BINDING)
    return tuple(right("list", kind, namespace) for kind in listed)


def keeping_rights(namespace: str) -> Rights:
    """Return the rights to see what is kept placed in a namespace."""
    return (right("list", kinds.PLACEMENT_OPTIMIZATION, namespace),)


def approving_rights(namespace: str) -> Rights:
    """Return the rights to approve a plan that waits: to see and to annotate it."""
    return (*keeping_rights(namespace), right("patch", kinds.PLACEMENT_OPTIMIZATION, namespace))


def constraining_rights(namespace: str, annotated: Iterable[Kind]) -> Rights:
    """Return the rights to read and annotate workloads of a namespace, or managed clusters."""
    return tuple(
        right(verb, kind, namespace if kind.namespaced else "")
        for kind in annotated
        for verb in ("get", "patch")
    )


def writing_rights(namespace: str, further: Iterable[Kind] = ()) -> Rights:
    """Return the rights to write Placements, PlacementBindings and further kinds."""
    written = dict.fromkeys((kinds.PLACEMENT, kinds.PLACEMENT_BINDING, *further))
    return tuple(right(verb, kind, namespace) for kind in written for verb in ("create", "delete"))


def resetting_rights(namespace: str) -> Rights:
    """Return the rights to delete what was generated, and to be told what goes on running."""
    return writing_rights(namespace) + status_rights(namespace)


def rollout_rights(namespace: str) -> Rights:
    """Return the rights to change a rollout, and to be told how far it is."""
    return resetting_rights(namespace) + record_rights(namespace)


def changing_rights(namespace: str, changes: Iterable[Change]) -> Rights:
    """Return the rights to make these changes in a namespace."""
    return writing_rights(namespace, (change.kind for change in changes))


def uncovering_rights(uncovers: Dependents, own: str) -> Rights:
    """Return the rights to uncover workloads of other namespaces than one's own.

    Who may write their Placements may stop them anyway. Who may not know their namespaces needs the
    right in all of them.
    """
    named = {item.namespace if item.named else "" for found in uncovers.values() for item in found}
    return tuple(
        right(verb, kinds.PLACEMENT, namespace)
        for namespace in sorted(named - {own})
        for verb in ("create", "delete")
    )


def lacking_own_right(error: KubeError) -> RequestProblem | None:
    """Return the problem of a call that the API server forbids to the optimizer itself, or None."""
    missing = missing_right(error)
    return optimizer_forbidden(str(missing), "nothing was written") if missing else None
