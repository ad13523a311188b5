"""Cases that our three CRDs accept or refuse: one list for both API servers.

A `Constraint` is one keyword or rule of a schema, tried both ways. `tests/dsf/api` runs the list
on the embedded hub and `tests/real_hub` on a real kube-apiserver, so that neither is kinder.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsf.api.crd.definitions import crds
from dsf.api.crd.dynamic_scorer import FAILING_CLUSTERS, MOST_FORMATS
from dsf.api.crd.dynamic_scoring_config import SOURCE_OVERRIDES
from dsf.api.crd.score_rules import MOST_DEFAULT_ENTRIES
from dsf.api.crd.scorer_source import MOST_SOURCES
from dsf.api.crd.scoring_params import MOST_PARAMS
from tests.dsf.api.crd.crd_objects import Object, config, plan, scorer, with_status

NONE = {"configSyncMode": "None", "scoring": {"params": {"name": "s"}}}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "AsExpected",
    "message": "",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
# Keywords that say nothing about a value, or that every field has.
_SILENT = ("type", "format", "description", "default", "properties", "items")


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


def _length(field: str, limit: int, *, least: int = 0, **around: str) -> Iterator[Constraint]:
    """Yield the constraints on the length of a field of a DynamicScorer's spec."""
    before, after = around.get("before", ""), around.get("after", "")
    longest = before + "x" * (limit - len(before + after)) + after
    too_long = f"{field}: Too long: may not be more than {limit} bytes"
    good = _spec(field, longest)
    yield Constraint(field, "maxLength", good, _spec(field, longest + "x"), too_long)
    if least:
        too_short = f"{field} in body should be at least {least} chars long"
        yield Constraint(field, "minLength", good, _spec(field, "x" * (least - 1)), too_short)


def _range(field: str, least: int, most: int) -> Iterator[Constraint]:
    below = f"{field} in body should be greater than or equal to {least}"
    yield Constraint(field, "minimum", _spec(field, least), _spec(field, least - 1), below)
    above = f"{field} in body should be less than or equal to {most}"
    yield Constraint(field, "maximum", _spec(field, most), _spec(field, most + 1), above)


def _patterns(field: str, good: str, *bad: str) -> Iterator[Constraint]:
    for value in bad:
        message = f"{field} in body should match"
        yield Constraint(field, "pattern", _spec(field, good), _spec(field, value), message)


def _enum(field: str, *values: str) -> Iterator[Constraint]:
    message = f'{field}: Unsupported value: "Elsewhere"'
    for value in values:
        good, bad = _spec(field, value), _spec(field, "Elsewhere")
        yield Constraint(field, "enum", good, bad, message)


def _spec(field: str, value: Any) -> Object:
    """Return a DynamicScorer in which one field has a value."""
    obj = scorer()
    inner = obj
    *path, last = field.split(".")
    for part in path:
        inner = inner.setdefault(part, {})
    inner[last] = value
    # Both keys of a reference are required.
    if path[-1:] in (["tokenSecretRef"], ["caSecretRef"]):
        inner.update({key: "x" for key in ("name", "key") if key != last})
    return obj


def _secret_ref(ref: str) -> Iterator[Constraint]:
    good = _spec(ref, {"name": "api-auth-secret", "key": "token"})
    for field, other in (("name", "key"), ("key", "name")):
        bad = _spec(ref, {other: "x"})
        yield Constraint(ref, f"required {field}", good, bad, f"{ref}.{field}: Required value")
        yield from _length(f"{ref}.{field}", 253, least=1)


def _masks(field: str) -> Iterator[Constraint]:
    mask = {"clusterName": "worker01", "scoreName": "something_gpu_score"}
    spec = field.removeprefix("spec.")
    good = config(**{spec: [mask]})
    for key in mask:
        path = f"{field}[0].{key}"
        where = f"{field}[].{key}"
        without = {other: value for other, value in mask.items() if other != key}
        yield Constraint(
            f"{field}[]",
            f"required {key}",
            good,
            config(**{spec: [without]}),
            f"{path}: Required value",
        )
        yield Constraint(
            where,
            "minLength",
            good,
            config(**{spec: [{**mask, key: ""}]}),
            f"{path} in body should be at least 1 chars long",
        )
        yield Constraint(
            where,
            "maxLength",
            config(**{spec: [{**mask, key: "x" * 253}]}),
            config(**{spec: [{**mask, key: "x" * 254}]}),
            f"{path}: Too long: may not be more than 253 bytes",
        )
    yield Constraint(
        field,
        "maxItems",
        config(**{spec: [mask] * 10_000}),
        config(**{spec: [mask] * 10_001}),
        f"{field}: Too many: 10001: must have at most 10000 items",
    )


def _condition(keyword: str, field: str, good: Any, bad: Any, message: str) -> Constraint:
    return Constraint(
        f"status.conditions[].{field}",
        keyword,
        with_status({"conditions": [{**CONDITION, field: good}]}),
        with_status({"conditions": [{**CONDITION, field: bad}]}),
        # Messages about a value name it from the status on.
        f"conditions[0].{field}{message}",
    )


def _conditions() -> Iterator[Constraint]:
    good = with_status({"conditions": [CONDITION]})
    for key in CONDITION:
        without = {other: value for other, value in CONDITION.items() if other != key}
        yield Constraint(
            "status.conditions[]",
            f"required {key}",
            good,
            with_status({"conditions": [without]}),
            f"status.conditions[0].{key}: Required value",
        )
    yield Constraint(
        "status.conditions",
        "x-kubernetes-list-type",
        with_status({"conditions": [CONDITION, {**CONDITION, "type": "Reachable"}]}),
        with_status({"conditions": [CONDITION, {**CONDITION, "status": "False"}]}),
        'status.conditions[1]: Duplicate value: {"type":"Ready"}',
    )
    long = "x" * 32_769
    yield _condition("maxLength", "type", "x" * 316, "x" * 317, ": Too long")
    yield _condition("enum", "status", "Unknown", "Maybe", ': Unsupported value: "Maybe"')
    yield _condition("maxLength", "reason", "x" * 1024, "x" * 1025, ": Too long")
    yield _condition("minLength", "reason", "x", "", " in body should be at least 1 chars long")
    yield _condition("pattern", "reason", "As_Expected", "not one word", " in body should match")
    yield _condition("maxLength", "message", long[1:], long, ": Too long")
    yield _condition(
        "minimum", "observedGeneration", 0, -1, " in body should be greater than or equal to 0"
    )


def _endpoint(part: str) -> Iterator[Constraint]:
    yield from _length(f"{part}.host", 2048, before="http://")
    for url in ("http://h:9090", ""):
        yield from _patterns(f"{part}.host", url, "h:9090", " ", "http:///api")
    yield from _length(f"{part}.path", 2048)
    yield from _secret_ref(f"{part}.auth.tokenSecretRef")
    yield from _secret_ref(f"{part}.tls.caSecretRef")


def _source() -> Iterator[Constraint]:
    """Yield the constraints that one source has, alone or among several."""
    yield from _endpoint("spec.source")
    for kind in ("Prometheus", "prometheus", "OpenTelemetry", "opentelemetry"):
        yield from _patterns("spec.source.type", kind, "", "Graphite")
    yield Constraint(
        "spec.source.type",
        "maxLength",
        scorer(source={"type": "OPENTELEMETRY"}),
        scorer(source={"type": "OpenTelemetry2"}),
        "spec.source.type: Too long: may not be more than 13 bytes",
    )
    yield from _length("spec.source.params.query", 65_536)
    yield from _length("spec.source.tenant", 1024, least=1)
    yield from _patterns("spec.source.tenant", "team-a|team_b", "a b", "a||b", "a/b", "é")
    yield from _range("spec.source.params.range", 0, 31_622_400)
    yield from _range("spec.source.params.step", 1, 31_622_400)
    yield from _own_token()
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
        yield Constraint(
            "spec.source",
            "rule 2",
            scorer(source=good),
            scorer(source=bad),
            "only a source of type Prometheus has tenants",
        )
    for number, field, instead in (
        (3, "endpoint", "source.host and source.path"),
        (4, "query", "source.params.query, source.params.range and source.params.step"),
    ):
        bad = scorer(source={field: {"host": "http://h:9090"}})
        yield Constraint("spec.source", f"rule {number}", scorer(source={}), bad, instead)


def _among_several(case: Constraint) -> Constraint:
    """Return a constraint of a source as that of one of several."""

    def several(obj: Object) -> Object:
        spec = dict(obj["spec"])
        source = spec.pop("source")
        return {**obj, "spec": {**spec, "sources": [{"name": "gpu", **source}]}}

    return Constraint(
        case.field.replace("spec.source", "spec.sources[]"),
        case.keyword,
        several(case.good),
        several(case.bad),
        case.message.replace("spec.source.", "spec.sources[0]."),
    )


def _several_sources() -> Iterator[Constraint]:
    field = "spec.sources"
    gpu, power = ({"name": name, "params": {"query": "up"}} for name in ("gpu", "power"))
    good = scorer(sources=[gpu, power])
    for bad, keyword, message in (
        ([gpu, gpu], "x-kubernetes-list-type", 'spec.sources[1]: Duplicate value: {"name":"gpu"}'),
        ([], "minItems", "spec.sources in body should have at least 1 items"),
    ):
        yield Constraint(field, keyword, good, scorer(sources=bad), message)
    many = [{**gpu, "name": f"s{number}"} for number in range(MOST_SOURCES + 1)]
    most, too_many = scorer(sources=many[1:]), f"{field}: Too many: {MOST_SOURCES + 1}"
    yield Constraint(field, "maxItems", most, scorer(sources=many), too_many)
    nameless = scorer(sources=[{"params": {"query": "up"}}])
    message = "spec.sources[0].name: Required value"
    yield Constraint(f"{field}[]", "required name", good, nameless, message)
    for keyword, name, message in (
        ("minLength", "", "spec.sources[0].name in body should be at least 1 chars long"),
        ("maxLength", "x" * 64, "spec.sources[0].name: Too long: may not be more than 63 bytes"),
        ("pattern", "a b", "spec.sources[0].name in body should match"),
        ("pattern", "-gpu", "spec.sources[0].name in body should match"),
    ):
        longest = scorer(sources=[{**gpu, "name": "x" * 63}])
        bad = scorer(sources=[{**gpu, "name": name}])
        yield Constraint(f"{field}[].name", keyword, longest, bad, message)
    wrong = scorer(sources=[{**gpu, "type": "None"}])
    message = "spec.sources[0].type in body should match"
    yield Constraint(f"{field}[].type", "pattern", good, wrong, message)
    both = scorer(sources=[gpu], source={"params": {"query": "up"}})
    yield Constraint("spec", "rule 5", good, both, "give source or sources, not both")
    queryless = "configSyncMode None needs params.query in each of spec.sources"
    for bad in ({"name": "power"}, {"name": "power", "params": {"step": 5}}):
        refused = scorer(**NONE, sources=[gpu, bad])
        yield Constraint("spec", "rule 6", scorer(**NONE, sources=[gpu]), refused, queryless)
        yield Constraint("spec", "rule 6", scorer(sources=[gpu, bad]), refused, queryless)


def _params() -> Iterator[Constraint]:
    field = "spec.scoring.params"
    further = {f"p{number}": number for number in range(MOST_PARAMS + 1)}
    own = {"name": "s", "interval": 5}
    good = _spec(field, {**own, "model": "linear", "horizon": 3600, "alpha": 0.5, "log": True})
    bad = _spec(field, {**own, **further})
    message = f"{field}: Too many: {MOST_PARAMS + 3}: must have at most {MOST_PARAMS + 2} items"
    yield Constraint(field, "maxProperties", good, bad, message)


def _default_score() -> Iterator[Constraint]:
    field = "spec.scoring.defaultScore"
    whole: Object = {"value": -100, "entries": ["app01;all"]}
    good = _spec(field, whole)
    nothing = _spec(field, {"entries": ["x"]})
    yield Constraint(field, "required value", good, nothing, f"{field}.value: Required value")
    for keyword, value, told in (
        ("minimum", -101, "greater than or equal to -100"),
        ("maximum", 101, "less than or equal to 100"),
    ):
        bad = _spec(field, {**whole, "value": value})
        message = f"{field}.value in body should be {told}"
        yield Constraint(f"{field}.value", keyword, good, bad, message)
    for keyword, names, message in (
        ("minLength", [""], f"{field}.entries[0] in body should be at least 1 chars long"),
        ("maxLength", ["x" * 1025], f"{field}.entries[0]: Too long"),
    ):
        bad = _spec(field, {"value": 0, "entries": names})
        yield Constraint(f"{field}.entries[]", keyword, good, bad, message)
    many = [f"e{number}" for number in range(MOST_DEFAULT_ENTRIES + 1)]
    for keyword, names, message in (
        ("maxItems", many, f"{field}.entries: Too many: {MOST_DEFAULT_ENTRIES + 1}"),
        ("x-kubernetes-list-type", ["a", "a"], f'{field}.entries[1]: Duplicate value: "a"'),
    ):
        bad = _spec(field, {"value": 0, "entries": names})
        yield Constraint(f"{field}.entries", keyword, good, bad, message)
    unnamed = "a default score needs names of entries"
    nameless = {"scoring": {"defaultScore": {"value": 0}}}
    for formats in (
        {"scoreDimensionFormat": "${scoreName}"},
        {"scoreDimensionFormat": "all-of-${cluster}"},
        {"scoreDimensionFormats": ["${scoreName}"]},
    ):
        bad = scorer(**nameless, scoreDimensionFormats=["${app}"])
        yield Constraint("spec", "rule 7", scorer(**nameless, **formats), bad, unnamed)


def _further_formats() -> Iterator[Constraint]:
    field = "spec.scoreDimensionFormats"
    good = _spec(field, ["${node}", "${scoreName}"])
    twice = f'{field}[1]: Duplicate value: "${{node}}"'
    same = _spec(field, ["${node}", "${node}"])
    yield Constraint(field, "x-kubernetes-list-type", good, same, twice)
    many = [f"{number}-${{node}}" for number in range(MOST_FORMATS + 1)]
    too_many = f"{field}: Too many: {MOST_FORMATS + 1}"
    yield Constraint(field, "maxItems", _spec(field, many[1:]), _spec(field, many), too_many)
    for keyword, text, message in (
        ("maxLength", "${node}" + "x" * 1018, f"{field}[0]: Too long"),
        ("pattern", "node", f"{field}[0] in body should match"),
    ):
        yield Constraint(f"{field}[]", keyword, good, _spec(field, [text]), message)


def _shape_of_the_article() -> Iterator[Constraint]:
    """Yield what refuses the example of the first article: each message shows the right field."""
    message = "metadata.name is the name of a DynamicScorer: remove spec.name"
    yield Constraint("spec", "rule 8", scorer(), scorer(name="cpu-predictor"), message)
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
    queryless: list[Object] = [
        {},
        {"type": "PROMETHEUS", "params": {}},
        {"params": {"step": 5}},
    ]
    for source in ({"type": "None"}, {"params": {"query": "up"}}, None):
        for bad in queryless:
            yield Constraint(
                "spec", "rule 2", scorer(**NONE, source=source), scorer(**NONE, source=bad), aimless
            )
    other = {**config(), "metadata": {"name": "my-config"}}
    singleton = "a DynamicScoringConfig must be named dynamic-scoring-config"
    yield Constraint("", "rule 1", config(), other, singleton)


def _own_token() -> Iterator[Constraint]:
    token = {"tokenSecretRef": {"name": "n", "key": "k"}}
    for good in (token, {"serviceAccountToken": True}, {**token, "serviceAccountToken": False}):
        bad = {**token, "serviceAccountToken": True}
        message = "serviceAccountToken and tokenSecretRef exclude each other"
        field = "spec.source.auth"
        yield Constraint(field, "rule 1", _spec(field, good), _spec(field, bad), message)


def _score_rules() -> Iterator[Constraint]:
    field = "spec.scoring.normalize"
    ends = {"min": -2.5, "max": 1000}
    for key in ends:
        without = _spec(field, {other: value for other, value in ends.items() if other != key})
        message = f"{field}.{key}: Required value"
        yield Constraint(field, f"required {key}", _spec(field, ends), without, message)
    for least, most in ((5, 5), (1, 0.5)):
        bad = _spec(field, {"min": least, "max": most})
        good = _spec(field, {"min": 0, "max": 0.5})
        yield Constraint(field, "rule 1", good, bad, "min has to be less than max")
    field = "spec.scoring.onFailure"
    incomplete = "policy Hold needs holdSeconds, policy Value needs value"
    for policy, key in (("Hold", "holdSeconds"), ("Value", "value")):
        good, bad = _spec(field, {"policy": policy, key: 1}), _spec(field, {"policy": policy})
        yield Constraint(field, "rule 1", good, bad, incomplete)
    yield from _enum(f"{field}.policy", "Expire")
    yield from _range(f"{field}.holdSeconds", 1, 2_592_000)
    yield from _range(f"{field}.value", -100, 100)


def _forecast() -> Iterator[Constraint]:
    field = "spec.forecast"
    whole: Object = {"horizon": 600, "truth": {"query": "up"}}
    good = _spec(field, whole)
    for key in whole:
        without = _spec(field, {other: value for other, value in whole.items() if other != key})
        yield Constraint(field, f"required {key}", good, without, f"{field}.{key}: Required value")
    for keyword, limit, beyond, word, told in (
        ("horizon", 1, 0, "minimum", "greater than or equal to 1"),
        ("horizon", 86_400, 86_401, "maximum", "less than or equal to 86400"),
        ("quantile", 0.001, 0, "exclusiveMinimum", "greater than 0"),
        ("quantile", 0.999, 1, "exclusiveMaximum", "less than 1"),
        ("quantile", 0.001, -0.1, "minimum", "greater than 0"),
        ("quantile", 0.999, 1.5, "maximum", "less than 1"),
    ):
        message = f"{field}.{keyword} in body should be {told}"
        accepted = _spec(field, {**whole, keyword: limit})
        refused = _spec(field, {**whole, keyword: beyond})
        yield Constraint(f"{field}.{keyword}", word, accepted, refused, message)
    truth = f"{field}.truth"
    unasked = _spec(field, {**whole, "truth": {}})
    yield Constraint(truth, "required query", good, unasked, f"{truth}.query: Required value")
    for keyword, query, message in (
        ("minLength", "", f"{truth}.query in body should be at least 1 chars long"),
        ("maxLength", "x" * 65537, f"{truth}.query: Too long: may not be more than 65536 bytes"),
        ("pattern", " ", f"{truth}.query in body should match"),
    ):
        refused = _spec(field, {**whole, "truth": {"query": query}})
        yield Constraint(f"{truth}.query", keyword, good, refused, message)


def _meaning() -> Iterator[Constraint]:
    yield from _length("spec.unit", 32)
    yield from _length("spec.displayName", 100)
    for field in ("spec.unit", "spec.displayName"):
        for text in ("W", "gCO2eq/kWh", "\N{DEGREE SIGN}C", "\N{KATAKANA LETTER A}", "two words"):
            yield from _patterns(field, text, "", " ", " W", "W\n", "W\x1b[31m", "a\x85b", "a\x7f")
    for direction in ("HigherIsBetter", "LowerIsBetter", "LOWERISBETTER", "higherisbetter"):
        yield from _patterns("spec.direction", direction, "", "Higher", "less is better", "Up")
    longest = "spec.direction: Too long: may not be more than 14 bytes"
    good, bad = (
        _spec("spec.direction", "HigherIsBetter"),
        _spec("spec.direction", "HigherIsBetter1"),
    )
    yield Constraint("spec.direction", "maxLength", good, bad, longest)
    for field, around in (("spec.range", _spec), ("status.meaning.range", _meaning_range)):
        for ends in ({"min": 0}, {"max": -0.5}, {"min": -2.5, "max": 1000}):
            good = around(field, ends)
            yield Constraint(field, "rule 1", good, around(field, {}), "a range needs min or max")
            for least, most in ((5, 5), (1, 0.5)):
                bad = around(field, {"min": least, "max": most})
                yield Constraint(field, "rule 2", good, bad, "min has to be less than max")
    field = "status.meaning.direction"
    for direction in ("HigherIsBetter", "LowerIsBetter"):
        good = with_status({"meaning": {"direction": direction}})
        bad = with_status({"meaning": {"direction": "Elsewhere"}})
        yield Constraint(field, "enum", good, bad, f'{field}: Unsupported value: "Elsewhere"')


def _meaning_range(_: str, ends: Object) -> Object:
    return with_status({"meaning": {"range": ends}})


def _context() -> Iterator[Constraint]:
    for key, length, bad in (
        ("labels", 317, "-region"),
        ("claims", 253, "Region"),
        ("namespaces", 63, "a.b"),
    ):
        field = f"spec.context.{key}"
        good, longest = _spec(field, ["region"]), _spec(field, ["x" * length])
        item = f"{field}[0]"
        too_many = f"{field}: Too many: 33: must have at most 32 items"
        yield Constraint(
            field,
            "maxItems",
            _spec(field, [f"x{number}" for number in range(32)]),
            _spec(field, [f"x{number}" for number in range(33)]),
            too_many,
        )
        message = f"{item}: Too long: may not be more than {length} bytes"
        too_long = _spec(field, ["x" * (length + 1)])
        yield Constraint(f"{field}[]", "maxLength", longest, too_long, message)
        message = f"{item} in body should match"
        yield Constraint(f"{field}[]", "pattern", good, _spec(field, [bad]), message)
    field = "spec.context.workloads.fields"
    good = _spec(field, ["image", "requests", "limits", "replicas", "nodeSelector"])
    for secret in ("env", "envFrom", "args", "annotations", "volumes", "secrets"):
        message = f'{field}[0]: Unsupported value: "{secret}"'
        yield Constraint(f"{field}[]", "enum", good, _spec(field, [secret]), message)
    too_many = f"{field}: Too many: 7: must have at most 6 items"
    many = _spec(field, ["image"] * 7)
    yield Constraint(field, "maxItems", _spec(field, ["runtimeClassName"] * 6), many, too_many)


def _overrides() -> Iterator[Constraint]:
    field = "spec.sourceOverrides"
    host = {"sourceHost": "http://thanos:9090"}
    one, some = {"clusterName": "c1"}, {"clusterSelector": {"matchLabels": {"a": "b"}}}
    good = config(sourceOverrides=[{**one, **host, "scoreName": "s"}, {**some, **host}])
    for bad in (host, {**one, **some, **host}):
        message = "name either clusterName or clusterSelector"
        yield Constraint(f"{field}[]", "rule 1", good, config(sourceOverrides=[bad]), message)
    missing = f"{field}[0].sourceHost: Required value"
    hostless = config(sourceOverrides=[one])
    yield Constraint(f"{field}[]", "required sourceHost", good, hostless, missing)
    for wrong in ("thanos:9090", "http://h/base", "http://u@h", ""):
        bad = config(sourceOverrides=[{**one, "sourceHost": wrong}])
        message = f"{field}[0].sourceHost in body should match"
        yield Constraint(f"{field}[].sourceHost", "pattern", good, bad, message)
    most = config(sourceOverrides=[{**one, **host}] * SOURCE_OVERRIDES)
    many = config(sourceOverrides=[{**one, **host}] * (SOURCE_OVERRIDES + 1))
    too_many = f"{field}: Too many: {SOURCE_OVERRIDES + 1}"
    yield Constraint(field, "maxItems", most, many, too_many)


def _selectors() -> Iterator[Constraint]:
    expression = {"key": "region", "operator": "In", "values": ["eu"]}
    for field in ("spec.clusterSelector", "spec.sourceOverrides[].clusterSelector"):
        good = _selecting(field, {"matchLabels": {"a": "b"}, "matchExpressions": [expression]})
        wrong = _selecting(field, {"matchLabels": {"a": ["b"]}})
        yield Constraint(f"{field}.matchLabels", "additionalProperties", good, wrong, "matchLabels")
        where = f"{field}.matchExpressions[]"
        for key in ("key", "operator"):
            without = {other: value for other, value in expression.items() if other != key}
            bad = _selecting(field, {"matchExpressions": [without]})
            yield Constraint(where, f"required {key}", good, bad, f"{key}: Required value")
        bad = _selecting(field, {"matchExpressions": [{**expression, "operator": "Near"}]})
        yield Constraint(f"{where}.operator", "enum", good, bad, 'Unsupported value: "Near"')


def _selecting(field: str, selector: Object) -> Object:
    if field == "spec.clusterSelector":
        return config(clusterSelector=selector)
    override = {"clusterSelector": selector, "sourceHost": "http://thanos:9090"}
    return config(sourceOverrides=[override])


def _reports() -> Iterator[Constraint]:
    counts = {"desired": 3, "distributed": 2, "scoring": 1, "failing": 1}
    failing = {"name": "c1", "reason": "BadQuery", "message": "parse error"}
    good = with_status({"clusters": counts, "failingClusters": [failing]})
    for key in counts:
        bad = with_status({"clusters": {k: v for k, v in counts.items() if k != key}})
        required = f"status.clusters.{key}: Required value"
        yield Constraint("status.clusters", f"required {key}", good, bad, required)
    for key in failing:
        bad = with_status({"failingClusters": [{k: v for k, v in failing.items() if k != key}]})
        required = f"status.failingClusters[0].{key}: Required value"
        yield Constraint("status.failingClusters[]", f"required {key}", good, bad, required)
    many = with_status({"failingClusters": [failing] * (FAILING_CLUSTERS + 1)})
    too_many = f"status.failingClusters: Too many: {FAILING_CLUSTERS + 1}"
    yield Constraint("status.failingClusters", "maxItems", good, many, too_many)


def _constraints() -> Iterator[Constraint]:
    bare = {key: value for key, value in scorer().items() if key != "spec"}
    yield Constraint("", "required spec", scorer(), bare, "spec: Required value")
    for number, key in enumerate(("description", "configURL"), start=3):
        bad = scorer(**{key: None})
        yield Constraint("spec", f"rule {number}", scorer(), bad, f"{key} is required")
    yield from _length("spec.description", 4096)
    yield from _length("spec.configURL", 2048, before="http://h/")
    yield from _patterns(
        "spec.configURL",
        "https://h:1/a?b=c",
        "",
        "ftp://h/config",
        "http://",
        "h/config",
        "http:// h",
    )
    for mode in ("Full", "full", "FULL"):
        yield from _patterns("spec.configSyncMode", mode, "", "Some", "on")
    yield Constraint(
        "spec.configSyncMode",
        "maxLength",
        scorer(configSyncMode="fUlL"),
        scorer(configSyncMode="Always"),
        "spec.configSyncMode: Too long: may not be more than 4 bytes",
    )
    yield from _enum("spec.location", "Internal", "External")
    for kind in ("None", "none"):
        yield from _patterns("spec.source.type", kind, "", "Graphite")
    yield from _endpoint("spec.scoring")
    yield from _source()
    yield from map(_among_several, _source())
    yield from _several_sources()
    yield from _params()
    yield from _default_score()
    yield from _further_formats()
    yield from _shape_of_the_article()
    yield from _length("spec.scoring.params.name", 253)
    yield from _patterns(
        "spec.scoring.params.name", "sample_my.score-1", "", "-", "a b", "a/b", "é"
    )
    yield from _range("spec.scoring.params.interval", 1, 604_800)
    yield from _score_rules()
    yield from _forecast()
    yield from _meaning()
    yield from _context()
    yield from _enum("spec.scoreDestination", "AddOnPlacementScore", "None")
    yield from _length("spec.scoreDimensionFormat", 1024, before="${app}")
    yield from _patterns(
        "spec.scoreDimensionFormat", "a-${scoreName}", "", "app", "${zone}", "$app"
    )
    health = 'status.healthStatus: Unsupported value: "Fine"'
    for value in ("Active", "Inactive", "Unknown"):
        good, bad = with_status({"healthStatus": value}), with_status({"healthStatus": "Fine"})
        yield Constraint("status.healthStatus", "enum", good, bad, health)
    yield from _conditions()
    yield from _masks("spec.masks")
    yield from _masks("spec.mask")
    yield from _rules()


def _plans() -> Iterator[Constraint]:
    bare = {key: value for key, value in plan().items() if key != "spec"}
    yield Constraint("", "required spec", plan(), bare, "spec: Required value")
    for key in ("digest", "requestDigest", "objectsDigest", "objective", "recordDigest"):
        bad = plan(**{key: None})
        yield Constraint("spec", f"required {key}", plan(), bad, f"spec.{key}: Required value")
    for key in ("optimization", "revision"):
        bad = {**plan(), "spec": {k: v for k, v in plan()["spec"].items() if k != key}}
        yield Constraint("spec", f"required {key}", plan(), bad, f"spec.{key}: Required value")
    long = "spec.optimization: Too long"
    yield Constraint("spec.optimization", "maxLength", plan("x" * 63), plan("x" * 64), long)
    below = "spec.revision in body should be greater than or equal to 1"
    yield Constraint("spec.revision", "minimum", plan(), plan(revision=0), below)
    version = {"cluster": "worker01", "name": "performance", "resourceVersion": "7"}
    scores = {"count": 1, "digest": "d", "versions": [version]}
    for field, key, whole, part in (
        ("spec.scores", "count", scores, {"digest": "d"}),
        ("spec.scores", "digest", scores, {"count": 1}),
        *(
            (
                "spec.scores.versions[]",
                key,
                scores,
                {**scores, "versions": [_without(version, key)]},
            )
            for key in version
        ),
    ):
        bad = plan(scores=part)
        yield Constraint(
            field, f"required {key}", plan(scores=whole), bad, f"{key}: Required value"
        )
    back = {"fromRevision": 2, "toRevision": 1}
    for key in back:
        bad = plan(rollback=_without(back, key))
        required = f"spec.rollback.{key}: Required value"
        yield Constraint("spec.rollback", f"required {key}", plan(rollback=back), bad, required)
    wrong = with_status({"phase": "Done"}, plan("stored"))
    for phase in ("Applying", "Applied", "Failed", "Superseded", "RolledBack"):
        good = with_status({"phase": phase}, plan("stored"))
        yield Constraint("status.phase", "enum", good, wrong, 'Unsupported value: "Done"')
    yield from _rollouts()


def _rollouts() -> Iterator[Constraint]:
    def rolling(**fields: Any) -> Object:
        return with_status({"rollout": fields}, plan("stored"))

    for phase in ("Progressing", "Complete", "TurnedBack", "Cancelled"):
        message = 'Unsupported value: "Done"'
        field = "status.rollout.phase"
        yield Constraint(field, "enum", rolling(phase=phase), rolling(phase="Done"), message)
    for field in ("source", "target", "steps"):
        where = f"status.rollout.{field}"
        below = f"rollout.{field} in body should be greater than or equal to 0"
        yield Constraint(where, "minimum", rolling(**{field: 0}), rolling(**{field: -1}), below)
    wait = {"reason": "NonCompliant", "message": "m"}
    for key in wait:
        yield Constraint(
            "status.rollout.waitingFor[]",
            f"required {key}",
            rolling(waitingFor=[wait]),
            rolling(waitingFor=[_without(wait, key)]),
            f"{key}: Required value",
        )


def _without(obj: Object, key: str) -> Object:
    return {other: value for other, value in obj.items() if other != key}


CONSTRAINTS = (*_constraints(), *_overrides(), *_selectors(), *_reports(), *_plans())
ACCEPTED = tuple({str(case.good): (case.name, case.good) for case in CONSTRAINTS}.values())
REFUSED = tuple((case.name, case.bad, case.message) for case in CONSTRAINTS)


def declared() -> set[str]:
    """Return every constraint of the CRDs, named as `Constraint` names it."""
    return {name for crd in crds() for name in _declared(schema_of(crd), "")}


def schema_of(crd: Mapping[str, Any]) -> Object:
    """Return the schema of a CRD's only version."""
    schema: Object = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _declared(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    where = path or "object"
    for keyword, value in schema.items():
        match keyword:
            case "required":
                yield from (f"{where} required {name}" for name in value)
            case "x-kubernetes-validations":
                yield from (f"{where} rule {number + 1}" for number in range(len(value)))
            case "x-kubernetes-list-type" if value == "atomic":
                continue
            case "x-kubernetes-list-map-keys" | "x-kubernetes-preserve-unknown-fields":
                continue
            case _ if keyword not in _SILENT:
                yield f"{where} {keyword}"
    for name, inner in schema.get("properties", {}).items():
        yield from _declared(inner, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from _declared(schema["items"], f"{path}[]")
