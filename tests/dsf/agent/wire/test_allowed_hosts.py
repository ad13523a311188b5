import pytest

from dsf.agent.wire.allowed_hosts import host_allowed, parse_hosts

IN_CLUSTER = parse_hosts("*.svc, *.svc.cluster.local")


@pytest.mark.parametrize(
    ("entries", "url", "expected"),
    [
        ("a.example", "https://a.example/api", True),
        ("A.Example, b", "http://a.EXAMPLE.:8080/", True),
        ("a.example", "https://a.example@b.example/", False),
        ("a.example", "https://b.example/a.example", False),
        ("a.example", "https://a.example.b.example/", False),
        ("*.example", "https://a.b.example/", True),
        ("*.example", "https://example/", False),
        ("*.example", "https://.example/", False),
        ("*.example", "https://badexample/", False),
        ("a.example:8443", "https://a.example:8443/", True),
        ("a.example:8443", "https://a.example/", False),
        ("a.example:443", "https://a.example/", True),
        ("10.0.0.7:9090", "http://10.0.0.7:9090/", True),
        ("[fd00::1]:9090", "http://[fd00::1]:9090/", True),
        ("fd00::1", "http://[fd00::1]/", True),
        ("", "https://a.example/", False),
        ("*", "https://a.example/", False),
        ("*.example", "https://evil\\.a.example/", False),
        ("*.example", "https://evil\t.a.example/", False),
        ("a.example", "a.example", False),
        ("a.example", "https://[::1/", False),
        ("a.example", "https://a.example:99999/", False),
    ],
)
def test_hosts(entries: str, url: str, expected: bool) -> None:
    assert host_allowed(parse_hosts(entries), url) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("prometheus-k8s.monitoring.svc", True),
        ("thanos.openshift-monitoring.svc.cluster.local", True),
        ("svc", False),
        ("thanos.svc.example.com", False),
        ("10.96.0.1", False),
    ],
)
def test_hosts_inside_the_cluster(host: str, expected: bool) -> None:
    assert host_allowed(IN_CLUSTER, f"https://{host}:9091/api") is expected
