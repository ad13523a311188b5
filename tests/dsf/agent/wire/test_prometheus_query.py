import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.wire.prometheus_query import GET_LIMIT, build_query, on_server, split_queries

ENDPOINT = "http://prometheus:9090/api/v1/query_range"


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("up", ("up",)),
        ("up;down", ("up", "down")),
        (" up ; \n down ;", ("up", "down")),
        ("", ()),
        (" ; ;", ()),
        ('a{x="1;2"};b', ('a{x="1;2"}', "b")),
        ("a{x='1;2'};b", ("a{x='1;2'}", "b")),
        ("a{x=`1;\\`};b", ("a{x=`1;\\`}", "b")),
        (r'a{x="\";"};b', (r'a{x="\";"}', "b")),
        ('f(a, "x", ";");b', ('f(a, "x", ";")', "b")),
        ("a{x=~b;c};d", ("a{x=~b;c}", "d")),
        ("a # don't; split\n;b", ("a # don't; split", "b")),
        ("a};b", ("a}", "b")),
    ],
)  # fmt: skip
def test_split(text: str, queries: tuple[str, ...]) -> None:
    assert split_queries(text) == queries


@given(st.text(alphabet="ab;{}\"'`\\#\n "))
def test_splitting_loses_nothing_but_separators_and_space(text: str) -> None:
    def bare(texts: str) -> str:
        return "".join(texts.split()).replace(";", "")

    assert bare("".join(split_queries(text))) == bare(text)


@given(
    st.lists(
        st.text(alphabet="abc(){}[]=,", min_size=1).map(lambda q: q.replace("{", "")), min_size=1
    )
)
def test_plain_queries_come_back(queries: list[str]) -> None:
    plain = [query for query in queries if query]
    assert split_queries(";".join(plain)) == tuple(plain)


def test_a_range_asks_for_the_window_until_now() -> None:
    query = build_query(ENDPOINT, "up", range_=3600, step=60, now=10_000.5)
    assert query.url == ENDPOINT
    assert dict(query.parameters) == {
        "query": "up",
        "start": "6400.500",
        "end": "10000.500",
        "step": "60",
    }
    assert query.method == "GET"


def test_range_0_asks_for_the_instant_value() -> None:
    query = build_query(ENDPOINT, "up", range_=0, step=60, now=10_000)
    assert query.url == "http://prometheus:9090/api/v1/query"
    assert dict(query.parameters) == {"query": "up", "time": "10000.000"}


def test_an_instant_endpoint_gets_an_instant_query() -> None:
    query = build_query("http://prometheus:9090/api/v1/query", "up", range_=60, step=1, now=1)
    assert "time" in dict(query.parameters)


def test_an_endpoint_without_a_path_gets_prometheus_own() -> None:
    assert build_query("http://prometheus:9090", "up", range_=60, step=1, now=1).url == ENDPOINT


def test_a_base_path_and_parameters_of_the_endpoint_are_kept() -> None:
    endpoint = "http://thanos:9090/tenant/api/v1/query_range?dedup=true&tenant="
    query = build_query(endpoint, "up", range_=60, step=0, now=100)
    assert query.url == "http://thanos:9090/tenant/api/v1/query_range"
    assert query.parameters[:2] == (("dedup", "true"), ("tenant", ""))
    assert dict(query.parameters)["step"] == "60"


def test_a_long_query_goes_by_post() -> None:
    query = build_query(ENDPOINT, "up + " * GET_LIMIT, range_=60, step=1, now=1)
    assert query.method == "POST"


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(ValueError, match="IPv6"):
        build_query("http://[::1", "up", range_=0, step=1, now=1)


@pytest.mark.parametrize(
    ("endpoint", "server", "expected"),
    [
        ("http://a:9090/api/v1/query_range", "", "http://a:9090/api/v1/query_range"),
        ("http://a:9090/api/v1/query_range", "http://b:1", "http://b:1/api/v1/query_range"),
        ("http://a/api/v1/query_range", "https://b/thanos/", "https://b/thanos/api/v1/query_range"),
        ("http://a/query?dedup=true", "http://b:1", "http://b:1/query?dedup=true"),
        ("", "http://b:1", "http://b:1/api/v1/query_range"),
    ],
)
def test_a_cluster_names_its_own_prometheus(endpoint: str, server: str, expected: str) -> None:
    assert on_server(endpoint, server) == expected
