"""Kubernetes objects as no example has them: valid ones that are planned with, and wrong ones."""

from collections.abc import Iterator
from random import Random
from typing import Any

from dsf.kube import kinds
from dsf.kube.port import Object
from tests.optimizer.build import managed_cluster, obj, policy, score, workload

PLANNED = 120
"""Clusters and workloads that the request names; each 20th has one large oddity."""
RAINBOW = "🏳️‍🌈"
UNICODE = (
    "\u202e\u2066x\u2069",
    "\U000e0041\U000e007f",
    "e\u0301" * 40,
    "\x00\x07\x1b[31m",
    RAINBOW,
    "\ufeff",
)
QUANTITIES: tuple[Any, ...] = (
    *("1", "1k", "1Ki", "1e3", "100m", "0.5", "1E6", "+1", "-1", "1.", ".5", "1e-3", "1E", "1Ei"),
    *("1n", "1u", "1e+3", "0" * 60 + "1", "9" * 400, "1e99999999", "-1e-99999999", "...", "1kk"),
    *(0, 1, -1, 2**63 - 1),
)
NUMBERS = ("", "1", "1e3", "1Ki", "0.5", "nan", "x" * 63, "9" * 60, "1", "2", "3")
"""What the label of an amount may be."""


def odd_objects(count: int, random: Random) -> Iterator[Object]:
    """Yield valid objects; those of the first PLANNED clusters are what `odd_request` names."""
    for number in range(PLANNED):
        yield _large(number, _cluster(f"c{number}", random), random)
        yield _large(number + 1, _policy(number, random), random)
        yield _large(number + 2, _workload(number, random), random)
        yield _score(f"c{number}", random)
    for number in range(count - 4 * PLANNED):
        match number % 6:
            case 0 | 1 | 2:
                yield _cluster(f"m{number}", random)
            case 3:
                yield _score(f"m{number}", random)
            case 4:
                yield _decision(number, random)
            case 5:
                yield _placement(number, random)


def odd_request() -> Object:
    """Return the body of POST /optimize."""
    return {
        "namespace": "default",
        "dryRun": True,
        "clusters": [
            {"name": f"c{number}", "availablePolicies": [{"name": f"p{number}"}]}
            for number in range(PLANNED)
        ],
        "targetWorkloads": [{"name": f"w{number}"} for number in range(PLANNED)],
        "preference": {
            "addonPlacementScore": "performance",
            "scoreDimensionFormat": "${app};${device}",
        },
    }


def _large(number: int, found: Object, random: Random) -> Object:
    """Return an object of which each 20th is as large as one may be."""
    metadata = found["metadata"]
    match number % 20:
        case 0:
            metadata["labels"] |= {f"odd.example/l{index}": f"v{index}" for index in range(10_000)}
        case 1:
            # 255 KiB of the 256 that Kubernetes allows.
            text = random.choice(UNICODE)
            metadata["annotations"] = {"odd": text * (255 * 1024 // len(text.encode()))}
        case 2:
            metadata["ownerReferences"] = [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{index}", "uid": f"u{index}"}
                for index in range(2_000)
            ]
        case 3:
            metadata["finalizers"] = [f"odd.example/f{index}" for index in range(1_000)]
        case 4:
            metadata |= {"annotations": None, "labels": metadata["labels"] | {"odd": ""}}
        case 5:
            metadata |= {"selfLink": "/x", "generation": -1, "managedFields": None, "uid": 5}
        case 6:
            metadata["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    return found


def _cluster(name: str, random: Random) -> Object:
    found = managed_cluster(name, cluster_name=name)
    amounts = {f"odd.example/{index}": random.choice(QUANTITIES) for index in range(3)}
    match random.randrange(8):
        case 0:
            found["status"] = {}
        case 1:
            found["status"] = None
        case 2:
            found["status"] = {"conditions": None, "allocatable": None, "clusterClaims": []}
        case 3:
            found["spec"] = {
                "hubAcceptsClient": True,
                "taints": None,
                "unknown": {"deep": _deep(60)},
            }
        case 4:
            taint = {"key": "odd", "effect": "PreferNoSelect", "timeAdded": None, "value": RAINBOW}
            found["spec"] = {"hubAcceptsClient": True, "taints": [taint, taint]}
        case 5:
            claims = [{"name": text, "value": text} for text in UNICODE[:3]]
            found["status"] = {"clusterClaims": claims, "capacity": amounts}
        case _:
            found["status"] = {"allocatable": amounts, "version": {"kubernetes": UNICODE[0]}}
    return found


def _policy(number: int, random: Random) -> Object:
    found = policy(f"p{number}", amount=random.choice((*NUMBERS, *["9"] * 9)))
    template = {"objectDefinition": {"apiVersion": "v1", "kind": "X", "spec": _deep(60)}}
    found["spec"]["policy-templates"] = [template] * random.randrange(3)
    return found


def _workload(number: int, random: Random) -> Object:
    found = workload(f"w{number}", f"a{number % 7}", random.choice(NUMBERS), f"to-{number}")
    pod = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": random.choice(QUANTITIES)}}}]}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"d{number}", "annotations": {"odd": random.choice(UNICODE)}},
        "spec": {"replicas": random.choice((None, 0, 2**40, "2")), "template": {"spec": pod}},
    }
    found["spec"]["manifestWorkTemplate"]["workload"]["manifests"] = [manifest, manifest]
    return found


def _score(cluster: str, random: Random) -> Object:
    names = [f"a{index};all" for index in range(7)] + [*UNICODE, "", "a;" * 400]
    entries = {name: random.choice((-100, 0, 100)) for name in random.sample(names, 8)}
    found = score(cluster, "performance", entries)
    if random.randrange(5) == 0:
        found["status"]["validUntil"] = random.choice(
            ("2026-11-20T12:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999999Z")
        )
    return found


def _decision(number: int, random: Random) -> Object:
    chosen = [{"clusterName": f"c{random.randrange(9)}", "reason": random.choice(UNICODE)}] * 3
    return obj(
        kinds.PLACEMENT_DECISION, f"d{number}", f"n{number % 5}", status={"decisions": chosen}
    )


def _placement(number: int, random: Random) -> Object:
    tolerations = [{"operator": "Exists"}, {"key": "odd", "tolerationSeconds": -(2**63)}]
    spec: Object = random.choice(
        (
            {},
            {"numberOfClusters": -(2**31), "clusterSets": None, "tolerations": tolerations},
            {"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": []}}}]},
            {"predicates": [{}], "decisionStrategy": None, "spreadPolicy": {}},
        )
    )
    return obj(kinds.PLACEMENT, f"pl{number}", f"n{number % 5}", spec=spec)


def _deep(levels: int) -> Any:
    value: Any = UNICODE[0]
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def wrong_objects() -> dict[str, tuple[Object, str]]:
    """Return objects that a hub refuses, each with the field that the refusal names."""
    named, unplaced = managed_cluster("wrong"), obj(kinds.PLACEMENT, "wrong", spec={})
    text, cpu = "metadata.annotations", "status.allocatable.cpu"

    def changed(**fields: Any) -> Object:
        return {**named, **fields}

    def allocatable(amount: Any) -> Object:
        return changed(status={"allocatable": {"cpu": amount}})

    def metadata(**fields: Any) -> Object:
        return changed(metadata={**named["metadata"], **fields})

    def scored(*entries: Any) -> Object:
        return obj(kinds.ADD_ON_PLACEMENT_SCORE, "wrong", "c0", status={"scores": list(entries)})

    return {
        "1 MiB of annotations": (metadata(annotations={"a": "x" * (1 << 20)}), text),
        "annotations that are a list": (metadata(annotations=["a"]), text),
        "an annotation that is a number": (metadata(annotations={"a": 1}), f"{text}.a"),
        "a label with a space": (metadata(labels={"a": "b c"}), "metadata.labels"),
        "10,000 labels, one of them wrong": (
            metadata(labels={**{f"l{index}": "" for index in range(10_000)}, "é": "x"}),
            "metadata.labels",
        ),
        "an owner without a uid": (
            metadata(ownerReferences=[{"apiVersion": "v1", "kind": "X", "name": "x"}] * 2_000),
            "metadata.ownerReferences.uid",
        ),
        "owners that are text": (metadata(ownerReferences="x"), "metadata.ownerReferences"),
        "a status that is text": (changed(status="x"), "status"),
        "a status that is a list": (changed(status=[1]), "status"),
        "a spec that is a number": (changed(spec=1), "spec"),
        "taints that are an object": (changed(spec={"taints": {"a": 1}}), "spec.taints"),
        "a taint without a key": (
            changed(spec={"taints": [{"effect": "NoSelect"}]}),
            "taints[0].key",
        ),
        "a null taint": (changed(spec={"taints": [None]}), "spec.taints[0]"),
        "a time that is none": (
            changed(spec={"taints": [{"key": "a", "effect": "NoSelect", "timeAdded": "now"}]}),
            "timeAdded",
        ),
        "an integer of 65 bits": (changed(spec={"leaseDurationSeconds": 2**64}), "leaseDuration"),
        "a quantity in words": (allocatable("many"), cpu),
        "a quantity that is true": (allocatable(True), cpu),
        "a quantity with a newline": (allocatable("1\n"), cpu),
        "a fraction that is a number": (allocatable(0.5), cpu),
        "a quantity that backtracks": (allocatable("1" * 100_000 + "x"), cpu),
        "two conditions of one type": (
            changed(status={"conditions": [_condition(), _condition()]}),
            "status.conditions[1]",
        ),
        "a score above 100": (scored({"name": "a", "value": 101}), "status.scores[0].value"),
        "half a score": (scored({"name": "a", "value": 0.5}), "status.scores[0].value"),
        "a score in words": (scored({"name": "a", "value": "5"}), "status.scores[0].value"),
        "a score that is true": (scored({"name": "a", "value": True}), "status.scores[0].value"),
        "a score of 1e300": (scored({"name": "a", "value": 1e300}), "status.scores[0].value"),
        "a score without a name": (scored({"value": 1}), "status.scores[0].name"),
        "two scores of one name": (scored(*[{"name": "a", "value": 1}] * 2), "status.scores[1]"),
        "a misspelt field": (scored({"name": "a", "value": 1, "valeu": 2}), "scores[0].valeu"),
        "a name in capitals": (metadata(name="WRONG"), "metadata.name"),
        "a name of 300 characters": (metadata(name="wrong" * 60), "metadata.name"),
        "a name that is a number": (metadata(name=5), "metadata.name"),
        "a namespace with a dot": (
            obj(kinds.PLACEMENT, "wrong", "a.b", spec={}),
            "metadata.namespace",
        ),
        "a namespace that is null": (
            {**unplaced, "metadata": {"name": "wrong", "namespace": None}},
            "metadata.namespace",
        ),
    }


def _condition() -> Object:
    return {
        "type": "Odd",
        "status": "True",
        "reason": "Odd",
        "message": "",
        "lastTransitionTime": "2026-11-20T12:00:00Z",
    }
