import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.scoring.series_selector import Matcher, SeriesSelector, label_name, metric_name, parse
from dsf.api.untrusted_text import InvalidInput


def only(text: str) -> tuple[Matcher, ...]:
    found = parse(text)
    assert isinstance(found, tuple)
    (selector,) = found
    return selector.matchers


def test_names_are_written_as_either_side_does() -> None:
    expected = (
        Matcher("__name__", "=", "http_server_duration"),
        Matcher("service_name", "=", "shop"),
        Matcher("k8s_node_name", "!=", ""),
        Matcher("http_route", "=~", "/api/.*"),
        Matcher("http_status", "!~", "5.."),
    )
    matchers = '="shop", k8s.node.name!="", http.route=~"/api/.*",http_status!~`5..`,'
    for name, key in (
        ("http.server.duration{", "service.name"),
        ("http_server_duration {", "service_name"),
        ('{"http.server.duration", ', '"service.name"'),
        ('{__name__="http.server.duration", ', "'service.name'"),
    ):
        assert only(f"{name}{key}{matchers}}}") == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [("up", 1), ("up;down", 2), (' up ; {__name__=~"a;b"} ;', 2), ('a{b="};"};c', 2), ("a{}", 1)],
)
def test_several_selectors(text: str, count: int) -> None:
    assert len(only_many(text)) == count


def only_many(text: str) -> tuple[SeriesSelector, ...]:
    found = parse(text)
    assert isinstance(found, tuple)
    return found


def test_escapes_in_quotes() -> None:
    assert only(r'a{b="\"\\\n"}')[1].value == '"\\\n'
    assert only(r"a{b=`\n`}")[1].value == "\\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ; ",
        "{}",
        '{a="b"}',
        "a{",
        "a}",
        "a{b}",
        'a{b=="c"}',
        'a{b="c}',
        "a{b=c}",
        'a b{c="d"}',
        "rate(a[5m])",
        'a{b="c" d="e"}',
        "a!",
        'a{,="b"}',
    ],
)
def test_what_is_no_selector_is_named_with_its_place(text: str) -> None:
    found = parse(text)
    assert isinstance(found, InvalidInput)
    assert found.reason == "InvalidSelector"
    assert 'name{attribute="value"}' in found.message


@given(st.text())
def test_any_text_gives_a_value(text: str) -> None:
    parse(text)


@given(st.text(min_size=1))
def test_names_come_out_as_prometheus_allows(name: str) -> None:
    assert metric_name(name).replace(":", "_").isidentifier()
    assert label_name(name).isidentifier()
    assert metric_name(metric_name(name)) == metric_name(name)
