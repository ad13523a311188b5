"""The Pods of the manifests of a ManifestWorkReplicaSet, kind by kind."""

from typing import Any

import pytest

from dsf.api.untrusted_text import InvalidInput
from dsf.placement import Toleration
from optimizer.domain.dra.device_sets import ClaimRequest, DeviceClaim, MatchAttribute
from optimizer.domain.nodes import NodeSelectorTerm, PodGroup
from optimizer.snapshot.capacity.pod_templates import pods_of

GPU = "nvidia.com/gpu"
CONTAINERS = [{"name": "c", "resources": {"limits": {GPU: 2}}}]
TEMPLATE = {"spec": {"containers": CONTAINERS}}
REQUESTS = {GPU: 2.0, "pods": 1.0}


def manifest(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "app"}, "spec": spec}


def job(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": TEMPLATE, **spec}}


def pods(*manifests: Any) -> tuple[PodGroup, ...] | str:
    found = pods_of(
        {"spec": {"manifestWorkTemplate": {"workload": {"manifests": list(manifests)}}}}
    )
    return found.message if isinstance(found, InvalidInput) else found


@pytest.mark.parametrize(
    ("one", "count"),
    [
        (manifest("Deployment", template=TEMPLATE), 1),
        (manifest("StatefulSet", template=TEMPLATE, replicas=3), 3),
        (manifest("ReplicaSet", template=TEMPLATE, replicas=0), 0),
        (manifest("Pod", containers=CONTAINERS), 1),
        (manifest("Job", template=TEMPLATE), 1),
        (manifest("Job", template=TEMPLATE, parallelism=4), 4),
        (manifest("Job", template=TEMPLATE, parallelism=4, completions=2), 2),
        (manifest("Job", template=TEMPLATE, suspend=True), 0),
        (manifest("CronJob", jobTemplate=job(parallelism=2)), 2),
        (manifest("CronJob", jobTemplate=job(), suspend=True), 0),
        (
            manifest(
                "JobSet",
                replicatedJobs=[
                    {"template": job(parallelism=2), "replicas": 3},
                    {"template": job()},
                ],
            ),
            7,
        ),
        (manifest("Rollout", template=TEMPLATE, replicas=2), 2),
        (manifest("Service", ports=[]), 0),
        (manifest("Certificate", template={"spec": {"dnsNames": []}}), 0),
        ({"apiVersion": "v1", "kind": "ConfigMap", "data": {}}, 0),
        ("Deployment", 0),
    ],
)
def test_each_kind_starts_its_pods(one: Any, count: int) -> None:
    assert pods(one) == ((PodGroup(count, REQUESTS),) if count else ())


def test_equal_pods_of_several_manifests_are_one_group() -> None:
    other = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
    found = pods(
        manifest("Deployment", template=TEMPLATE, replicas=2),
        manifest("Deployment", template=other),
        manifest("StatefulSet", template=TEMPLATE),
    )
    assert found == (PodGroup(3, REQUESTS), PodGroup(1, {"cpu": 1.0, "pods": 1.0}))


def test_a_daemon_set_runs_once_on_each_node_also_on_a_cordoned_one() -> None:
    (found,) = pods(manifest("DaemonSet", template=TEMPLATE))
    assert isinstance(found, PodGroup)
    assert found.per_node
    assert found.count == 0
    assert (
        Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule")
        in found.tolerations
    )


def test_where_pods_may_run_is_read() -> None:
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]},
        {},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
    ]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {
        "containers": CONTAINERS,
        "nodeSelector": {"arch": "arm64"},
        "affinity": {"nodeAffinity": affinity},
        "tolerations": [{"key": GPU, "operator": "Exists"}, {"key": "team", "value": "a"}],
    }
    arm = NodeSelectorTerm("arch", "In", ("arm64",))
    assert pods(manifest("Pod", **spec)) == (
        PodGroup(
            1,
            REQUESTS,
            (
                (arm, NodeSelectorTerm("zone", "NotIn", ("a",))),
                (arm, NodeSelectorTerm("metadata.name", "In", ("n1",))),
            ),
            (Toleration(GPU, "Exists", "", ""), Toleration("team", "Equal", "a", "")),
        ),
    )


@pytest.mark.parametrize(
    ("operator", "values"),
    [("Gt", ["many"]), ("Gt", ["1", "2"]), ("Lt", []), ("Lt", ["9" * 5_000]), ("In", None)],
)
def test_expressions_that_kube_scheduler_can_not_read_are_named(operator: str, values: Any) -> None:
    expression = {"key": "nvidia.com/gpu.memory", "operator": operator, "values": values}
    terms = [{"matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    why = str(pods(manifest("Pod", containers=CONTAINERS, affinity={"nodeAffinity": required})))
    assert why.startswith("manifests[0] (Pod) requires nodes: unable to parse requirement: ")
    assert len(why) < 300


@pytest.mark.parametrize(
    ("one", "message"),
    [
        (
            manifest("Deployment", replicas=1),
            "manifests[0] (Deployment): spec.template: Field required",
        ),
        (
            manifest("Deployment", template=TEMPLATE, replicas=-1),
            "manifests[0] (Deployment) starts -1 Pods",
        ),
        (
            manifest("Deployment", template=TEMPLATE, replicas=10**9),
            "starts 1000000000 Pods, not 0 to 1000000",
        ),
        (manifest("Deployment", template=TEMPLATE, replicas="many"), "spec.replicas: "),
        (
            manifest("Pod", containers=[{"resources": {"requests": {"cpu": "-4"}}}]),
            '"-4" is no quantity',
        ),
        (
            manifest(
                "Pod",
                containers=CONTAINERS,
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{}]
                        }
                    }
                },
            ),
            "nodeSelectorTerms, which are all empty",
        ),
        (
            manifest("Pod", containers=CONTAINERS, tolerations=[{"operator": "Never"}]),
            "spec.tolerations[0].operator: ",
        ),
    ],
)
def test_what_can_not_be_read_names_the_manifest(one: Any, message: str) -> None:
    assert message in str(pods(one))


def claim(kind: str, *requests: Any, name: str = "gpus", **devices: Any) -> dict[str, Any]:
    spec = {"devices": {"requests": list(requests), **devices}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec if kind == "ResourceClaim" else {"spec": spec},
    }


def request(name: str = "gpu", **exactly: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpu.nvidia.com", **exactly}}


def claiming(kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    claims = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]
    pod = {"containers": [{"name": "c"}], "resourceClaims": spec.pop("claims", claims)}
    return manifest(kind, template={"spec": pod}, **spec)


OWN = [{"name": "gpus", "resourceClaimName": "gpus"}]
TEMPLATED = "ResourceClaimTemplate"


def test_pods_have_the_claims_of_their_templates() -> None:
    selector = {"cel": {"expression": "device.driver == 'a'"}}
    either = {
        "name": "either",
        "firstAvailable": [
            {"name": "big", "deviceClassName": "gpu.nvidia.com", "count": 2},
            {"name": "all", "deviceClassName": "mig.nvidia.com", "allocationMode": "All"},
        ],
    }
    rule = {"matchAttribute": "gpu.nvidia.com/parentUUID", "requests": ["gpu"]}
    template = claim(TEMPLATED, request(count=3, selectors=[selector]), either, constraints=[rule])
    (group,) = found = pods(claiming(replicas=2), template)
    assert not isinstance(found, str)
    assert group == PodGroup(
        2,
        {"pods": 1.0},
        claims=(
            DeviceClaim(
                (
                    (ClaimRequest("gpu", "gpu.nvidia.com", ("device.driver == 'a'",), 3),),
                    (
                        ClaimRequest("either/big", "gpu.nvidia.com", (), 2),
                        ClaimRequest("either/all", "mig.nvidia.com", (), 1, every=True),
                    ),
                ),
                (MatchAttribute("gpu.nvidia.com/parentUUID", ("gpu",)),),
            ),
        ),
    )


def test_one_pod_may_have_a_claim_that_is_no_template() -> None:
    (group,) = pods(claim("ResourceClaim", request()), claiming(claims=OWN))
    assert group.claims == (DeviceClaim(((ClaimRequest("gpu", "gpu.nvidia.com"),),)),)


SHARED = (
    "manifests[0] (Deployment): resourceClaims (gpus): several Pods share a ResourceClaim;"
    " give each its own by a template"
)
SPEC = "manifests[0] (Deployment): manifests[1] (ResourceClaimTemplate): spec.spec"


@pytest.mark.parametrize(
    ("manifests", "why"),
    [
        (
            [claiming(), claim(TEMPLATED, request(), name="other")],
            (
                "manifests[0] (Deployment): resourceClaims (gpus): ResourceClaimTemplate gpus is"
                " not among the manifests"
            ),
        ),
        ([claiming(claims=OWN, replicas=2), claim("ResourceClaim", request())], SHARED),
        (
            [claiming("DaemonSet", claims=OWN), claim("ResourceClaim", request())],
            SHARED.replace("Deployment", "DaemonSet"),
        ),
        (
            [claiming("Job", claims=OWN), claiming(claims=OWN), claim("ResourceClaim", request())],
            SHARED.replace("manifests[0]", "manifests[1]"),
        ),
        (
            [claiming(), claim(TEMPLATED, request(adminAccess=True))],
            f"{SPEC}: request gpu asks for adminAccess, which is not supported",
        ),
        (
            [claiming(), claim(TEMPLATED, request(capacity={"requests": {"memory": "1Gi"}}))],
            f"{SPEC}: request gpu asks for a part of a device's capacity, which is not supported",
        ),
        (
            [claiming(), claim(TEMPLATED, {"name": "gpu", "deviceClassName": "gpu.nvidia.com"})],
            (
                f"{SPEC}: request gpu has neither exactly nor firstAvailable, as resource.k8s.io/v1"
                " wants"
            ),
        ),
        (
            [claiming(), claim(TEMPLATED, request(), constraints=[{"distinctAttribute": "a/b"}])],
            f"{SPEC}: a constraint has no matchAttribute; others are not supported",
        ),
        (
            [claiming(), claim(TEMPLATED, request(count=10_000))],
            f"{SPEC}.devices.requests[0].exactly.count: Input should be less than or equal to 32",
        ),
        (
            [claiming(), claim(TEMPLATED, request(selectors=[{"sql": "select"}]))],
            f"{SPEC}.devices.requests[0].exactly.selectors[0].cel: Field required",
        ),
    ],
)
def test_claims_that_can_not_be_planned_are_named(manifests: list[Any], why: str) -> None:
    assert pods(*manifests) == why
