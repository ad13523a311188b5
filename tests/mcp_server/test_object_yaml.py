"""Objects as YAML: no credential, and not more than an answer may have."""

import json
from typing import Any

import yaml

from mcp_server.results.object_yaml import objects_yaml

NAMES = ("DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS_JSON")


def test_no_credential_is_shown() -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}
    metadata = {"name": "s", "annotations": applied}
    secret = {"kind": "Secret", "metadata": metadata, "stringData": {"a": "hunter2"}}
    obj = {
        "kind": "ManifestWorkReplicaSet",
        "metadata": {
            "name": "w",
            "managedFields": [{"manager": "hunter2"}],
            "annotations": {
                **applied,
                "note": "kind: Secret\ndata: hunter2",
                "packed": json.dumps(json.dumps({"kind": "Secret", "data": "hunter2"})),
            },
        },
        "spec": {"manifests": [secret, {"kind": "List", "items": [{**secret, "data": "hunter2"}]}]},
        "env": [
            *({"name": name, "value": "hunter2"} for name in NAMES),
            {"header": "Bearer hunter2hunter2"},
        ],
        "password": "hunter2",
    }
    text = objects_yaml([obj, {**obj, "spec": "x" * 9_000}])
    assert "hunter2" not in text
    assert yaml.safe_load(text)["spec"]["manifests"][0]["metadata"]["name"] == "s"
    assert text.endswith("# Left out, name one: ManifestWorkReplicaSet w. Next page: offset 1.\n")
    assert len(objects_yaml([{**obj, "spec": "x" * 9_000}])) < 5_000


def test_pages_show_each_line_of_a_large_object_and_each_object_once() -> None:
    large = {"kind": "Policy", "metadata": {"name": "p"}, "spec": [f"line {n}" for n in range(999)]}
    text = _all_pages([large])
    assert yaml.safe_load(text) == large
    small = [{**large, "metadata": {"name": f"p{n}"}, "spec": ["a"] * 200} for n in range(30)]
    assert [*yaml.safe_load_all(_all_pages(small))] == small
    assert "nothing left to show" in objects_yaml(small, 99)


def test_pages_show_all_of_a_line_that_is_longer_than_one() -> None:
    large, text, offset = {"kind": "P", "spec": "x1y2" * 3_000}, "", 0
    while True:
        shown, left, following = objects_yaml([large], offset).partition("# Left out, ")
        assert len(shown) < 4_500
        text += shown.rstrip("\n")
        if not left:
            break
        offset = int(following.rpartition("offset ")[2].rstrip(".\n"))
    assert text.endswith(f'spec: "{large["spec"]}"')


def _all_pages(objects: list[dict[str, Any]]) -> str:
    between, text, offset = "---\n" if len(objects) > 1 else "", "", 0
    while True:
        page = objects_yaml(objects, offset)
        assert len(page) < 5_000
        shown, left, following = page.partition("# Left out, ")
        text += shown if not text else between + shown
        if not left:
            return text
        offset = int(following.rpartition("offset ")[2].rstrip(".\n"))
