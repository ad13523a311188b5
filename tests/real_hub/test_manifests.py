"""The renderer of the operators' manifests, and the process of a Pod's container."""

from __future__ import annotations

from pathlib import Path

import pytest

from .harness.manifests import render
from .harness.pods import command_of


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("plain", "plain"),
        ("a {{ .Name }} b", "a N b"),
        ("{{.Name}}", "N"),
        ("{{ if .Labels }}x{{ end }}y", "y"),
        ("{{ if .Labels }}x{{ else }}z{{ end }}y", "zy"),
        ("{{if eq .A 1}}x{{else if .B}}y{{else}}z{{end}}", "z"),
        ("{{ if .A }}{{ range .B }}{{ .C }}{{ end }}{{ else }}{{ .Name }}{{ end }}", "N"),
        ("{{ if .A }}{{ else }}{{ if .B }}x{{ else }}y{{ end }}{{ end }}", "y"),
        ("{{- if .A }}x{{- end }}", ""),
    ],
)
def test_every_condition_is_false(template: str, rendered: str) -> None:
    assert render(template, {"Name": "N"}) == rendered


def test_a_value_that_is_not_given_is_an_error() -> None:
    with pytest.raises(KeyError, match="Other"):
        render("{{ .Other }}", {"Name": "N"})


def test_an_action_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="indent"):
        render("{{ .Name | indent 4 }}", {"Name": "N"})


POD = {
    "containers": [
        {
            "args": ["--kubeconfig=/var/run/hub/kubeconfig", "--namespace=$(NS)", "$(UNKNOWN)"],
            "env": [
                {"name": "NS", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "LEVEL", "value": "debug"},
                {"name": "CONFIG", "value": "/var/run/hub/kubeconfig"},
                {"name": "OTHER", "value": "/var/run/hubble"},
            ],
        }
    ]
}


def test_a_container_becomes_a_process() -> None:
    command = command_of(
        POD, ["program"], namespace="home", pod_name="pod-1", mounts={"/var/run/hub": Path("/here")}
    )
    assert command.argv == [
        "program",
        "--kubeconfig=/here/kubeconfig",
        "--namespace=home",
        "$(UNKNOWN)",
    ]
    assert command.env == {
        "NS": "home",
        "LEVEL": "debug",
        "CONFIG": "/here/kubeconfig",
        "OTHER": "/var/run/hubble",
    }


def test_a_containers_own_command_replaces_the_images() -> None:
    pod = {"containers": [{"command": ["own"], "args": ["x"]}]}
    assert command_of(pod, ["image"], namespace="n", pod_name="p", mounts={}).argv == ["own", "x"]


def test_the_program_and_what_stands_for_a_mount_are_taken_as_they_are() -> None:
    pod = {"containers": [{"args": ["--kubeconfig=/managed/hub/kubeconfig", "--dir=/scratch"]}]}
    mounts = {"/managed/hub": Path("/scratch/h/secrets"), "/scratch": Path("/scratch/h/volume")}
    command = command_of(pod, ["/scratch/python"], namespace="n", pod_name="p", mounts=mounts)
    assert command.argv == [
        "/scratch/python",
        "--kubeconfig=/scratch/h/secrets/kubeconfig",
        "--dir=/scratch/h/volume",
    ]


def test_a_variable_that_cannot_be_told_is_an_error() -> None:
    field = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    pod = {"containers": [{"env": [field]}]}
    with pytest.raises(ValueError, match="IP: cannot tell"):
        command_of(pod, ["x"], namespace="n", pod_name="p", mounts={})
