"""The states of a rollout: what is enforced and runs between two steps, with its objects."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from dsf.kube.port import Object
from optimizer.domain.solution import PolicyEnforcement
from optimizer.wire.explanation import EnforcedPolicy
from optimizer.wire.plan_record import RecordedStep, RolloutPlan
from optimizer.wire.result import ObjectRef
from optimizer.wire.rollout import ReplicaRef, StepActions

ObjectKey = tuple[str, str]
"""Kind and name of a generated object; all are in one namespace."""


class Replica(NamedTuple):
    """A workload on one cluster."""

    workload: str
    cluster: str


@dataclass(frozen=True, slots=True)
class RolloutState:
    """What is enforced and runs once a step is complete, and the objects that say so.

    `keep`: replicas that run on while a policy of their cluster is replaced, so no claim is
    required of them. `uncovered`: workloads that the plan lets run on too few clusters here.
    """

    policies: frozenset[PolicyEnforcement]
    replicas: frozenset[Replica]
    objects: Mapping[ObjectKey, Object]
    keep: frozenset[Replica] = frozenset()
    uncovered: frozenset[str] = frozenset()


def key_of(obj: Object) -> ObjectKey:
    """Return the key of a generated object."""
    return str(obj["kind"]), str(obj["metadata"]["name"])


def actions_between(before: RolloutState, after: RolloutState) -> StepActions:
    """Return what changes from one state to another; GPUs are not named."""
    return StepActions(
        enforce=policy_refs(after.policies - before.policies),
        release=policy_refs(before.policies - after.policies),
        start=replica_refs(after.replicas - before.replicas),
        stop=replica_refs(before.replicas - after.replicas),
        keep=replica_refs(after.keep),
        uncovered=tuple(sorted(after.uncovered)),
    )


def recorded(states: Iterable[RolloutState], namespace: str) -> Iterator[RecordedStep]:
    """Yield the steps between neighbouring states, without those that write nothing."""
    for before, after in pairwise(states):
        write = [obj for key, obj in after.objects.items() if before.objects.get(key) != obj]
        gone = [key for key in before.objects if key not in after.objects]
        yield RecordedStep(
            actions=actions_between(before, after),
            write=tuple(write),
            delete=tuple(
                ObjectRef(kind=kind, namespace=namespace, name=name) for kind, name in gone
            ),
        )


def states_of(plan: RolloutPlan) -> tuple[RolloutState, ...]:
    """Return the states of a recorded rollout: the start, and one after each step."""
    states = [
        RolloutState(
            frozenset(_enforcements(plan.policies)),
            frozenset(_refs(plan.replicas)),
            {key_of(obj): obj for obj in plan.objects},
        )
    ]
    for step in plan.steps:
        states.append(_after(states[-1], step))
    return tuple(states)


def workloads_of(states: Iterable[RolloutState]) -> frozenset[str]:
    """Return the workloads that run in any state."""
    return frozenset(item.workload for state in states for item in state.replicas)


def _after(before: RolloutState, step: RecordedStep) -> RolloutState:
    done = step.actions
    gone = {(item.kind, item.name) for item in step.delete}
    kept = {key: obj for key, obj in before.objects.items() if key not in gone}
    return RolloutState(
        before.policies - set(_enforcements(done.release)) | set(_enforcements(done.enforce)),
        before.replicas - set(_refs(done.stop)) | set(_refs(done.start)),
        {**kept, **{key_of(obj): obj for obj in step.write}},
        frozenset(_refs(done.keep)),
        frozenset(done.uncovered),
    )


def policy_refs(found: Iterable[PolicyEnforcement]) -> tuple[EnforcedPolicy, ...]:
    """Return policies of a state as the wire shows them."""
    return tuple(EnforcedPolicy(**item._asdict()) for item in sorted(found))


def replica_refs(found: Iterable[Replica]) -> tuple[ReplicaRef, ...]:
    """Return replicas of a state as the wire shows them."""
    return tuple(ReplicaRef(**item._asdict()) for item in sorted(found))


def _enforcements(found: Iterable[EnforcedPolicy]) -> Iterator[PolicyEnforcement]:
    return (PolicyEnforcement(item.cluster, item.policy) for item in found)


def _refs(found: Iterable[ReplicaRef]) -> Iterator[Replica]:
    return (Replica(item.workload, item.cluster) for item in found)
