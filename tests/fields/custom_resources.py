"""The fields of a DynamicScorer and of the DynamicScoringConfig, as their CRDs publish them."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from dsf.api.crd.definitions import crds
from dsf.hub.snapshot.manifests import NamespaceManifests
from dsf.hub.snapshot.registered_scorer import ProbeTarget
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import ApiError
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, NAMESPACE, Kind
from dsf.kube.port import Object
from optimizer.follow.overview.score_overview import scorer_overview
from tests.dsf.hub.assess.test_context_completion import MANIFESTS, workload
from tests.dsf.hub.builders import HUB, World, answer, cluster, scorer, scoring_config, settled
from tests.fields.door import Case, Door, Fields, leaves, with_values

QUERIED = {"params": {"query": "up"}}
NORMAL = {"scoring.normalize": {"min": 0, "max": 10}}
HELD = {"scoring.onFailure": {"policy": "Hold", "holdSeconds": 60, "value": 1}}
FORECAST = {"forecast": {"horizon": 600, "truth": {"query": "up"}}}
DEFAULTED = {"scoring.defaultScore": {"value": 1, "entries": ["a"]}}
TWO = {
    "source": None,
    "sources": [{"name": name, "host": f"http://{name}", **QUERIED} for name in ("a", "b")],
}
NODES = {
    "apiVersion": "metrics.k8s.io/v1beta1",
    "resource": "nodes",
    "values": {"cpu": ".usage.cpu"},
}
OAUTH2 = {
    "oauth2": {
        "tokenURL": "http://login/token",
        "clientSecretRef": {"name": "client"},
        "tls": {"caSecretRef": {"name": "ca", "key": "pem"}},
    }
}
TOKEN = {"tokenSecretRef": {"name": "token", "key": "key"}}
AUTHORITY = {"caSecretRef": {"name": "ca", "key": "pem"}}
SENT: Fields = {"context.workloads": {}}


def objects_cases(path: str, given: Fields) -> dict[str, Case]:
    """The cases of a source of objects."""
    of_objects = {**given, f"{path}.type": "Kubernetes", f"{path}.kubernetes": NODES}
    of_objects |= {f"{path}.host": None, f"{path}.params": None}
    if given:  # several sources, of which the second one asks a server
        of_objects["sources"] = [{"name": "a", "type": "Kubernetes"}, given["sources"][1]]
    inner = f"{path}.kubernetes"
    return {
        f"{inner}.apiVersion": Case("v1", of_objects),
        f"{inner}.resource": Case("pods", of_objects),
        f"{inner}.namespace": Case("shop", of_objects),
        f"{inner}.labelSelector": Case("app=web", of_objects),
        f"{inner}.values": Case({"cpu": ".usage.memory"}, of_objects),
        f"{inner}.labels": Case({"node": ".metadata.name"}, of_objects),
    }


def auth_cases(path: str, given: Fields) -> dict[str, Case]:
    """The cases of how calls authenticate and whom they trust."""
    by_token = {**given, f"{path}.auth": TOKEN}
    by_client = {**given, f"{path}.auth": OAUTH2}
    return {
        f"{path}.auth.tokenSecretRef.name": Case("other", by_token),
        f"{path}.auth.tokenSecretRef.key": Case("other", by_token),
        f"{path}.auth.oauth2.tokenURL": Case("http://other/token", by_client),
        f"{path}.auth.oauth2.clientSecretRef.name": Case("other", by_client),
        f"{path}.auth.oauth2.scopes": Case(["read"], by_client),
        f"{path}.auth.oauth2.audience": Case("scorer", by_client),
        f"{path}.auth.oauth2.tls.caSecretRef.name": Case("other", by_client),
        f"{path}.auth.oauth2.tls.caSecretRef.key": Case("other", by_client),
        f"{path}.auth.clientCertificateSecretRef.name": Case("agent-tls", given),
        f"{path}.tls.caSecretRef.name": Case("other", {**given, f"{path}.tls": AUTHORITY}),
        f"{path}.tls.caSecretRef.key": Case("other", {**given, f"{path}.tls": AUTHORITY}),
    }


def source_cases(path: str, given: Fields) -> dict[str, Case]:
    """The cases of a source."""
    return {
        f"{path}.type": Case("OpenTelemetry", given),
        f"{path}.host": Case("http://thanos:9090", given),
        f"{path}.path": Case("/other", given),
        f"{path}.params.query": Case("down", given),
        f"{path}.params.range": Case(60, given),
        f"{path}.params.step": Case(5, given),
        **auth_cases(path, given),
        f"{path}.auth.serviceAccountToken": Case(True, given),
        f"{path}.tenant": Case("team-a", given),
        **objects_cases(path, given),
        f"{path}.endpoint": Case({"host": "http://a"}, given),
        f"{path}.query": Case({"text": "up"}, given),
    }


SCORER: dict[str, Case] = {
    "displayName": Case("CPU"),
    "unit": Case("cores"),
    "direction": Case("LowerIsBetter"),
    "range.min": Case(1, {"range": {"min": 0}}),
    "range.max": Case(100, {"range": {"min": 0}}),
    "description": Case("what it means"),
    "configURL": Case("http://other:8000/config"),
    "configSyncMode": Case("Full"),
    "location": Case("Internal"),
    **source_cases("source", {}),
    **source_cases("sources[]", TWO),
    "sources[].name": Case("c", TWO),
    "scoring.host": Case("http://other:8000"),
    "scoring.path": Case("/other"),
    "scoring.params.name": Case("other_score"),
    "scoring.params.interval": Case(5),
    "scoring.params{}": Case("a model"),
    **auth_cases("scoring", {}),
    "scoring.normalize.min": Case(1, NORMAL),
    "scoring.normalize.max": Case(20, NORMAL),
    "scoring.normalize.invert": Case(True, NORMAL),
    "scoring.onFailure.policy": Case("Value", HELD),
    "scoring.onFailure.holdSeconds": Case(5, HELD),
    "scoring.onFailure.value": Case(5, {"scoring.onFailure": {"policy": "Value", "value": 1}}),
    "scoring.defaultScore.value": Case(5, DEFAULTED),
    "scoring.defaultScore.entries": Case(["b"], DEFAULTED),
    "scoring.endpoint": Case({"host": "http://a"}),
    "forecast.horizon": Case(60, FORECAST),
    "forecast.truth.query": Case("down", FORECAST),
    "forecast.quantile": Case(0.9, FORECAST),
    "context.cluster": Case(True),
    "context.labels": Case(["region"]),
    "context.claims": Case(["product"]),
    "context.workloads.fields": Case(["image"], SENT),
    "context.devices": Case(True),
    "context.namespaces": Case(["a"], SENT),
    "scoreDestination": Case("None"),
    "scoreDimensionFormat": Case("${pod}"),
    "scoreDimensionFormats": Case(["${pod}"]),
    "name": Case("other"),
}
EXPRESSION = [{"key": "region", "operator": "In", "values": ["eu"]}]
MASK = [{"clusterName": "c1", "scoreName": "cpu_score"}]
OVERRIDE = {"sourceOverrides": [{"clusterName": "c1", "sourceHost": "http://thanos:9090"}]}
SELECTED = {
    "clusterSelector": {"matchLabels": {"region": "eu"}},
    "sourceHost": "http://thanos:9090",
}


def expression_cases(path: str, given: Fields) -> dict[str, Case]:
    """The cases of a list of label requirements."""
    return {
        f"{path}[].key": Case("site", given),
        f"{path}[].operator": Case("NotIn", given),
        f"{path}[].values": Case(["us"], given),
    }


CONFIG: dict[str, Case] = {
    "masks[].clusterName": Case("c2", {"masks": MASK}),
    "masks[].scoreName": Case("other_score", {"masks": MASK}),
    "mask[].clusterName": Case("c2", {"mask": MASK}),
    "mask[].scoreName": Case("other_score", {"mask": MASK}),
    "clusterSelector.matchLabels": Case({"region": "eu"}),
    **expression_cases(
        "clusterSelector.matchExpressions", {"clusterSelector.matchExpressions": EXPRESSION}
    ),
    "clusterSets": Case(["other"]),
    "sourceOverrides[].clusterName": Case("c2", OVERRIDE),
    "sourceOverrides[].clusterSelector.matchLabels": Case(
        {"region": "us"}, {"sourceOverrides": [SELECTED]}
    ),
    **expression_cases(
        "sourceOverrides[].clusterSelector.matchExpressions",
        {"sourceOverrides": [{**SELECTED, "clusterSelector": {"matchExpressions": EXPRESSION}}]},
    ),
    "sourceOverrides[].scoreName": Case("other_score", OVERRIDE),
    "sourceOverrides[].sourceName": Case("other", OVERRIDE),
    "sourceOverrides[].sourceHost": Case("http://mimir:9090", OVERRIDE),
}


def base_scorer() -> Object:
    """A scorer that takes nothing from its API."""
    source = {"type": "Prometheus", "host": "http://prometheus:9090", **QUERIED}
    scoring = {"params": {"name": "cpu_score"}}
    return scorer("cpu", mode="None", source=source, scoring=scoring)


def fields_of(kind: Kind) -> Callable[[], Iterable[str]]:
    (crd,) = (item for item in crds() if item["spec"]["names"]["kind"] == kind.kind)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return lambda: leaves(schema, schema)


async def stored(obj: Object, kind: Kind, spec: Fields) -> Object:
    """The object as the API server keeps it; raises ApiError if it refuses a field."""
    hub = EmbeddedHub()
    await hub.create(NAMESPACE, {"apiVersion": "v1", "metadata": {"name": HUB}})
    said = {name: value for name, value in spec.items() if value is not None}
    metadata = {"name": obj["metadata"]["name"], "namespace": HUB}
    whole = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": said}
    return {**obj, "spec": (await hub.create(kind, whole))["spec"]}


def ask_by(kind: Kind) -> Callable[[Fields, str], Awaitable[Any]]:
    async def ask(values: Fields, _: str) -> Any:
        scoring, config = base_scorer(), scoring_config()
        changed = scoring if kind is DYNAMIC_SCORER else config
        try:
            obj = await stored(changed, kind, with_values(changed["spec"], values))
        except ApiError as error:
            return str(error)
        scoring, config = (obj, config) if kind is DYNAMIC_SCORER else (scoring, obj)
        clusters = (cluster("c1", region="eu"), cluster("c2", region="us", site="here"))
        for item in clusters:
            item["status"] = {"clusterClaims": [{"name": "product", "value": "K3s"}]}
        more = (*(MANIFESTS["a"].workloads or ()), workload("a", "app03"))
        manifests = {**MANIFESTS, "a": NamespaceManifests(more, MANIFESTS["a"].devices)}
        url = "http://cpu.scorers.svc:8000/config"
        probes = {ProbeTarget(url, full=full): answer("served_score") for full in (True, False)}
        world = settled(World((scoring,), config, clusters, probes=probes, manifests=manifests))
        (told,) = world.scorers
        return (
            world.works,
            told.get("status"),
            world.config and world.config.get("status"),
            scorer_overview(told),
        )

    return ask


RESOURCES = [
    Door(f"custom resource {kind.kind}", fields_of(kind), cases, ask_by(kind))
    for kind, cases in ((DYNAMIC_SCORER, SCORER), (DYNAMIC_SCORING_CONFIG, CONFIG))
]
