"""Samples in fields of objects of the managed cluster's API server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dsf.agent.dry_run import explained, perform_once
from dsf.agent.failure import Failure
from dsf.agent.fetch.credentials import AgentSecrets
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.issued_tokens import IssuedTokens
from dsf.agent.fetch.kubernetes_source import MOST_OBJECTS, PAGE_BYTES, KubernetesSource
from dsf.agent.fetch.sources import Sources
from dsf.agent.round import Round
from dsf.agent.run import AgentSettings
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.agent.wire.series_buffer import MemoryBounds
from dsf.api.crd.kubernetes_objects import KubernetesObjects
from dsf.api.scoring.scorer_summary import ScorerSummary, SummarySource, dump_summaries
from dsf.kube.client.connect import connect
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig
from dsf.kube.embedded.http.server import serving as serving_api
from dsf.kube.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, NODE, Kind
from dsf.kube.port import Kube, Object
from tests.dsf.agent.builders import sent, summary
from tests.dsf.agent.servers import replying, scores, serving
from tests.kube_wrappers.authorized import Authorized
from tests.kube_wrappers.counting import Counting
from tests.kube_wrappers.reviewing_hub import AccessTable

NOW = 1_700_000_000.5
METRICS = Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", namespaced=False)
PODS = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")
NODES = {
    "apiVersion": "metrics.k8s.io/v1beta1",
    "resource": "nodes",
    "values": {"cpu": ".usage.cpu", "memory": ".usage.memory"},
    "labels": {"node": ".metadata.name", "zone": r".metadata.labels.topology\.kubernetes\.io/zone"},
}


def definition(kind: Kind) -> Object:
    """Stands for the aggregated API of metrics-server."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True}
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": kind.resource,
            "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [{**version, "schema": {"openAPIV3Schema": anything}}],
        },
    }


@pytest.fixture
def cluster() -> EmbeddedHub:
    return EmbeddedHub(crds=[definition(METRICS), definition(PODS)])


async def node(kube: Kube, name: str, cpu: Any, memory: Any = "16Gi", **labels: str) -> None:
    usage = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    await kube.create(METRICS, {"metadata": {"name": name, "labels": labels}, "usage": usage})


def asking(range_: int = 0, step: int = 60, interval: int = 30, **objects: Any) -> ScorerSummary:
    return summary(
        source_type="Kubernetes",
        source_endpoint="",
        source_query="",
        source_range=range_,
        source_step=step,
        scoring_interval=interval,
        source_kubernetes=KubernetesObjects.model_validate({**NODES, **objects}),
    )


@asynccontextmanager
async def reading(kube: Kube | None, **more: Any) -> AsyncIterator[Sources]:
    async with http_client() as client:
        secrets = AgentSecrets(kube, "dynamic-scoring", IssuedTokens(client))
        objects = KubernetesSource(kube, **more)
        yield Sources(client, secrets, CallLimits(), objects=objects)


async def fetched(kube: Kube | None, asked: ScorerSummary) -> FetchedSeries | Failure:
    async with reading(kube) as sources:
        return await sources.fetch(asked, NOW)


async def read(kube: Kube, asked: ScorerSummary) -> FetchedSeries:
    found = await fetched(kube, asked)
    assert isinstance(found, FetchedSeries), found
    return found


async def failed(kube: Kube | None, asked: ScorerSummary) -> Failure:
    found = await fetched(kube, asked)
    assert isinstance(found, Failure), found
    assert found.stage == "source"
    return found


def values(found: FetchedSeries, *names: str) -> dict[str, str]:
    """Return the last value of each series by its labels."""
    return {
        "/".join(one["metric"][name] for name in ("name", *names)): one["values"][-1][1]
        for one in sent(found)
    }


async def test_each_field_of_each_object_is_a_series_of_one_sample(cluster: EmbeddedHub) -> None:
    await node(cluster, "n1", "1500m", **{"topology.kubernetes.io/zone": "eu-1"})
    await node(cluster, "n2", "250000000n", "512Mi")
    found = await read(cluster, asking())
    assert found.warnings == ()
    assert sent(found) == [
        {
            "metric": {"__name__": "cpu", "name": "n1", "node": "n1", "zone": "eu-1"},
            "values": [[NOW, "1.5"]],
        },
        {
            "metric": {"__name__": "memory", "name": "n1", "node": "n1", "zone": "eu-1"},
            "values": [[NOW, "17179869184"]],
        },
        {"metric": {"__name__": "cpu", "name": "n2", "node": "n2"}, "values": [[NOW, "0.25"]]},
        {
            "metric": {"__name__": "memory", "name": "n2", "node": "n2"},
            "values": [[NOW, "536870912"]],
        },
    ]


async def test_containers_of_a_pod_are_added_up_in_the_namespace_and_selection(
    cluster: EmbeddedHub,
) -> None:
    for namespace in ("shop", "other"):
        await cluster.create(NAMESPACE, {"metadata": {"name": namespace}})
        for name in ("web", "db"):
            metadata = {"name": name, "namespace": namespace, "labels": {"app": name}}
            containers = [{"usage": {"cpu": cpu}} for cpu in ("100m", "250m")]
            await cluster.create(PODS, {"metadata": metadata, "containers": containers})
    pods = asking(resource="pods", values={"cpu": ".containers[*].usage.cpu"}, labels={})
    assert len((await read(cluster, pods)).series) == 4
    pods = asking(
        resource="pods",
        values={"cpu": "{.containers[*].usage.cpu}"},
        labels={"pod": "$.metadata.name"},
        namespace="shop",
        labelSelector="app in (web)",
    )
    assert values(await read(cluster, pods), "namespace", "pod") == {"web/shop/web": "0.35"}


@pytest.mark.parametrize(
    ("value", "sample"),
    [
        ("-5", "-5"),
        ("-500m", "-0.5"),
        (-2.5, "-2.5"),
        ("0.12345678901234", "0.12345678901234"),
        (1e300, "1e+300"),
        (True, "1"),
        ("False", "0"),
        (0, "0"),
    ],
)
async def test_numbers_in_their_forms(cluster: EmbeddedHub, value: Any, sample: str) -> None:
    await node(cluster, "n1", value)
    assert values(await read(cluster, asking()), "__name__")["n1/cpu"] == sample


@pytest.mark.parametrize("value", ["many", "", "1Zi", "NaN", "Infinity", {"a": 1}, [], "9" * 65])
async def test_what_is_no_number_is_left_out_and_named(cluster: EmbeddedHub, value: Any) -> None:
    await node(cluster, "good", "1")
    await node(cluster, "n1", value)
    await node(cluster, "n2", None)
    found = await read(cluster, asking(values={"cpu": ".usage.cpu"}))
    assert values(found) == {"good": "1"}
    without, bad = found.warnings
    assert without == 'left out 1 object of 3 without cpu at ".usage.cpu"'
    assert bad.startswith("left out 1 object of 3, such as n1, with neither a number nor a ")


async def test_the_status_of_a_condition_is_a_number(cluster: EmbeddedHub) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Full", "status": "Unknown"}]
    await cluster.create(NODE, {"metadata": {"name": "n1"}})
    await cluster.patch(NODE, "n1", {"status": {"conditions": conditions}}, subresource="status")
    ready = {"ready": '.status.conditions[?(@.type=="Ready")].status'}
    found = await read(cluster, asking(apiVersion="v1", values=ready, labels={}))
    assert values(found) == {"n1": "1"}


async def test_a_path_that_finds_nothing_anywhere_fails_the_round(cluster: EmbeddedHub) -> None:
    nothing = asking(values={"cpu": ".usage.cpuu"})
    assert (await read(cluster, nothing)).series == (), "without objects there is nothing to miss"
    await node(cluster, "n1", "1")
    failure = await failed(cluster, nothing)
    assert failure.reason == "NoSamples"
    assert '1 object of 1 without cpu at ".usage.cpuu"' in failure.message


async def test_an_unusable_source_says_what_to_do(cluster: EmbeddedHub) -> None:
    for changes, reason, said in (
        ({"apiVersion": "metrics.k8s.io/v1"}, "NotServed", "kubectl api-resources"),
        ({"resource": "nodez"}, "NotServed", "nodez.metrics.k8s.io in version v1beta1"),
        ({"labelSelector": "a in ("}, "ListFailed", "listing nodes.metrics.k8s.io failed"),
        ({"values": {"cpu": ".a[?(@.b=~'x')]"}}, "InvalidPath", "source.kubernetes.values.cpu"),
        ({"labels": {"a": "b"}}, "InvalidPath", "source.kubernetes.labels.a"),
        ({"apiVersion": "v1", "resource": "secrets"}, "SecretsRefused", "not read as a source"),
    ):
        failure = await failed(cluster, asking(**changes))
        assert failure.reason == reason, failure.message
        assert said in failure.message
    assert (await failed(None, asking())).reason == "NoAPIServer"
    no_objects = asking().model_copy(update={"source_kubernetes": None})
    assert (await failed(cluster, no_objects)).reason == "MissingObjects"


async def test_a_missing_right_is_named_as_the_chart_wants_it(cluster: EmbeddedHub) -> None:
    agent = Authorized(cluster, "agent", AccessTable({}))
    failure = await failed(agent, asking(resource="pods", namespace="shop"))
    assert failure.reason == "Forbidden"
    assert failure.message == (
        "the agent may not list pods.metrics.k8s.io in namespace shop: add"
        ' {apiGroup: "metrics.k8s.io", resource: pods, namespace: shop} to the chart\'s'
        " spokeSetting.agent.readableResources"
    )


async def test_ten_thousand_objects_are_read_in_pages_and_no_more(cluster: EmbeddedHub) -> None:
    for number in range(MOST_OBJECTS):
        await node(cluster, f"n{number}", "1", None)
    counting = Counting(cluster)
    asked = asking(values={"cpu": ".usage.cpu"})
    assert len((await read(counting, asked)).series) == MOST_OBJECTS
    assert counting.calls["list", METRICS.resource] == MOST_OBJECTS // 100
    await node(cluster, "one-more", "1", None)
    failure = await failed(cluster, asked)
    assert failure.reason == "ResponseTooLarge"
    assert "name a namespace or a labelSelector" in failure.message


async def test_a_page_that_is_too_long_is_not_read(cluster: EmbeddedHub, tmp_path: Path) -> None:
    for number in range(10):
        await node(cluster, f"n{number}", "1", "x" * (PAGE_BYTES // 10))
    path = tmp_path / "kubeconfig"
    async with serving_api(cluster) as url:
        path.write_text(json.dumps(kubeconfig(url)), encoding="utf-8")
        async with connect(path, answer_bytes=PAGE_BYTES) as kube:
            failure = await failed(kube, asking())
    assert failure.reason == "ResponseTooLarge"
    assert "more than 8 MiB" in failure.message


async def test_a_range_keeps_the_samples_of_earlier_rounds(cluster: EmbeddedHub) -> None:
    """Of each step the last sample is kept; series of objects that are gone are not sent."""
    await node(cluster, "n1", "1")
    await node(cluster, "n2", "7")
    asked = asking(range_=120, values={"cpu": ".usage.cpu"})
    async with reading(cluster) as sources:

        async def round_(at: float, cpu: str, asked: ScorerSummary = asked) -> Any:
            await cluster.patch(METRICS, "n1", {"usage": {"cpu": cpu}})
            found = await sources.fetch(asked, at)
            assert isinstance(found, FetchedSeries)
            return {one["metric"]["name"]: one["values"] for one in sent(found)}

        await round_(1000, "1")
        await round_(1030, "2")
        assert (await round_(1080, "3"))["n1"] == [[1000, "1"], [1030, "2"], [1080, "3"]]
        await cluster.delete(METRICS, "n2")
        assert await round_(1130, "4") == {"n1": [[1030, "2"], [1130, "4"]]}
        await node(cluster, "n2", "8")
        assert (await round_(1140, "5"))["n2"] == [[1030, "7"], [1080, "7"], [1140, "8"]]
        await cluster.delete(METRICS, "n2")
        assert await round_(1300, "5") == {"n1": [[1300, "5"]]}, "the scorer rested for a range"
        other = asking(range_=120, values={"cpu": "$.usage.cpu"})
        assert await round_(1310, "6", other) == {"n1": [[1310, "6"]]}, "another question"


async def test_what_would_be_too_much_to_keep_is_refused_from_the_first_round(
    cluster: EmbeddedHub,
) -> None:
    await node(cluster, "n1", "1")
    async with reading(cluster, bounds=MemoryBounds(series=10, samples=200)) as sources:
        assert isinstance(await sources.fetch(asking(range_=3600), NOW), FetchedSeries)
        other = asking(range_=3600).model_copy(update={"name": "other"})
        failure = await sources.fetch(other, NOW)
        assert isinstance(failure, Failure)
        assert failure.reason == "HistoryTooLarge"
        assert "2 series of 62 samples each" in failure.message
        assert "4 series and 248 samples, of which the agent keeps 10 and 200" in failure.message
        assert isinstance(await sources.fetch(asking(range_=3600), NOW + 30), FetchedSeries)


async def test_one_of_several_sources(cluster: EmbeddedHub) -> None:
    await node(cluster, "n1", "1")
    objects = KubernetesObjects.model_validate(NODES)
    several = tuple(
        SummarySource(name=name, type="kubernetes", kubernetes=objects) for name in ("a", "b")
    )
    found = await read(cluster, asking().model_copy(update={"sources": several}))
    assert [one["metric"]["__source__"] for one in sent(found)] == ["a", "a", "b", "b"]


async def test_a_dry_run_prints_the_scores_of_objects(cluster: EmbeddedHub) -> None:
    await node(cluster, "n1", "2500m")
    async with serving(replying(scores(({"node": "n1"}, 2.5)))) as scorer:
        asked = asking().model_copy(
            update={"scoring_endpoint": scorer.url, "score_dimension_format": "${node}"}
        )
        await cluster.create(NAMESPACE, {"metadata": {"name": "dynamic-scoring"}})
        config = {"name": "dynamic-scoring-config", "namespace": "dynamic-scoring"}
        text = {"summaries": dump_summaries([asked])}
        await cluster.create(CONFIG_MAP, {"metadata": config, "data": text})
        (done,) = await perform(cluster)
    assert scorer.calls[0].json["data"][0]["metric"]["node"] == "n1"
    assert done.report.scores is not None
    assert "nodes.metrics.k8s.io" in explained([done])


async def perform(cluster: EmbeddedHub) -> tuple[Round, ...]:
    done = await perform_once(AgentSettings("c1"), cluster, explaining=True)
    assert isinstance(done, tuple)
    return done
