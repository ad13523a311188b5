"""Validation, defaults and pruning by the schema of a definition."""

from collections.abc import Callable
from typing import Any

import pytest

from dsf.kube.errors import BadRequest, Invalid, NotFound
from dsf.kube.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    DYNAMIC_SCORER,
    DYNAMIC_SCORING_CONFIG,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    PLACEMENT,
    PLACEMENT_BINDING,
    POLICY,
    Kind,
)
from dsf.kube.port import Kube, Object
from tests.dsf.kube.contract.objects import (
    GADGET,
    WIDGET,
    gadget_definition,
    scorer,
    widget,
    widget_definition,
)
from tests.eventually import eventually

REFUSED: list[tuple[Object, str]] = [
    (
        {"size": 11},
        "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
    ),
    (
        {"size": -1},
        "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0",
    ),
    (
        {"size": "1"},
        'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
    ),
    ({"size": 1.5}, "spec.size: Invalid value"),
    ({"size": True}, "spec.size: Invalid value"),
    ({"ratio": 0}, "spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0"),
    (
        {"colour": "green"},
        'spec.colour: Unsupported value: "green": supported values: "red", "blue"',
    ),
    (
        {"code": "abc"},
        "spec.code: Invalid value: \"abc\": spec.code in body should match '^[a-z]{2}$'",
    ),
    ({"code": "ab\n"}, "spec.code: Invalid value"),
    (
        {"title": "a"},
        'spec.title: Invalid value: "a": spec.title in body should be at least 2 chars long',
    ),
    ({"title": "abcde"}, "spec.title: Too long: may not be more than 4 bytes"),
    ({"until": "yesterday"}, "spec.until: Invalid value"),
    ({"limit": 1.5}, "spec.limit: Invalid value"),
    ({"labels": {"a": 1}}, "spec.labels.a: Invalid value"),
    (
        {"labels": {"a": "", "b": "", "c": ""}},
        "spec.labels: Too many: 3: must have at most 2 items",
    ),
    ({"tags": ["a", "b", "c", "d"]}, "spec.tags: Too many: 4: must have at most 3 items"),
    ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
    ({"ports": [{"name": "a"}, {"name": "a"}]}, 'spec.ports[1]: Duplicate value: {"name":"a"}'),
    ({"ports": [{"number": 1}]}, "spec.ports[0].name: Required value"),
    ({"nested": "text"}, "spec.nested: Invalid value"),
    ({"size": 1, "title": "ab"}, "spec.title: Invalid value"),
]


@pytest.mark.parametrize(("spec", "problem"), REFUSED)
async def test_what_the_schema_refuses(
    kube: Kube, namespace: str, spec: Object, problem: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await kube.create(WIDGET, widget(namespace, **spec))
    assert refused.value.message.startswith('Widget.contract.example.com "first" is invalid: ')
    assert problem in refused.value.message
    assert refused.value.actual_code == 422
    assert any(cause["field"] in problem for cause in refused.value.details["causes"])


ACCEPTED: list[Object] = [
    {"size": 0},
    {"size": 10},
    {"ratio": 1},
    {"ratio": 0.25},
    {"code": "ab"},
    {"title": "äöüß"},
    {"until": "2026-01-02T03:04:05.678+09:00"},
    {"limit": 1},
    {"limit": "50%"},
    {"tags": ["a", "b"]},
    {"ports": [{"name": "a"}, {"name": "b"}]},
    {"size": 4, "title": "abcd"},
]


@pytest.mark.parametrize("spec", ACCEPTED)
async def test_what_the_schema_accepts(kube: Kube, namespace: str, spec: Object) -> None:
    created = await kube.create(WIDGET, widget(namespace, **spec))
    assert {key: created["spec"][key] for key in spec} == spec


STORED: list[tuple[str, Object, Object]] = [
    ("defaults", {}, {"colour": "red", "nested": {"kept": True}}),
    ("a null takes the default", {"colour": None}, {"colour": "red"}),
    ("a null is kept where it is allowed", {"note": None}, {"note": None}),
    ("whole numbers stay whole", {"size": 1.0, "ratio": 2.0}, {"size": 1, "ratio": 2}),
    (
        "unknown fields are kept where the schema says so",
        {"free": {"a": {"b": [1, {"c": None}]}}},
        {"free": {"a": {"b": [1, {"c": None}]}}},
    ),
    (
        "unknown fields, and nulls that are not allowed, are dropped elsewhere",
        {"unknown": 1, "size": None, "nested": {"unknown": 1}, "ports": [{"name": "a", "x": 1}]},
        {"nested": {"kept": True}, "ports": [{"name": "a"}]},
    ),
]


@pytest.mark.parametrize(
    ("spec", "stored"), [row[1:] for row in STORED], ids=[r[0] for r in STORED]
)
async def test_what_is_stored(kube: Kube, namespace: str, spec: Object, stored: Object) -> None:
    created = await kube.create(WIDGET, {**widget(namespace, **spec), "extra": {"a": 1}})
    assert created["spec"] == {"colour": "red", "nested": {"kept": True}, **stored}
    assert "extra" not in created


async def test_the_rule_speaks_its_message(kube: Kube, namespace: str) -> None:
    with pytest.raises(Invalid, match="the title must fit the size"):
        await kube.create(WIDGET, widget(namespace, size=1, title="ab"))


async def test_rules_wait_for_a_well_formed_object(kube: Kube, namespace: str) -> None:
    with pytest.raises(Invalid, match="some validation rules were not checked") as refused:
        await kube.create(WIDGET, widget(namespace, size=1, title="ab", colour="green"))
    assert "the title must fit the size" not in refused.value.message


async def test_all_problems_are_named_at_once(kube: Kube, namespace: str) -> None:
    with pytest.raises(Invalid) as refused:
        await kube.create(WIDGET, widget(namespace, size=11, code="abc"))
    assert "spec.size" in refused.value.message
    assert "spec.code" in refused.value.message
    assert len(refused.value.details["causes"]) == 2


async def test_a_transition_rule_sees_the_old_value(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace, serial="a1"))
    assert await kube.patch(WIDGET, "first", {"spec": {"size": 1}}, namespace)
    with pytest.raises(Invalid, match="a serial never changes"):
        await kube.patch(WIDGET, "first", {"spec": {"serial": "a2"}}, namespace)


async def test_embedded_objects_are_kept(kube: Kube, namespace: str) -> None:
    embedded = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inner", "labels": {"a": "b"}},
        "data": {"a": "b"},
    }
    created = await kube.create(WIDGET, widget(namespace, embedded=embedded))
    stored = created["spec"]["embedded"]
    stored["metadata"].pop("creationTimestamp", None)
    assert stored == embedded


@pytest.mark.parametrize(
    ("inner", "field"),
    [
        ({"kind": "ConfigMap"}, "spec.embedded.apiVersion"),
        ({"apiVersion": "v1"}, "spec.embedded.kind"),
        ({"apiVersion": "v1", "kind": "Config Map"}, "spec.embedded.kind"),
        ({"apiVersion": "a/b/c", "kind": "ConfigMap"}, "spec.embedded.apiVersion"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"a": "b c"}}},
            "spec.embedded.metadata.labels",
        ),
    ],
)
async def test_embedded_objects_have_a_type_and_well_formed_metadata(
    kube: Kube, namespace: str, inner: Object, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await kube.create(WIDGET, widget(namespace, embedded=inner))
    assert field in {cause["field"] for cause in refused.value.details["causes"]}


@pytest.mark.parametrize("inner", [{"kind": 1}, {"apiVersion": []}, {"metadata": "text"}])
async def test_embedded_objects_can_be_read(kube: Kube, namespace: str, inner: Object) -> None:
    with pytest.raises(BadRequest, match=r"spec\.embedded"):
        await kube.create(WIDGET, widget(namespace, embedded=inner))


async def test_unknown_metadata_of_embedded_objects_is_dropped(kube: Kube, namespace: str) -> None:
    embedded = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "colour": "red"}}
    created = await kube.create(WIDGET, widget(namespace, embedded=embedded))
    assert created["spec"]["embedded"]["metadata"] == {"name": "n"}


@pytest.mark.parametrize("number", [1e20, 1e18, 2**63])
async def test_large_numbers_are_no_integers(kube: Kube, namespace: str, number: float) -> None:
    await kube.create(WIDGET, widget(namespace))
    patch = {"status": {"seen": number}}
    with pytest.raises(Invalid, match=r"status\.seen: Invalid value"):
        await kube.patch(WIDGET, "first", patch, namespace, subresource="status")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"configURL": "ftp://x"}, "spec.configURL"),
        ({"configSyncMode": "sometimes"}, "spec.configSyncMode"),
        (
            {"source": {"type": "Prometheus", "params": {"range": -1}}},
            "spec.source.params.range: Invalid value: -1: ",
        ),
        ({"source": {"type": "prometheus", "params": {"query": " "}}}, "must not be empty"),
        ({"scoring": {"params": {"interval": 0}}}, "spec.scoring.params.interval"),
        ({"scoreDimensionFormat": "no placeholder"}, "spec.scoreDimensionFormat"),
        ({"configSyncMode": "none"}, "set spec.scoring.params.name"),
    ],
)
async def test_nonsense_in_a_dynamic_scorer_is_refused(
    kube: Kube, namespace: str, spec: Object, problem: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await kube.create(DYNAMIC_SCORER, scorer(namespace, **spec))
    kind = "DynamicScorer.dynamic-scoring.open-cluster-management.io"
    assert refused.value.message.startswith(f'{kind} "latency" is invalid: ')
    assert problem in refused.value.message


async def test_a_scoring_config_has_one_name(kube: Kube, namespace: str) -> None:
    obj = {"metadata": {"name": "other", "namespace": namespace}, "spec": {}}
    with pytest.raises(Invalid, match="must be named dynamic-scoring-config"):
        await kube.create(DYNAMIC_SCORING_CONFIG, obj)
    obj["metadata"]["name"] = "dynamic-scoring-config"
    assert await kube.create(DYNAMIC_SCORING_CONFIG, obj)


async def test_a_placement_gets_its_defaults_and_weights_have_limits(
    kube: Kube, namespace: str
) -> None:
    configuration: Object = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}}
    spec = {"prioritizerPolicy": {"configurations": [configuration]}}
    obj = {"metadata": {"name": "p", "namespace": namespace}, "spec": spec}
    policy = (await kube.create(PLACEMENT, obj))["spec"]["prioritizerPolicy"]
    assert policy["mode"] == "Additive"
    assert policy["configurations"][0]["weight"] == 1
    obj["metadata"]["name"], configuration["weight"] = "q", 11
    with pytest.raises(Invalid, match="should be less than or equal to 10"):
        await kube.create(PLACEMENT, obj)


async def test_a_placement_binding_stands_without_a_spec(kube: Kube, namespace: str) -> None:
    binding: Object = {
        "metadata": {"name": "b", "namespace": namespace},
        "placementRef": {
            "apiGroup": "cluster.open-cluster-management.io",
            "kind": "Placement",
            "name": "p",
        },
        "subjects": [
            {"apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "x"}
        ],
    }
    created = await kube.create(PLACEMENT_BINDING, binding)
    assert created["placementRef"] == binding["placementRef"]
    assert created["subjects"] == binding["subjects"]
    del binding["subjects"]
    binding["metadata"]["name"] = "c"
    with pytest.raises(Invalid, match="subjects: Required value"):
        await kube.create(PLACEMENT_BINDING, binding)


async def test_a_policy_keeps_its_templates(kube: Kube, namespace: str) -> None:
    template = {"objectDefinition": {"apiVersion": "v1", "kind": "X", "spec": {"a": [1]}}}
    spec = {"disabled": False, "remediationAction": "enforce", "policy-templates": [template]}
    obj = {"metadata": {"name": "p", "namespace": namespace}, "spec": spec}
    assert (await kube.create(POLICY, obj))["spec"] == spec


async def test_a_manifest_work_keeps_its_manifests(kube: Kube, namespace: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"},
        "data": {"a": "b"},
    }
    obj = {
        "metadata": {"name": "w", "namespace": namespace},
        "spec": {"workload": {"manifests": [manifest]}},
    }
    created = await kube.create(MANIFEST_WORK, obj)
    stored = created["spec"]["workload"]["manifests"][0]
    stored["metadata"].pop("creationTimestamp", None)
    assert stored == manifest


async def test_a_managed_cluster_gets_its_lease_duration(kube: Kube, namespace: str) -> None:
    name = f"cluster-{namespace}"
    obj = {"metadata": {"name": name}, "spec": {"hubAcceptsClient": False}}
    created = await kube.create(MANAGED_CLUSTER, obj)
    assert created["spec"]["leaseDurationSeconds"] == 60
    await kube.delete(MANAGED_CLUSTER, name)


def _defaulting(crd: Object) -> None:
    _properties(crd)["spec"] = {
        "type": "object",
        "default": {},
        "required": ["kept"],
        "properties": {"kept": {"type": "boolean", "default": True}},
    }


def _ruled(crd: Object) -> None:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = [{"rule": "self.( =="}]


def _properties(crd: Object) -> Object:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties: Object = schema["properties"]
    return properties


DEFINITIONS_REFUSED: list[tuple[Callable[[Object], Any], str]] = [
    (
        lambda crd: crd["metadata"].update(name="things.contract.example.com"),
        r'must be spec\.names\.plural\+"\."\+spec\.group',
    ),
    (
        lambda crd: crd["spec"]["versions"][0].update(storage=False),
        "must have exactly one version marked as storage version",
    ),
    (lambda crd: crd["spec"]["versions"][0].pop("schema"), "openAPIV3Schema: Required value"),
    (lambda crd: _properties(crd).update(spec={}), "must not be empty for specified object fields"),
    (_defaulting, r"default\.kept: Required value"),
    (_ruled, "compilation failed"),
]


@pytest.mark.parametrize(("change", "problem"), DEFINITIONS_REFUSED)
async def test_what_a_definition_must_not_say(
    kube: Kube, change: Callable[[Object], Any], problem: str
) -> None:
    crd = _renamed(gadget_definition(), "gizmos")
    change(crd)
    with pytest.raises(Invalid, match=problem):
        await kube.create(CUSTOM_RESOURCE_DEFINITION, crd)


async def test_a_changed_definition_is_used_at_once_for_what_is_written(
    kube: Kube, namespace: str
) -> None:
    crd = _renamed(widget_definition(), "gears", "Gear")
    kind = Kind(WIDGET.group, "v1", "Gear", "gears")
    await kube.create(CUSTOM_RESOURCE_DEFINITION, crd)
    try:
        await _create_when_served(kube, kind, namespace)
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["added"] = {"type": "string"}
        await kube.patch(CUSTOM_RESOURCE_DEFINITION, kind.resource, {"spec": crd["spec"]})
        await _field_is_kept(kube, kind, namespace)
    finally:
        await kube.delete(CUSTOM_RESOURCE_DEFINITION, kind.resource)


async def _create_when_served(kube: Kube, kind: Kind, namespace: str) -> None:
    async def created() -> bool:
        try:
            await kube.create(kind, {"metadata": {"name": "g", "namespace": namespace}})
        except NotFound:
            return False
        return True

    assert await eventually(created)


async def _field_is_kept(kube: Kube, kind: Kind, namespace: str) -> None:
    async def kept() -> bool:
        patched = await kube.patch(kind, "g", {"spec": {"added": "x"}}, namespace)
        return "added" in patched["spec"]

    assert await eventually(kept)


def _renamed(crd: Object, plural: str, kind: str = "Gizmo") -> Object:
    crd["metadata"]["name"] = f"{plural}.{GADGET.group}"
    crd["spec"]["names"] = {"plural": plural, "kind": kind}
    return crd
