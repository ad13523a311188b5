"""What a step waits for because of others: policies that they hold, workloads that they run."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from dsf.api.conditions import is_true
from dsf.api.optimization import Optimization
from dsf.api.untrusted_text import UntrustedName, counted, listed
from dsf.kube.changes import Change, Create
from dsf.kube.kinds import PLACEMENT_BINDING, POLICY
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import Selector
from optimizer.domain.solution import PolicyEnforcement
from optimizer.follow.rollout.rollout_state import RolloutState
from optimizer.plan.manifests import generated_name
from optimizer.snapshot.object_readers import replica_set_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.namespace_reader import Dependent
from optimizer.snapshot.ownership.others import contradicting, dependents_of_others
from optimizer.wire.plan_record import RolloutPlan
from optimizer.wire.rollout import RolloutWait, UncoveredOthers


def held_policies(
    state: RolloutState,
    changes: Iterable[Change],
    observation: Observation,
    owner: Optimization,
    select: Mapping[str, Selector],
) -> Iterator[RolloutWait]:
    """Yield what a step waits for whose new bindings would contradict policies of others.

    A policy that does not exist contradicts none; that it is missing shows once it is bound.
    """
    made = [obj for obj in state.objects.values() if obj["kind"] == POLICY.kind]
    choices = sorted(_newly_bound(state, changes, owner))
    for choice, item in contradicting(choices, observation, owner, select, made):
        yield RolloutWait(
            reason="HeldByOthers",
            message=f"{item.owner} enforces policy {UntrustedName(item.policy.policy)} on"
            f" cluster {UntrustedName(choice.cluster)}, where {owner} would enforce"
            f" {UntrustedName(choice.policy)}: wait for it, or undo or cancel the rollout",
        )


def uncovered_workloads(
    plan: RolloutPlan,
    state: RolloutState,
    changes: Iterable[Change],
    observation: Observation,
    select: Mapping[str, Selector],
    *,
    workloads: Collection[str],
    claim_name: str,
) -> Iterator[RolloutWait]:
    """Yield what a step waits for that would uncover workloads of others by its new bindings.

    It uncovers only what the plan announced, and one replica after another: a workload first runs
    again where an earlier step has uncovered it. `workloads`: those of the rollout.
    """
    bound = {choice.cluster for choice in _newly_bound(state, changes, plan.owner)}
    if not bound:
        return
    found = dependents_of_others(
        observation, plan.owner, select, workloads=frozenset(workloads), claim_name=claim_name
    )
    announced = _announced(plan)
    runs = set(_running(observation))
    for cluster in sorted(bound & found.keys()):
        expected = announced.get(cluster, ())
        where = f"cluster {UntrustedName(cluster)}"
        if new := [item for item in found[cluster] if not _is_announced(item, expected)]:
            yield RolloutWait(
                reason="UncoversOthers",
                message=f"{counted(len(new), 'workload')} of others on {where} would be uncovered"
                " that the plan did not announce: undo or cancel the rollout, and plan again",
            )
        for item in found[cluster]:
            others = [name for name in announced if name != cluster and item in found.get(name, ())]
            gone = [name for name in others if (*item.key, name) not in runs]
            if gone and not item.left_over:
                yield RolloutWait(
                    reason="OthersNotRunning",
                    message=f"before a policy of {where} changes, a workload of others there has"
                    f" to run again on {listed(gone)}",
                )


def _newly_bound(
    state: RolloutState, changes: Iterable[Change], owner: Optimization
) -> Iterator[PolicyEnforcement]:
    created = {
        change.name
        for change in changes
        if isinstance(change, Create) and change.kind == PLACEMENT_BINDING
    }
    for choice in state.policies:
        if generated_name("binding", owner, choice) in created:
            yield choice


def _announced(plan: RolloutPlan) -> dict[str, tuple[UncoveredOthers, ...]]:
    steps = (item for step in plan.actions for item in step.uncovers_others)
    found = members_by_key((item.cluster, item) for item in steps)
    return {cluster: tuple(items) for cluster, items in found.items()}


def _is_announced(item: Dependent, announced: Iterable[UncoveredOthers]) -> bool:
    """Return whether a plan announced a workload, or others that it could not name."""
    return any(
        item.workload in entry.workloads
        if entry.namespace == item.namespace
        else not entry.namespace
        for entry in announced
    )


def _running(observation: Observation) -> Iterator[tuple[str, str, str]]:
    """Yield namespace, workload and cluster of each available replica."""
    for work in observation.works or ():
        deleting = work["metadata"].get("deletionTimestamp")
        if not deleting and is_true(work, "Applied") and is_true(work, "Available"):
            yield (*replica_set_of(work), str(work["metadata"]["namespace"]))
