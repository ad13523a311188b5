"""No plan and no reset changes or deletes an object that its optimization did not generate."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dsf.api.names import PLACEMENT_LABEL
from dsf.api.optimization import Optimization
from dsf.kube import kinds
from dsf.kube.changes import Create
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.domain.solution import PolicyEnforcement
from optimizer.plan.manifests import generated_name
from optimizer.plan.plan import Plan
from optimizer.plan.reset import reset_changes
from optimizer.snapshot.observation import Observation
from optimizer.wire.request_problem import RequestProblem
from tests.optimizer.build import SETTINGS, guide, obj, request
from tests.optimizer.plan.test_plan import attempt

OPTIMIZATIONS = ("default", "second")
CLUSTERS = ("worker01", "worker02")
POLICIES = [f"{device}-{cluster}" for device, _ in SETTINGS for cluster in CLUSTERS]
GENERATED = [
    generated_name("placement", Optimization("default", name), PolicyEnforcement(cluster, policy))
    for name in OPTIMIZATIONS
    for policy in POLICIES
    for cluster in CLUSTERS
    if policy.endswith(cluster)
]
PLACEMENTS = st.sampled_from(["app01-placement", "app02-placement", "by-hand", *GENERATED])
OWNERS = st.sampled_from([None, *OPTIMIZATIONS])

Owners = dict[tuple[Kind, str], str | None]


@st.composite
def hubs(draw: st.DrawFn) -> tuple[Observation, Owners]:
    """The guide's fleet among objects of all owners, some with names that a plan would use."""
    seen, owners = guide(), Owners()

    def owned(kind: Kind, name: str, **fields: object) -> Object:
        owner = owners[kind, name] = draw(OWNERS)
        labels = Optimization("default", owner).labels if owner else {}
        return {**obj(kind, name, "default", labels=dict(labels)), **fields}

    names = draw(st.lists(PLACEMENTS, unique=True, max_size=6))
    placements = [owned(kinds.PLACEMENT, name, spec=_spec(draw)) for name in names]
    bindings = [
        owned(
            kinds.PLACEMENT_BINDING,
            name.replace("placement", "binding", 1),
            placementRef={"name": name, "kind": "Placement"},
            subjects=[{"name": draw(st.sampled_from(POLICIES)), "kind": "Policy"}],
        )
        for name in names
        if draw(st.booleans())
    ]
    extra = [
        owned(kinds.POLICY, name, spec={"disabled": False})
        for name in draw(st.lists(st.sampled_from(["mig-a", "mig-b"]), unique=True))
    ]
    decisions = [_decision(draw, name) for name in names if draw(st.booleans())]
    observation = replace(
        seen,
        placements=tuple(placements),
        bindings=tuple(bindings),
        policies=(*seen.policies, *extra),
        decisions=tuple(decisions),
    )
    return observation, owners


def _spec(draw: st.DrawFn) -> Object:
    cluster = draw(st.sampled_from(CLUSTERS))
    selector = {"labelSelector": {"matchLabels": {"cluster-name": cluster}}}
    return {"numberOfClusters": 1, "predicates": [{"requiredClusterSelector": selector}]}


def _decision(draw: st.DrawFn, placement: str) -> Object:
    selected = [{"clusterName": draw(st.sampled_from(CLUSTERS))}]
    labels = {PLACEMENT_LABEL: placement}
    name = f"{placement}-decision-1"
    found = obj(kinds.PLACEMENT_DECISION, name, "default", labels=labels)
    return {**found, "status": {"decisions": selected}}


@given(hubs(), st.sampled_from(OPTIMIZATIONS), st.booleans(), st.booleans())
def test_a_plan_touches_only_what_its_optimization_generated(
    hub: tuple[Observation, Owners], name: str, prune: bool, all_workloads: bool
) -> None:
    observation, owners = hub
    workloads = ("mwrs-app01", "mwrs-app02") if all_workloads else ("mwrs-app01",)
    asked = request("performance", CLUSTERS, workloads, optimization=name, prune=prune)
    made = attempt(observation, asked)
    if isinstance(made, RequestProblem):
        assert made.reason in {"NotGenerated", "OtherOptimization"}
        return
    assert isinstance(made, Plan)
    for change in made.changes:
        found = (change.kind, change.name)
        assert isinstance(change, Create) == (found not in owners)
        assert owners.get(found, name) == name


@given(hubs(), st.sampled_from([None, *OPTIMIZATIONS]))
def test_a_reset_touches_only_what_was_generated(
    hub: tuple[Observation, Owners], name: str | None
) -> None:
    observation, owners = hub
    for change in reset_changes(observation, "default", name):
        owner = owners[change.kind, change.name]
        assert owner is not None
        assert name in (None, owner)
