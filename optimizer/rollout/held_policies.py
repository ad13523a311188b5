"""Which policies of a step others hold: they enforce another one of the same pool by now."""

from collections.abc import Iterable, Iterator, Mapping

from dsf.api.optimization import Optimization
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.changes import Change, Create
from dsf.kube.kinds import PLACEMENT_BINDING, POLICY
from optimizer.domain.fleet import CandidatePolicy, Selector
from optimizer.plan.manifests import generated_name
from optimizer.rollout.rollout_state import RolloutState
from optimizer.snapshot.object_readers import name_of, read_policy
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.others import policies_of_others
from optimizer.wire.rollout import RolloutWait


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
    created = {
        change.name
        for change in changes
        if isinstance(change, Create) and change.kind == PLACEMENT_BINDING
    }
    made = (obj for obj in state.objects.values() if obj["kind"] == POLICY.kind)
    policies = {name_of(obj): obj for obj in (*observation.policies, *made)}
    others = policies_of_others(observation, owner, select)
    for choice in sorted(state.policies):
        if generated_name("binding", owner, choice) not in created:
            continue
        if choice.policy not in policies:
            continue
        own = read_policy(policies[choice.policy], choice.cluster)
        for item in others.get(choice.cluster, ()):
            same = (item.namespace, item.policy.policy) == (owner.namespace, choice.policy)
            if isinstance(own, CandidatePolicy) and own.pool == item.policy.pool and not same:
                yield RolloutWait(
                    reason="HeldByOthers",
                    message=f"{item.owner} enforces policy {UntrustedName(item.policy.policy)} on"
                    f" cluster {UntrustedName(choice.cluster)}, where {owner} would enforce"
                    f" {UntrustedName(choice.policy)}: wait for it, or undo or cancel the rollout",
                )
