"""Cases that our CRDs accept or refuse: one list for both API servers.

A `Constraint` is one keyword or rule of a schema, tried both ways. Those of keywords are made from
the schema: a sample that has the field gets a value at the limit, and one beyond it. The list runs
on the embedded hub, and in `tests/real_hub` on a real kube-apiserver, so that neither is kinder.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from dsf.api.crd.definitions import crds
from tests.dsf.api.crd.crd_objects import (
    Object,
    config,
    inventory,
    optimization,
    plan,
    scorer,
    with_status,
)
from tests.earlier_release import charts

NONE = {"configSyncMode": "None", "scoring": {"params": {"name": "s"}}}
# Keywords that say nothing about a value, or that every field has.
_SILENT = ("type", "format", "description", "default", "properties", "items")
_GONE = object()
NODES: dict[str, Any] = {
    "apiVersion": "metrics.k8s.io/v1beta1",
    "resource": "nodes",
    "namespace": "default",
    "labelSelector": "a=b",
    "values": {"cpu": ".usage.cpu"},
    "labels": {"node": ".metadata.name"},
}
CLIENT: dict[str, Any] = {
    "clientCertificateSecretRef": {"name": "agent-tls"},
    "oauth2": {
        "tokenURL": "https://login.example/token",
        "clientSecretRef": {"name": "oauth-client"},
        "scopes": ["score:read"],
        "audience": "https://scorer.example",
        "tls": {"caSecretRef": {"name": "ca", "key": "ca.crt"}},
    },
}
"""How an OAuth client with a certificate authenticates."""

Change = Callable[[Any], Any]
AtLimit = tuple[Change, Change, str]

TEXTS = (
    *("", " ", " W", "W\n", "W\x1b[31m", "a\x85b", "two words", "gCO2eq/kWh", "\N{DEGREE SIGN}C"),
    *("-", "-a", "sample_my.score-1", "team-a|team_b", "a||b", "a.b", "Region", "As_Expected"),
    *("https://h:1/a?b=c", "http://h:9090", "ftp://h/c", "http://", "http:// h", "http:///api"),
    *("v1", "metrics.k8s.io/v1beta1", "a/b/v1", "pods", "-pods", "Pods"),
    *("0%", "100%", "101%", "1.5%"),
    *("h:9090", "http://u@h", "http://h/base", "FULL", "none", "prometheus", "Graphite"),
    *(
        "OpenTelemetry",
        "LOWERISBETTER",
        "higherisbetter",
        "a-${scoreName}",
        "app",
        "${zone}",
        "$app",
    ),
)
"""Texts that patterns accept or refuse; each pattern meets all of them."""


@dataclass(frozen=True)
class Constraint:
    """A keyword of a field's schema, a value that it accepts and one that it refuses.

    `field` is a path such as `spec.masks[].scoreName`; rules are numbered: `rule 1`. The values
    are those of the whole `spec` or `status`, or the whole object where the field is empty.
    """

    field: str
    keyword: str
    good: Object
    bad: Object
    message: str

    @property
    def name(self) -> str:
        """Its name in a test's output."""
        return f"{self.field or 'object'} {self.keyword}"


def _samples() -> Iterator[Object]:
    """Yield objects that together have every field: those of 0.1.0, and what came later."""
    one, _, fleet, stored = deepcopy(charts.objects())
    one["spec"]["scoring"]["params"] |= {"model": "linear", "alpha": 0.5, "log": True}
    one["spec"]["scoring"]["defaultScore"] = {"value": -100, "entries": ["app01;all"]}
    one["spec"]["scoring"]["onFailure"] |= {"value": 0}
    fleet["spec"]["sourceOverrides"].reverse()
    stored["status"]["rollout"]["stepTimes"] = [
        {"step": 1, "back": False, "began": "2026-01-01T00:00:00Z", "ended": "2026-01-01T00:01:00Z"}
    ]
    one["spec"]["scoreDimensionFormats"] = ["${scoreName}"]
    of_one_tenant = deepcopy(one)
    del one["spec"]["source"]["tenant"]
    of_a_client = deepcopy(one)
    for side in (of_a_client["spec"]["source"], of_a_client["spec"]["scoring"]):
        side["auth"] = CLIENT
    of_objects = deepcopy(one)
    of_objects["spec"]["source"] = {"type": "Kubernetes", "kubernetes": NODES}
    alone = (one, of_one_tenant, of_a_client, of_objects)
    text = Path(__file__).with_name("every_field.yaml").read_text(encoding="utf-8")
    others = yaml.safe_load_all(text)
    for obj in (*alone, *map(_of_several, alone), fleet, stored, *others):
        yield {**obj, "metadata": {"name": obj["metadata"]["name"]}}


def _of_several(obj: Object) -> Object:
    """Return a DynamicScorer whose only source is one of several."""
    spec = dict(obj["spec"])
    source = spec.pop("source")
    return {**obj, "spec": {**spec, "sources": [{"name": "gpu", **source}]}}


SAMPLES = tuple(_samples())
_BARE = {
    "PlacementPlan": lambda: plan("stored"),
    "PlacementOptimization": optimization,
    "NodeInventory": inventory,
}
"""Objects without a status of the kinds that are no scorers."""
_MOST_ITEMS = 10_000
"""An object with more is too large for an API server before such a limit is reached."""


def _changed(value: Any, path: list[str], change: Change) -> Any:
    """Return a value with a change at a path; `[]` is the first item. Raises KeyError."""
    if not path:
        return change(value)
    first, *rest = path
    if first == "[]":
        return [_changed(value[0], rest, change), *value[1:]]
    inner = _changed(value[first], rest, change)
    return {**{k: v for k, v in value.items() if k != first}, **_present({first: inner})}


def _present(fields: Object) -> Object:
    return {key: value for key, value in fields.items() if value is not _GONE}


def _with(field: str, change: Change, kind: str) -> Object:
    """Return an object in which a field of a sample is changed."""
    path = field.replace("[]", ".[]").split(".") if field else []
    for sample in SAMPLES:
        if kind not in ("", sample["kind"]):
            continue
        try:
            changed = _changed(sample, path, change)
        except (KeyError, IndexError):
            continue
        if not field.startswith("status"):
            return _present({**changed, "status": _GONE})
        bare = _BARE.get(sample["kind"])
        return with_status(changed["status"], bare() if bare else None)
    raise AssertionError(f"no sample has {field}: add it to _samples")


def _of_keyword(kind: str, field: str, keyword: str, schema: Object) -> Iterator[Constraint]:
    """Yield what a keyword of a field's schema accepts and refuses at its limit."""
    match keyword.split():
        case ["required", name]:
            yield _constraint(
                field, keyword, _same, _without(name), f"{name}: Required value", kind
            )
        case ["pattern"]:
            yield from _of_pattern(kind, field, schema)
        case ["enum"]:
            for value in schema["enum"]:
                yield _constraint(
                    field, keyword, _to(value), _to("Elsewhere"), "Unsupported value", kind
                )
        case _:
            yield _constraint(field, keyword, *_AT_LIMIT[keyword](schema), kind)


def _constraint(
    field: str, keyword: str, good: Change, bad: Change, message: str, kind: str = ""
) -> Constraint:
    return Constraint(field, keyword, _with(field, good, kind), _with(field, bad, kind), message)


def _same(value: Any) -> Any:
    return value


def _to(value: Any) -> Change:
    return lambda _: value


def _without(name: str) -> Callable[[Object], Object]:
    return lambda value: {key: item for key, item in value.items() if key != name}


def _matches(schema: Object, text: str) -> bool:
    """Tell whether a text matches the pattern of a schema, by the rules of RE2."""
    strict = re.sub(r"\$(?=\)|$|\|)", r"\\Z", schema.get("pattern", ""))
    return re.search(strict, text, re.ASCII) is not None


def _padded(schema: Object, beyond: int) -> Callable[[str], str]:
    """Return what makes a text as long as it may be, or longer; not where a pattern forbids it."""

    def pad(text: str) -> str:
        padded = text.ljust(schema["maxLength"] + beyond, "x")
        return padded if beyond or _matches(schema, padded) else text

    return pad


def _of_pattern(kind: str, field: str, schema: Object) -> Iterator[Constraint]:
    longest = schema.get("maxLength", 1000)
    fitting = [text for text in TEXTS if len(text) <= longest]
    accepted = [text for text in fitting if _matches(schema, text)]
    refused = [text for text in fitting if not _matches(schema, text)]
    assert refused, field
    # kube-apiserver does not match a text that is too short.
    least = schema.get("minLength", 0)
    said = {text: "should match" if len(text) >= least else "at least" for text in refused}
    for text in accepted:
        good, bad = _to(text), _to(refused[0])
        yield _constraint(field, "pattern", good, bad, said[refused[0]], kind)
    for text in refused:
        yield _constraint(field, "pattern", _same, _to(text), said[text], kind)


def _bound(keyword: str, schema: Object) -> AtLimit:
    word, side = ("less", 1) if "aximum" in keyword else ("greater", -1)
    limit = schema["maximum" if side == 1 else "minimum"]
    exclusive = schema.get("exclusiveMaximum" if side == 1 else "exclusiveMinimum", False)
    least = 1 if schema["type"] == "integer" else 0.001
    good = limit - side * least if exclusive else limit
    bad = limit if keyword.startswith("exclusive") else limit + side * max(1, abs(limit) // 1_000)
    return _to(good), _to(bad), f"should be {word} than"


def _items(schema: Object, number: int) -> Callable[[list[Any]], list[Any]]:
    """Return what makes a list of so many items, distinct where the schema asks for it."""
    distinct = schema.get("x-kubernetes-list-type") in ("map", "set")
    keys = schema.get("x-kubernetes-list-map-keys", ())

    def another(item: Any, place: int) -> Any:
        if not distinct or not place:
            return item
        return item | dict.fromkeys(keys, f"x{place}") if keys else f"{item}{place}"

    return lambda items: [another(items[0], place) for place in range(number)]


def _properties(number: int) -> Callable[[Object], Object]:
    return lambda own: own | {f"p{place}": f"{place}" for place in range(number - len(own))}


_OF_TYPE = {"string": "b", "integer": 1, "boolean": True}

_AT_LIMIT: Mapping[str, Callable[[Object], AtLimit]] = {
    "maxLength": lambda schema: (_padded(schema, 0), _padded(schema, 1), "Too long: may not be"),
    "minLength": lambda _: (_same, _to(""), "should be at least 1 chars long"),
    "x-kubernetes-int-or-string": lambda _: (_to(1), _to(True), "must be of type"),
    "maxItems": lambda schema: (
        _items(schema, schema["maxItems"]),
        _items(schema, schema["maxItems"] + 1),
        f"Too many: {schema['maxItems'] + 1}",
    ),
    "minItems": lambda _: (_same, _to([]), "should have at least 1 items"),
    "maxProperties": lambda schema: (
        _properties(schema["maxProperties"]),
        _properties(schema["maxProperties"] + 1),
        f"Too many: {schema['maxProperties'] + 1}",
    ),
    "x-kubernetes-list-type": lambda schema: (_items(schema, 2), _items({}, 2), "Duplicate value"),
    "minProperties": lambda _: (_same, _to({}), "should have at least 1 properties"),
    "additionalProperties": lambda schema: (
        _to({"a": _OF_TYPE[schema["additionalProperties"].get("type", "string")]}),
        _to({"a": ["b"]}),
        "must be of type",
    ),
    **{
        bound: partial(_bound, bound)
        for bound in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    },
}
"""What a field accepts at the limit of a keyword, what it refuses beyond it, and the message."""


def _keywords() -> Iterator[Constraint]:
    """Yield the constraints of all keywords; the conditions of a config are those of the others."""
    for crd in crds():
        for field, keyword, schema in _declared(schema_of(crd), ""):
            kind = crd["spec"]["names"]["kind"]
            of_config = kind == "DynamicScoringConfig"
            if not keyword.startswith("rule") and not (of_config and field.startswith("status")):
                yield from _of_keyword(kind, field, keyword, schema)


def _spec(field: str, value: Any) -> Object:
    """Return a DynamicScorer in which one field has a value."""
    obj = scorer()
    inner = obj
    *path, last = field.split(".")
    for part in path:
        inner = inner.setdefault(part, {})
    inner[last] = value
    return obj


def _source_rules() -> Iterator[Constraint]:
    """Yield the rules that one source has, alone or among several."""
    blank = "a query for source type Prometheus must not be empty"
    sources: list[Object] = [
        {"type": "Prometheus", "params": {"query": "up"}},
        {"type": "Prometheus", "params": {"range": 60}},
        {"type": "Prometheus"},
        {"type": "OpenTelemetry", "params": {"query": ""}},
    ]
    blanks: list[Object] = [
        {"params": {"query": ""}},
        {"type": "prometheus", "params": {"query": " \n"}},
    ]
    for good in sources:
        for bad in blanks:
            yield Constraint(
                "spec.source", "rule 1", scorer(source=good), scorer(source=bad), blank
            )
    tenants: list[Object] = [
        {"tenant": "a"},
        {"type": "PROMETHEUS", "tenant": "a"},
        {"type": "OpenTelemetry"},
    ]
    for good in tenants:
        bad = {"type": "OpenTelemetry", "tenant": "a"}
        alone = "only a source of type Prometheus has tenants"
        yield Constraint("spec.source", "rule 2", scorer(source=good), scorer(source=bad), alone)
    yield from _rules_of_objects()
    for number, field, instead in (
        (5, "endpoint", "source.host and source.path"),
        (6, "query", "source.params.query, source.params.range and source.params.step"),
    ):
        bad = scorer(source={field: {"host": "http://h:9090"}})
        yield Constraint("spec.source", f"rule {number}", scorer(source={}), bad, instead)
    token = {"tokenSecretRef": {"name": "n", "key": "k"}}
    own = {"serviceAccountToken": True}
    for good in (token, own, CLIENT, {**token, "serviceAccountToken": False}):
        for bad in ({**token, **own}, {**CLIENT, **own}, {**token, **CLIENT}):
            message = "serviceAccountToken, oauth2 and tokenSecretRef exclude each other"
            field = "spec.source.auth"
            yield Constraint(field, "rule 1", _spec(field, good), _spec(field, bad), message)


def _rules_of_objects() -> Iterator[Constraint]:
    objects = {"type": "kubernetes", "kubernetes": NODES}
    alone = "only a source of type Kubernetes has objects"
    for kind in ("Prometheus", "OpenTelemetry"):
        bad = scorer(source={**objects, "type": kind})
        yield Constraint("spec.source", "rule 3", scorer(source=objects), bad, alone)
    for of_servers in (
        *({"host": "http://h:9090"}, {"path": "/api"}, {"params": {"query": "up"}}),
        *({"auth": {"serviceAccountToken": True}}, {"tls": {}}),
    ):
        good, bad = scorer(source=objects), scorer(source={**objects, **of_servers})
        alone = "reads the managed cluster's API server as the agent: remove"
        yield Constraint("spec.source", "rule 4", good, bad, alone)
    field = "spec.source.kubernetes"
    for number, part, names, message in (
        (1, "values", ("a-b", "1a", "a.b"), "a name of values is that of a metric"),
        (2, "labels", ("a:b", "__a", "name", "namespace"), "a name of labels has letters"),
    ):
        for name in names:
            bad = scorer(source={**objects, "kubernetes": {**NODES, part: {name: ".a"}}})
            yield Constraint(field, f"rule {number}", scorer(source=objects), bad, message)


def _among_several(case: Constraint) -> Constraint:
    """Return a constraint of a source as that of one of several."""

    return Constraint(
        case.field.replace("spec.source", "spec.sources[]"),
        case.keyword,
        _of_several(case.good),
        _of_several(case.bad),
        case.message.replace("spec.source.", "spec.sources[0]."),
    )


def _shape_of_the_article() -> Iterator[Constraint]:
    """Yield what refuses the example of the first article: each message shows the right field."""
    message = "metadata.name is the name of a DynamicScorer: remove spec.name"
    yield Constraint("spec", "rule 9", scorer(), scorer(name="cpu-predictor"), message)
    bad = _spec("spec.scoring.endpoint", {"host": "http://h:8000", "path": "/scoring"})
    instead = "write host and path of the endpoint as scoring.host and scoring.path"
    yield Constraint("spec.scoring", "rule 1", scorer(scoring={}), bad, instead)


def _rules() -> Iterator[Constraint]:
    """Yield the CEL rules; each way in which a rule can hold is tried."""
    unnamed = "set spec.scoring.params.name"
    nameless: list[Object] = [{}, {"scoring": {}}, {"scoring": {"params": {"interval": 5}}}]
    for bad in nameless:
        for mode in ("None", "none", "NONE"):
            yield Constraint(
                "spec",
                "rule 1",
                scorer(**{**NONE, "configSyncMode": mode}),
                scorer(**{**bad, "configSyncMode": mode}),
                unnamed,
            )
    aimless = "configSyncMode None with source type Prometheus needs spec.source.params.query"
    queryless: list[Object] = [{}, {"type": "PROMETHEUS", "params": {}}, {"params": {"step": 5}}]
    for source in ({"type": "None"}, {"params": {"query": "up"}}, None):
        for bad in queryless:
            yield Constraint(
                "spec", "rule 2", scorer(**NONE, source=source), scorer(**NONE, source=bad), aimless
            )
    other = {**config(), "metadata": {"name": "my-config"}}
    singleton = "a DynamicScoringConfig must be named dynamic-scoring-config"
    yield Constraint("", "rule 1", config(), other, singleton)
    gpu = {"name": "gpu", "params": {"query": "up"}}
    both = scorer(sources=[gpu], source={"params": {"query": "up"}})
    one = scorer(sources=[gpu])
    yield Constraint("spec", "rule 5", one, both, "give source or sources, not both")
    each = "configSyncMode None needs params.query or kubernetes in each of spec.sources"
    of_objects = {"name": "nodes", "type": "Kubernetes", "kubernetes": NODES}
    for bad in ({"name": "power"}, {"name": "power", "params": {"step": 5}}):
        refused = scorer(**NONE, sources=[gpu, bad])
        goods = (scorer(**NONE, sources=[gpu, of_objects]), scorer(sources=[gpu, bad]))
        for good in goods:
            yield Constraint("spec", "rule 6", good, refused, each)
    unnamed = "a default score needs names of entries"
    nameless_default = {"scoring": {"defaultScore": {"value": 0}}}
    for formats in (
        {"scoreDimensionFormat": "${scoreName}"},
        {"scoreDimensionFormat": "all-of-${cluster}"},
        {"scoreDimensionFormats": ["${scoreName}"]},
    ):
        refused = scorer(**nameless_default, scoreDimensionFormats=["${app}"])
        accepted = scorer(**nameless_default, **formats)
        yield Constraint("spec", "rule 7", accepted, refused, unnamed)
    token, field = {"tokenSecretRef": {"name": "n", "key": "k"}}, "spec.scoring.auth"
    for given in (token, CLIENT):
        refused = _spec(field, {**token, **CLIENT})
        message = "oauth2 and tokenSecretRef exclude each other"
        yield Constraint(field, "rule 1", _spec(field, given), refused, message)
    for number, key in enumerate(("description", "configURL"), start=3):
        refused = scorer(**{key: None})
        yield Constraint("spec", f"rule {number}", scorer(), refused, f"{key} is required")


def _rules_of_optimizations() -> Iterator[Constraint]:
    kept = optimization()
    for name in ("a" * 64, "a.b"):
        bad = {**kept, "metadata": {"name": name}}
        yield Constraint("", "rule 1", kept, bad, "the name is that of the optimization")
    for value in (-1_000_001, 1_000_001, "none"):
        bad = optimization(missingScore=value)
        for good in (-1_000_000, 0, 1_000_000, "forbid"):
            accepted = optimization(missingScore=good)
            yield Constraint("spec.missingScore", "rule 1", accepted, bad, "must be 'forbid' or")

    for moves in (-1, 1_000_001):
        bad = optimization(budgets=[{"moves": moves}])
        for right in (0, 1_000_000, "0%", "100%"):
            good = optimization(budgets=[{"moves": right}])
            message = "must be a number from 0 to 1000000 or a percentage"
            yield Constraint("spec.budgets[].moves", "rule 1", good, bad, message)
    whole = {"schedule": "@daily", "duration": "8h"}
    for name, value in whole.items():
        bad = optimization(budgets=[{"moves": 1, name: value}])
        for window in ({}, whole):
            good = optimization(budgets=[{"moves": 1, **window}])
            message = "state schedule and duration, or none"
            yield Constraint("spec.budgets[]", "rule 1", good, bad, message)
            good = optimization(clusters=[{"name": "worker01", "drain": window}])
            refused = optimization(clusters=[{"name": "worker01", "drain": {name: value}}])
            yield Constraint("spec.clusters[].drain", "rule 1", good, refused, message)
    zoned, zone = {**whole, "timeZone": "Asia/Tokyo"}, {"timeZone": "Asia/Tokyo"}
    message = "timeZone: it is that of a schedule"
    good, refused = (optimization(budgets=[{"moves": 1, **window}]) for window in (zoned, zone))
    yield Constraint("spec.budgets[]", "rule 2", good, refused, message)
    good, refused = (
        optimization(clusters=[{"name": "worker01", "drain": window}]) for window in (zoned, zone)
    )
    yield Constraint("spec.clusters[].drain", "rule 2", good, refused, message)


def _value_rules() -> Iterator[Constraint]:
    for host in ("${NODE_IP}:30007", "$NODE_IP", "<address>:8000", "{{ip}}", ":30007"):
        refused = scorer(configURL=f"http://{host}/config")
        for good in ("http://[::1]:8000/config", "https://scorer/${app}?of=<all>"):
            accepted = scorer(configURL=good)
            yield Constraint("spec", "rule 8", accepted, refused, "configURL has a placeholder")
    field = "spec.scoring.normalize"
    for least, most in ((5, 5), (1, 0.5)):
        good, bad = ({"min": low, "max": high} for low, high in ((0, 0.5), (least, most)))
        message = "min has to be less than max"
        yield Constraint(field, "rule 1", _spec(field, good), _spec(field, bad), message)
    field = "spec.scoring.onFailure"
    incomplete = "policy Hold needs holdSeconds, policy Value needs value"
    for policy, key in (("Hold", "holdSeconds"), ("Value", "value")):
        good, bad = _spec(field, {"policy": policy, key: 1}), _spec(field, {"policy": policy})
        yield Constraint(field, "rule 1", good, bad, incomplete)
    for field in ("spec.range", "status.meaning.range"):
        for ends in ({"min": 0}, {"max": -0.5}, {"min": -2.5, "max": 1000}):
            no_end = "a range needs min or max"
            yield _constraint(field, "rule 1", _to(ends), _to({}), no_end)
            for least, most in ((5, 5), (1, 0.5)):
                bad = {"min": least, "max": most}
                message = "min has to be less than max"
                yield _constraint(field, "rule 2", _to(ends), _to(bad), message)
    field = "spec.sourceOverrides"
    host = {"sourceHost": "http://thanos:9090"}
    named, some = {"clusterName": "c1"}, {"clusterSelector": {"matchLabels": {"a": "b"}}}
    good = config(sourceOverrides=[{**named, **host, "scoreName": "s"}, {**some, **host}])
    for bad in (host, {**named, **some, **host}):
        message = "name either clusterName or clusterSelector"
        yield Constraint(f"{field}[]", "rule 1", good, config(sourceOverrides=[bad]), message)
    secret = "spec.context.workloads.fields[]"
    for field in ("env", "envFrom", "args", "annotations", "volumes", "secrets"):
        message = f'fields[0]: Unsupported value: "{field}"'
        yield _constraint(secret, "enum", _same, _to(field), message)


def declared() -> set[str]:
    """Return every constraint of the CRDs, named as `Constraint` names it."""
    return {
        f"{field or 'object'} {keyword}"
        for crd in crds()
        for field, keyword, _ in _declared(schema_of(crd), "")
    }


def schema_of(crd: Mapping[str, Any]) -> Object:
    """Return the schema of a CRD's only version."""
    schema: Object = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _declared(schema: Object, path: str) -> Iterator[tuple[str, str, Object]]:
    """Yield the field, the keyword and the field's schema of every constraint."""
    for keyword, value in schema.items():
        match keyword:
            case "required":
                yield from ((path, f"required {name}", schema) for name in value)
            case "x-kubernetes-validations":
                yield from ((path, f"rule {at + 1}", schema) for at in range(len(value)))
            case "x-kubernetes-list-type" if value == "atomic":
                continue
            case "x-kubernetes-list-map-keys" | "x-kubernetes-preserve-unknown-fields":
                continue
            case "maxItems" if value > _MOST_ITEMS:
                continue
            case _ if keyword not in _SILENT:
                yield path, keyword, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _declared(inner, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from _declared(schema["items"], f"{path}[]")


CONSTRAINTS = (
    *_keywords(),
    *_source_rules(),
    *map(_among_several, _source_rules()),
    *_shape_of_the_article(),
    *_rules(),
    *_rules_of_optimizations(),
    *_value_rules(),
)
ACCEPTED = tuple({str(case.good): (case.name, case.good) for case in CONSTRAINTS}.values())
REFUSED = tuple(
    {str(case.bad): (case.name, case.bad, case.message) for case in CONSTRAINTS}.values()
)
