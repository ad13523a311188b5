"""Objects as YAML: no credential, and not more than an answer may have."""

import yaml

from mcp_server.results.object_yaml import objects_yaml


def test_no_credential_is_shown() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "hunter2"}}
    obj = {
        "kind": "ManifestWorkReplicaSet",
        "metadata": {
            "name": "w",
            "managedFields": [{"manager": "hunter2"}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "hunter2",
                "note": "kind: Secret\ndata: hunter2",
            },
        },
        "spec": {"manifests": [secret, {"kind": "List", "items": [{**secret, "data": "hunter2"}]}]},
        "env": {"password": "hunter2", "header": "Bearer hunter2hunter2"},
    }
    text = objects_yaml([obj, {**obj, "spec": "x" * 9_000}])
    assert "hunter2" not in text
    assert yaml.safe_load(text)["spec"]["manifests"][0]["metadata"] == {"name": "s"}
    assert text.endswith("# Left out, name one: ManifestWorkReplicaSet w\n")
    assert len(objects_yaml([{**obj, "spec": "x" * 9_000}])) < 5_000
