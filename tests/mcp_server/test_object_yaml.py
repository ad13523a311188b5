"""Objects as YAML: no credential, and not more than an answer may have."""

import json

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
    assert text.endswith("# Left out, name one: ManifestWorkReplicaSet w\n")
    assert len(objects_yaml([{**obj, "spec": "x" * 9_000}])) < 5_000
