"""Reading kubeconfigs, and the messages about invalid ones."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.client.kubeconfig import BadKubeconfig, ClientConfig, ExecPlugin, in_cluster, parse
from tests.dsf.kube.client.kubeconfigs import kubeconfig

FILE = Path("/home/me/.kube/config")
SERVER = "https://api:6443"


def read(document: Any, context: str | None = None) -> ClientConfig:
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    return parse([(FILE, text)], context)


def test_the_current_context_names_cluster_and_user() -> None:
    document = kubeconfig(
        SERVER + "/",
        user={"token": "t", "client-certificate": "me.crt", "client-key-data": "a2V5"},
        cluster={
            "certificate-authority-data": "Y2E=",
            "tls-server-name": "kubernetes",
            "proxy-url": "http://proxy:3128",
        },
    )
    assert read(document) == ClientConfig(
        server=SERVER,
        authority=b"ca",
        server_name="kubernetes",
        proxy="http://proxy:3128",
        certificate=FILE.parent / "me.crt",
        key=b"key",
        token=b"t",
    )


def test_paths_are_relative_to_their_file_or_absolute() -> None:
    document = kubeconfig(
        SERVER, user={"tokenFile": "/run/token"}, cluster={"certificate-authority": "pki/ca.crt"}
    )
    assert read(document).files == (FILE.parent / "pki/ca.crt", Path("/run/token"))


def test_a_context_without_a_user_is_anonymous() -> None:
    assert read(kubeconfig(SERVER)) == ClientConfig(server=SERVER)


def test_certificates_may_go_unverified_only_by_the_boolean() -> None:
    key = "insecure-skip-tls-verify"
    assert read(kubeconfig(SERVER, cluster={key: True})).verify is False
    assert read(kubeconfig(SERVER, cluster={key: "true"})).verify is True


def test_of_several_files_the_first_to_say_something_counts() -> None:
    first = kubeconfig("https://first:1")
    second = kubeconfig("https://second:2")
    second["current-context"] = "other"
    second["contexts"].append({"name": "other", "context": {"cluster": "d"}})
    second["clusters"].append({"name": "d", "cluster": {"server": "https://d:3"}})
    files = [(FILE, yaml.safe_dump(first)), (Path("/b/config"), yaml.safe_dump(second))]
    assert parse(files).server == "https://first:1"
    assert parse(files, "other").server == "https://d:3"


def test_an_exec_plugin_is_read_with_its_environment() -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "./bin/login",
        "args": ["--cluster", "c"],
        "env": [{"name": "A", "value": "1"}],
        "installHint": "install it",
    }
    assert read(kubeconfig(SERVER, user={"exec": plugin})).exec_plugin == ExecPlugin(
        command=str(FILE.parent / "bin/login"),
        args=("--cluster", "c"),
        env=(("A", "1"),),
        api_version="client.authentication.k8s.io/v1beta1",
        install_hint="install it",
    )


def without(key: str) -> dict[str, Any]:
    document = kubeconfig(SERVER)
    del document[key]
    return document


BAD: list[tuple[Any, str | None, str]] = [
    ("", None, "no current-context is set"),
    ("a: [", None, f"{FILE}, line 1: it is not YAML"),
    ("- a", None, "it is not a kubeconfig but a list"),
    (without("current-context"), None, "choose one with --context: here"),
    (kubeconfig(SERVER), "there", 'no context is named "there"; the contexts are: here'),
    (without("clusters"), None, 'no cluster is named "c"; the clusters are: none'),
    ({**kubeconfig(SERVER), "clusters": {"a": 1}}, None, "clusters must be a list"),
    ({**kubeconfig(SERVER, user={"token": "t"}), "users": []}, None, 'no user is named "u"'),
    (kubeconfig(""), None, 'cluster "c": it names no server'),
    (kubeconfig("api:6443"), None, "server must be a URL"),
    (kubeconfig("https://me:secret@api"), None, "server must be a URL"),
    (kubeconfig("https://api:port"), None, "server must be a URL"),
    (kubeconfig(SERVER, cluster={"certificate-authority-data": "%"}), None, "data is not base64"),
    (kubeconfig(SERVER, user={"token": 12}), None, 'user "u": token must be text'),
    (kubeconfig(SERVER, user={"auth-provider": {"name": "oidc"}}), None, "use an exec plugin"),
    (kubeconfig(SERVER, user={"exec": {}}), None, "exec names no command"),
    (
        kubeconfig(SERVER, user={"exec": {"command": "x", "interactiveMode": "Always"}}),
        None,
        "interactiveMode Always",
    ),
    (kubeconfig(SERVER, user={"exec": {"command": "x", "env": ["A"]}}), None, "name and value"),
    (kubeconfig(SERVER, user={"exec": {"command": "x", "args": 1}}), None, "args must be a list"),
]


@pytest.mark.parametrize(("document", "context", "message"), BAD)
def test_a_bad_kubeconfig_is_explained_in_one_line(
    document: Any, context: str | None, message: str
) -> None:
    with pytest.raises(BadKubeconfig) as raised:
        read(document, context)
    assert message in str(raised.value)
    assert str(FILE) in str(raised.value)
    assert "\n" not in str(raised.value)


CANARY = "canary-7f3a"
words = st.sampled_from(
    [
        "users",
        "user",
        "args",
        "env",
        "token",
        "exec",
        "command",
        "clusters",
        "cluster",
        "server",
        "u",
    ]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | words | st.just(CANARY),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def told(document: Any) -> str:
    """Return the text that is shown for a valid or an invalid kubeconfig."""
    try:
        return repr(read(document))
    except BadKubeconfig as error:
        return str(error)


@given(document=anything, user=anything, cluster=anything)
def test_no_kubeconfig_breaks_the_reader_or_is_quoted(
    document: Any, user: Any, cluster: Any
) -> None:
    whole = kubeconfig(SERVER, user={"token": "t"})
    whole["users"][0]["user"] = user
    whole["clusters"][0]["cluster"] = cluster
    whole["extensions"] = document
    for candidate in (whole, document, yaml.safe_dump(whole)[:-20], {**whole, "users": user}):
        assert CANARY not in told(candidate)


def test_a_pod_reaches_the_api_server_of_its_environment() -> None:
    directory = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert in_cluster(environ) == ClientConfig(
        server="https://[fd00::1]:443", authority=directory / "ca.crt", token=directory / "token"
    )
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) is None
