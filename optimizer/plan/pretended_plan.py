"""What a plan with pretended objects says of them: workloads without scores, unused policies."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from dsf.api.untrusted_text import UntrustedName, listed
from optimizer.domain.fleet import Fleet, Workload
from optimizer.domain.issue import Issue, ScoreIssue
from optimizer.plan.plan import Plan
from optimizer.wire.explanation import Explanation
from optimizer.wire.result import WorkloadMove


def told_plan(
    made: Plan, unscored: Collection[str], policies: Collection[str], fleet: Fleet
) -> Plan:
    """Return a plan that says once that new workloads have no scores, and shows none of them.

    `policies`: new ones, of which it says that no workload of its fleet can use them.
    """
    issues = *_unused(policies, fleet), *_unscored(made.issues, unscored)
    return replace(
        made,
        issues=issues,
        moves=tuple(_without_scores(i) if i.workload in unscored else i for i in made.moves),
        explanation=made.explanation and _without_reasons(made.explanation, unscored),
    )


def _unscored(issues: Iterable[Issue], names: Collection[str]) -> Iterator[Issue]:
    """Yield issues; that of a workload without scores comes first, and once."""
    why = (
        "has no scores, as it is like no other: its place says where it fits, not its worth, and"
        " counts in the objective as one with a missing score"
    )
    for name in names:
        yield Issue("MissingScore", f"workload {UntrustedName(name)} {why}", workload=name)
    for item in issues:
        app = item.app if isinstance(item, ScoreIssue) else ""
        if item.reason != "MissingScore" or app not in names:
            yield item


def _without_scores(move: WorkloadMove) -> WorkloadMove:
    after = tuple(item.model_copy(update={"scores": {}}) for item in move.after)
    return move.model_copy(update={"after": after, "gain": {}})


def _without_reasons(found: Explanation, names: Collection[str]) -> Explanation:
    """Return an explanation without the scores that are why workloads are where they are."""
    places = tuple(item for item in found.places if item.workload not in names)
    return found.model_copy(update={"places": places})


def _unused(policies: Collection[str], fleet: Fleet) -> Iterator[Issue]:
    """Yield of each of these policies that it supplies nothing that a workload can use."""
    asked = {each for item in fleet.workloads for each in _usable(item)}
    candidates = (item for cluster in fleet.clusters for item in cluster.candidates)
    supplied = {item.policy: item.supplies for item in candidates if item.policy in policies}
    for name, supplies in supplied.items():
        those = [(item.kind, item.device) for item in supplies]
        if asked.isdisjoint([*those, *((kind, None) for kind, _ in those)]):
            why = (
                f"no workload of the plan can use policy {UntrustedName(name)}: it supplies"
                f" {_named(those)}, and they can use {_named(asked)}"
            )
            yield Issue("UnusedPolicy", why, policy=name)


def _usable(workload: Workload) -> Iterator[tuple[str, str | None]]:
    """Yield the kinds and devices that a workload can use; None: any device of the kind."""
    claims = any(pod.claims for pod in workload.pods)
    devices = None if claims or not workload.devices else workload.devices
    yield from ((workload.kind, device) for device in devices or (None,))
    yield from ((kind, "") for kind, _ in workload.requests)


def _named(devices: Iterable[tuple[str, str | None]]) -> str:
    names = {"/".join(filter(None, item)) for item in devices}
    return listed(sorted(names)) or "nothing"
