"""The steps of a rollout: a plan's transition as the objects that each stage writes.

OCM stops a workload only while its Placement exists and selects nothing: the ManifestWorks of a
ManifestWorkReplicaSet whose Placement is missing stay as they are. So a workload that stops has a
Placement with `numberOfClusters: 0` from the first step to the last.

OCM also stops a workload on a cluster whose claim is not compliant any more. So before a policy is
replaced under a workload that keeps running, the workload's Placement stops requiring that claim,
and requires it again once the claim is compliant.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dsf.kube.changes import merge_patch
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY, Kind
from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet, Selector, Workload
from optimizer.domain.settings import OptimizerSettings
from optimizer.domain.solution import Decision, PolicyEnforcement, TimeLeft
from optimizer.follow.record.content import packed
from optimizer.follow.record.plan_annotations import PLAN_ANNOTATIONS
from optimizer.follow.record.recorded_plan import MAX_STEPS_CHARACTERS
from optimizer.follow.rollout.rollout_state import (
    ObjectKey,
    Replica,
    RolloutState,
    key_of,
    policy_refs,
    recorded,
    replica_refs,
)
from optimizer.model.current_state import current_state, with_enforced_candidates
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.plan.generated_objects import selecting_nothing
from optimizer.plan.manifests import manifests, workload_placement
from optimizer.plan.uncovered_others import as_result
from optimizer.snapshot.object_readers import cluster_selectors, generated_by, name_of, placement_of
from optimizer.snapshot.observation import (
    KeptObjects,
    Observation,
    only_kept,
    read_current_decisions,
)
from optimizer.snapshot.ownership.others import Dependents
from optimizer.transition.policy_replacement import policy_replacements
from optimizer.transition.transition import Transition, plan_transition
from optimizer.transition.transition_steps import (
    MAX_TRANSITION_ASSIGNMENTS,
    gpus_to_drain,
    unseen_replaced,
)
from optimizer.wire.explanation import GpusToDrain
from optimizer.wire.plan_record import RecordedStep, RolloutPace, RolloutPlan
from optimizer.wire.request_problem import ProblemKind, RequestProblem

_OWN_FIELDS = ("apiVersion", "kind", "spec", "placementRef", "subjects")
"""What a generated object has besides its metadata; the rest is the API server's or OCM's."""


def rollout_plan(
    observation: Observation,
    fleet: Fleet,
    problem: Problem,
    goal: Decision,
    objects: Iterable[Object],
    *,
    kept: KeptObjects,
    uncovers: Dependents,
    pace: RolloutPace,
    settings: OptimizerSettings,
    time_left: TimeLeft,
) -> RolloutPlan | RequestProblem:
    """Return the steps from what the hub holds to the goal, whose objects are `objects`.

    What is `kept` stays as it is in every state. `uncovers`: by cluster, the workloads of others
    that depend on policies which the plan changes.
    """
    wide = with_enforced_candidates(fleet)
    posed = problem if wide is fleet else formulate(wide)
    begin = current_state(posed, goal).decision
    if len(set(begin.assignments) ^ set(goal.assignments)) > MAX_TRANSITION_ASSIGNMENTS:
        return _TOO_MANY_MOVES
    asks = policy_replacements(wide)
    others = {
        name: [item.key for item in found if not item.left_over] for name, found in uncovers.items()
    }
    transition = plan_transition(posed, begin, goal, time_left, asks, others)
    select = cluster_selectors(observation.managed_clusters, settings.cluster_label_key)
    start = _with_left_over(fleet, _observed_state(observation, select, fleet.optimization))
    hidden = dict(unseen_replaced(wide, posed, goal))
    stays = _observed_state(only_kept(kept, observation), select, fleet.optimization)
    path = _Path(wide, settings, select, start, stays, hidden, begin, goal)
    states = path.states(transition, {key_of(obj): obj for obj in objects})
    gpus = {
        frozenset(stage.enforced): tuple(gpus_to_drain(stage, hidden, asks))
        for stage in transition.stages
    }
    found = RolloutPlan(
        namespace=fleet.namespace,
        optimization=fleet.optimization,
        pace=pace,
        policies=policy_refs(start.policies),
        replicas=replica_refs(start.replicas),
        objects=tuple(start.objects.values()),
        steps=tuple(
            _with_effects(step, gpus, uncovers) for step in recorded(states, fleet.namespace)
        ),
    )
    return found if packed(found, MAX_STEPS_CHARACTERS) else _TOO_LARGE


def _with_effects(
    step: RecordedStep,
    gpus: Mapping[frozenset[PolicyEnforcement], tuple[GpusToDrain, ...]],
    uncovers: Dependents,
) -> RecordedStep:
    done = step.actions
    enforced = frozenset(PolicyEnforcement(i.cluster, i.policy) for i in done.enforce)
    changed = {item.cluster for item in (*done.enforce, *done.release)}
    there = {name: found for name, found in uncovers.items() if name in changed}
    found = {
        "gpus": gpus.get(enforced, ()) if enforced else (),
        "uncovers_others": as_result(there),
    }
    return step.model_copy(update={"actions": done.model_copy(update=found)})


def _observed_state(
    observation: Observation, select: Mapping[str, Selector], optimization: str
) -> RolloutState:
    """Return what the generated objects of an optimization say."""
    running = read_current_decisions(observation, select, optimization)
    return RolloutState(
        policies=running.policies,
        replicas=frozenset(
            Replica(name_of(workload), cluster)
            for workload in observation.workloads
            for cluster in running.placements.get(placement_of(workload), ())
        ),
        objects={
            key_of(obj): obj
            for kind, found in (
                (POLICY, observation.policies),
                (PLACEMENT, observation.placements),
                (PLACEMENT_BINDING, observation.bindings),
            )
            for obj in _written(kind, generated_by(found, optimization))
        },
    )


def _with_left_over(fleet: Fleet, start: RolloutState) -> RolloutState:
    """Return the start with what runs although its Placement is gone."""
    left = (
        Replica(item.name, cluster)
        for item in fleet.workloads
        if _is_left_over(item, start)
        for cluster in item.current
    )
    return replace(start, replicas=start.replicas | frozenset(left))


def _is_left_over(workload: Workload, start: RolloutState) -> bool:
    key = (PLACEMENT.kind, workload.placement)
    return bool(workload.current) and key not in start.objects


def _written(kind: Kind, found: Iterable[Object]) -> Iterator[Object]:
    """Yield objects without what the API server, OCM and the writes of plans added."""
    for obj in found:
        own = {field: obj[field] for field in _OWN_FIELDS if field in obj}
        kept = ("name", "namespace", "labels")
        metadata = {field: obj["metadata"][field] for field in kept if field in obj["metadata"]}
        stated = (obj["metadata"].get("annotations") or {}).items()
        annotations = {key: text for key, text in stated if key not in PLAN_ANNOTATIONS}
        if annotations:
            metadata["annotations"] = annotations
        yield {"apiVersion": kind.api_version, "kind": kind.kind, **own, "metadata": metadata}


@dataclass(slots=True)
class _Path:
    """Makes the states of a transition.

    `stays`: what no step changes. `begin`: the part of the start that the rules allow; all else
    stops first. `hidden`: policies that no workload can use, by the policy that replaces each.
    """

    fleet: Fleet
    settings: OptimizerSettings
    select: Mapping[str, Selector]
    start: RolloutState
    stays: RolloutState
    hidden: Mapping[PolicyEnforcement, PolicyEnforcement]
    begin: Decision
    goal: Decision

    def states(
        self, transition: Transition, goal: Mapping[ObjectKey, Object]
    ) -> list[RolloutState]:
        """Return the start, the states after each stage, and the goal; no two neighbours equal."""
        decisions = [self.begin, *(stage.state for stage in transition.stages), self.goal]
        found = [self._prepared(decisions)]
        for decision in decisions:
            found += self._towards(found[-1], decision)
        last = RolloutState(frozenset(self.goal.policies), _replicas(self.goal), goal)
        # On how many clusters each workload can run without interruption.
        needed = _counts(self.start) & _counts(self._with_what_stays(last))
        different = [self.start]
        for state in map(self._with_what_stays, (*found, last)):
            objects = _as_before(different[-1].objects, state.objects)
            if objects != different[-1].objects:
                short = frozenset(needed - _counts(state))
                short |= self._restarted(different[-1].objects, objects) & frozenset(needed)
                different.append(replace(state, objects=objects, uncovered=short))
        return different

    def _with_what_stays(self, state: RolloutState) -> RolloutState:
        return replace(
            state,
            policies=state.policies | self.stays.policies,
            replicas=state.replicas | self.stays.replicas,
            objects={**self.stays.objects, **state.objects},
        )

    def _prepared(self, decisions: Iterable[Decision]) -> RolloutState:
        """Return the start with a Placement for each workload that runs or will, so it can stop.

        A Placement that is new selects nothing, which stops a workload that runs without one. If
        the rules allow it where it runs, its new Placement selects that, in the next state.
        """
        begun = {item.workload for item in self.begin.assignments}
        stopping = self.left_over - begun
        runs = {item.workload for decision in decisions for item in decision.assignments}
        made = (
            workload_placement(self.fleet, workload, (), (), claim_name=self.settings.claim_name)
            for workload in self.fleet.workloads
            if workload.name in (runs | stopping) - (self.left_over & begun)
        )
        return replace(
            self.start,
            replicas=frozenset(i for i in self.start.replicas if i.workload not in stopping),
            objects={**{key_of(obj): obj for obj in made}, **self.start.objects},
        )

    @property
    def left_over(self) -> frozenset[str]:
        """The workloads that run at the start although their Placement is gone."""
        return frozenset(
            item.name for item in self.fleet.workloads if _is_left_over(item, self.start)
        )

    def _restarted(
        self, before: Mapping[ObjectKey, Object], after: Mapping[ObjectKey, Object]
    ) -> frozenset[str]:
        """Return the workloads that get their Placement back: OCM may stop them until it decides.

        What it does not select stops for good.
        """
        new = {name for kind, name in after.keys() - before.keys() if kind == PLACEMENT.kind}
        return self.left_over & {i.name for i in self.fleet.workloads if i.placement in new}

    def _towards(self, before: RolloutState, decision: Decision) -> Iterator[RolloutState]:
        """Yield the state after a stage; before it, one without the claims that it would lose."""
        due = [old for new, old in self.hidden.items() if new not in decision.policies]
        policies = tuple(dict.fromkeys((*decision.policies, *due)))
        replicas = _replicas(decision)
        moved = before.policies ^ set(policies)
        changed = {choice.cluster for choice in moved - self.stays.policies}
        keep = frozenset(item for item in before.replicas & replicas if item.cluster in changed)
        if keep:
            yield replace(
                before,
                keep=keep,
                objects={**before.objects, **self._kept(before.replicas, before.policies, keep)},
            )
        made = manifests(
            self.fleet,
            Decision(policies, decision.assignments),
            claim_name=self.settings.claim_name,
            mig=self.settings.mig,
        )
        objects = {key_of(obj): obj for obj in made}
        yield RolloutState(
            frozenset(policies),
            replicas,
            {
                **_bound_policies(before, made),
                **self._stopped(before),
                **objects,
                **self._kept(replicas, policies, keep),
            },
            keep,
        )

    def _stopped(self, before: RolloutState) -> dict[ObjectKey, Object]:
        """Return Placements that select nothing, for all workloads that have had one so far."""
        of_policies = {
            str(obj["placementRef"]["name"])
            for key, obj in before.objects.items()
            if key[0] == PLACEMENT_BINDING.kind
        }
        return {
            key: selecting_nothing(obj)
            for key, obj in before.objects.items()
            if key[0] == PLACEMENT.kind
            and key[1] not in of_policies
            and key not in self.stays.objects
        }

    def _kept(
        self,
        replicas: Collection[Replica],
        policies: Iterable[PolicyEnforcement],
        keep: Collection[Replica],
    ) -> dict[ObjectKey, Object]:
        """Return the Placements of workloads that keep running, without the claims they lose."""
        enforcing = {choice.cluster for choice in policies}
        names = {item.workload for item in keep}
        made = (
            workload_placement(
                self.fleet,
                workload,
                [self.select[cluster] for cluster in _clusters(replicas, workload.name)],
                enforcing.difference(_clusters(keep, workload.name)),
                claim_name=self.settings.claim_name,
            )
            for workload in self.fleet.workloads
            if workload.name in names
        )
        return {key_of(obj): obj for obj in made}


def _bound_policies(before: RolloutState, made: Iterable[Object]) -> dict[ObjectKey, Object]:
    """Return the generated policies of the state before that are still bound."""
    bound = {subject["name"] for obj in made for subject in obj.get("subjects", ())}
    return {
        key: obj for key, obj in before.objects.items() if key[0] == POLICY.kind and key[1] in bound
    }


def _clusters(replicas: Iterable[Replica], workload: str) -> list[str]:
    return sorted(item.cluster for item in replicas if item.workload == workload)


def _replicas(decision: Decision) -> frozenset[Replica]:
    return frozenset(Replica(item.workload, item.cluster) for item in decision.assignments)


def _counts(state: RolloutState) -> Counter[str]:
    return Counter(item.workload for item in state.replicas)


def _as_before(
    before: Mapping[ObjectKey, Object], after: Mapping[ObjectKey, Object]
) -> dict[ObjectKey, Object]:
    """Return the objects after a step; one that would not be written stays as it was."""
    return {
        key: before[key] if key in before and not merge_patch(before[key], obj) else obj
        for key, obj in after.items()
    }


_TOO_LARGE = ProblemKind.ROLLOUT_TOO_LARGE.because(
    "ask for fewer workloads or clusters, or for rollout AllAtOnce"
)
_TOO_MANY_MOVES = ProblemKind.TOO_MANY_MOVES.because(
    f"more than {MAX_TRANSITION_ASSIGNMENTS} assignments change; ask for fewer"
    " workloads, or for rollout AllAtOnce"
)
