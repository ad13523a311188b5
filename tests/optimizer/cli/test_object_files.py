"""Files that are refused before they cost anything, and fields that planning does not read."""

import json
import os
import re
import shutil
import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from optimizer.cli.planning import plan

SCENARIO = Path(str(resources.files("dsf.sim") / "scenario"))
FOLDERS = [f"-f{SCENARIO / part}" for part in ("manifests", "clusters", "scores")]
REQUEST = f"--request={SCENARIO / 'params.json'}"

HANGS_SECONDS = 60
SECONDS, PEAK_MIB = 1.0, 200.0

MEASURE = """
import os, re, sys, time
from pathlib import Path
from dsf.kube.yaml_documents import YamlFileError, documents
for line in sys.stdin:
    if os.fork():
        os.wait()
        continue
    refused, before = "", time.process_time()
    try:
        list(documents(Path(line.rstrip())))
    except YamlFileError as error:
        refused = str(error)
    seconds = time.process_time() - before
    peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
    print(seconds, int(peak[1]) / 1024, repr(refused), flush=True)
    os._exit(0)
"""
"""Prints, of each file named, seconds of CPU, the peak in MiB, and the refusal.

Every file is read by a process of its own, which is a fork: to import what reads it costs a second.
Not by getrusage: its peak includes the parent's.
"""


def _bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def _merges(levels: int) -> str:
    lines = ["a0: &a0 {k0: x, l0: x}"]
    lines += [
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], k{n}: x}}" for n in range(1, levels)
    ]
    return "\n".join(lines)


def _text(*repeated: tuple[str, int]) -> Callable[[Path], None]:
    """Return what writes texts, each so many times; they are not kept in memory."""

    def write(path: Path) -> None:
        path.write_text("".join(text * times for text, times in repeated))

    return write


def _link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


HOSTILE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "a bomb of aliases": ("a.yaml", _text((_bomb(9), 1))),
    "a bomb of merges": ("a.yaml", _text((_merges(9), 1))),
    "an alias of itself": ("a.yaml", _text(("a: &a [*a]", 1))),
    "a pipe": ("a.yaml", os.mkfifo),
    "a device without end": ("a.yaml", _link("/dev/zero")),
    "a device": ("a.yaml", _link("/dev/null")),
    "a terminal": ("a.yaml", _link("/dev/ptmx")),
    "a scalar of 60 MB": ("a.yaml", _text(("a: ", 1), ("x", 60_000_000))),
    "a scalar of 60 MB in JSON": ("a.json", _text(('"', 1), ("x", 60_000_000), ('"', 1))),
    "a sparse file of 1 TiB": ("a.json", _sparse),
    "deep flow lists": ("a.yaml", _text(("[", 1_000_000))),
    "deep block lists": ("a.yaml", _text(("- ", 1_000_000))),
    "deep mappings": ("a.yaml", _text(("{a: ", 1_000_000))),
    "deep keys": ("a.yaml", _text(("? ", 1_000_000))),
    "deep JSON": ("a.json", _text(("[", 1_000_000))),
    "balanced JSON": ("a.json", _text(("[", 900), ("]", 900))),
}


@pytest.mark.exhaustive
def test_a_hostile_file_is_refused_within_a_second_and_200_mib(tmp_path: Path) -> None:
    paths = []
    for number, (file, make) in enumerate(HOSTILE.values()):
        (tmp_path / str(number)).mkdir()
        paths.append(tmp_path / str(number) / file)
        make(paths[-1])
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        input="".join(f"{path}\n" for path in paths),
        capture_output=True,
        text=True,
        timeout=HANGS_SECONDS,
        check=True,
    )
    assert done.stderr == ""
    for name, path, line in zip(HOSTILE, paths, done.stdout.splitlines(), strict=True):
        cpu_seconds, peak_mib, refused = line.split(maxsplit=2)
        assert literal_eval(refused).startswith(str(path)), name
        assert (float(cpu_seconds) < SECONDS, float(peak_mib) < PEAK_MIB) == (True, True), line


def test_the_command_names_the_hostile_file_in_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    result = CliRunner().invoke(plan, [*FOLDERS, REQUEST, f"-f{tmp_path / 'pipe.yaml'}"])
    assert result.exit_code == 1
    assert re.fullmatch(r"Error: .*pipe\.yaml: it is not a regular file; .*\n", result.stderr)


LINE = "a\x1b[31m\u202eb\nOK"


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "ManagedCluster", "apiVersion": "cluster.open-cluster-management.io/v1"},
        {"kind": LINE, "apiVersion": "v1"},
        {"kind": "ManagedCluster", "apiVersion": "cluster.open-cluster-management.io/v1", LINE: 1},
    ],
    ids=["name", "kind", "field"],
)
def test_what_a_file_says_forges_no_line(obj: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    name = "worker09" if LINE in obj else LINE
    file.write_text(json.dumps({**obj, "metadata": {"name": name}}))
    result = CliRunner().invoke(plan, [*FOLDERS, REQUEST, f"-f{file}"])
    (line,) = [line for line in result.stderr.splitlines() if str(file) in line]
    assert "OK" not in result.stderr.splitlines()
    assert "\x1b" not in line
    assert "\u202e" not in line


def test_anchors_of_a_usual_size_are_read(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    shutil.copytree(SCENARIO / "manifests", manifests)
    (manifests / "z.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: &l {a: b}},"
        " data: {<<: *l, c: d}}"
    )
    result = CliRunner().invoke(plan, [f"-f{manifests}", *FOLDERS[1:], REQUEST])
    assert result.exit_code == 0


def _with(tmp_path: Path, kind: str, old: str, new: str) -> list[str]:
    """Return the scenario's arguments with a text replaced in the objects of a kind."""
    manifests = tmp_path / "manifests"
    shutil.copytree(SCENARIO / "manifests", manifests)
    changed = False
    for path in manifests.rglob("*.yaml"):
        parts = path.read_text().split("---\n")
        said = [
            part.replace(old, new, 1) if re.search(rf"^kind: {kind}$", part, re.MULTILINE) else part
            for part in parts
        ]
        changed |= said != parts
        path.write_text("---\n".join(said))
    assert changed
    return [f"-f{manifests}", *FOLDERS[1:], REQUEST]


@pytest.mark.parametrize(
    ("kind", "old", "new", "field"),
    [
        ("Policy", "\nspec:", "\nspec:\n  dependsOnAll: [a]", "spec.dependsOnAll"),
        (
            "ManifestWorkReplicaSet",
            "  manifestWorkTemplate:",
            "  manifestWorkTemplate:\n    unknown: 1",
            "spec.manifestWorkTemplate.unknown",
        ),
        ("ManifestWorkReplicaSet", "\nspec:", "\nspec:\n  cascade: true", "spec.cascade"),
        ("ManifestWorkReplicaSet", "\nspec:", "\nextra: {a: 1}\nspec:", "extra"),
    ],
)
def test_an_unknown_field_that_planning_does_not_read_is_a_warning(
    tmp_path: Path, kind: str, old: str, new: str, field: str
) -> None:
    result = CliRunner().invoke(plan, _with(tmp_path, kind, old, new))
    assert result.exit_code == 0, result.output
    assert "objective 115" in result.stdout
    assert re.search(
        rf'^Ignored: .*: {kind} .*unknown field "{field}", in parts that planning '
        r"does not read$",
        result.stderr,
        re.MULTILINE,
    )


@pytest.mark.parametrize(
    ("kind", "old", "new", "field"),
    [
        ("ManifestWorkReplicaSet", "placementRefs:", "placementRef:", "spec.placementRef"),
        ("ManifestWorkReplicaSet", "\nspec:", "\nspecs:", "specs"),
        ("ManifestWorkReplicaSet", "  labels:", "  label:", "metadata.label"),
        ("Policy", "  labels:", "  lables:", "metadata.lables"),
    ],
)
def test_an_unknown_field_that_may_be_one_that_planning_reads_is_an_error(
    tmp_path: Path, kind: str, old: str, new: str, field: str
) -> None:
    result = CliRunner().invoke(plan, _with(tmp_path, kind, old, new))
    assert result.exit_code == 1
    assert kind in result.stderr
    assert field in result.stderr.splitlines()[-1]


SETS = "cluster.open-cluster-management.io/v1beta2"
BINDING = "{{apiVersion: {0}, kind: ManagedClusterSetBinding, metadata: {{name: {1}, namespace: {2}}}, spec: {{clusterSet: {1}}}}}"  # noqa: E501
SET = "{{apiVersion: {0}, kind: ManagedClusterSet, metadata: {{name: {1}}}, spec: {{clusterSelector: {{selectorType: ExclusiveClusterSetLabel}}}}}}"  # noqa: E501


def _planned(tmp_path: Path, *documents: str) -> tuple[int, str, str]:
    (tmp_path / "sets.yaml").write_text("\n---\n".join(documents))
    result = CliRunner().invoke(plan, [*FOLDERS, REQUEST, f"-f{tmp_path / 'sets.yaml'}", "-ojson"])
    return result.exit_code, result.stdout, result.stderr


def _binding(name: str, namespace: str = "default") -> str:
    return BINDING.format(SETS, name, namespace)


@pytest.mark.parametrize("name", ["default", "global"])
def test_a_namespace_that_is_bound_to_a_set_of_every_hub_is_planned_for(
    tmp_path: Path, name: str
) -> None:
    code, out, err = _planned(tmp_path, _binding(name))
    assert (code, json.loads(out)["objective_value"], err) == (0, 115, "")


def test_a_placement_chooses_from_bound_sets_only(tmp_path: Path) -> None:
    code, out, err = _planned(tmp_path, _binding("gpu"), SET.format(SETS, "gpu"))
    assert (code, err) == (1, "")
    assert {item["reason"] for item in json.loads(out)["gaps"]} == {"ClusterSetNotBound"}
    code, out, _ = _planned(tmp_path, _binding("default", "elsewhere"))
    assert (code, json.loads(out)["placements"]) == (1, [])


def test_a_binding_to_a_set_that_the_files_lack_is_told(tmp_path: Path) -> None:
    code, _, err = _planned(tmp_path, _binding("gpu"), _binding("default"))
    assert code == 0
    assert err == (
        "Ignored: ManagedClusterSetBinding gpu: the files have no ManagedClusterSet gpu\n"
    )


def test_without_a_binding_cluster_sets_do_not_count(tmp_path: Path) -> None:
    code, out, err = _planned(tmp_path, SET.format(SETS, "gpu"))
    assert (code, json.loads(out)["objective_value"]) == (0, 115)
    assert "ManagedClusterSet gpu: no ManagedClusterSetBinding in the files makes" in err


def test_a_wrong_binding_is_named(tmp_path: Path) -> None:
    wrong = _binding("gpu").replace("clusterSet: gpu", "clusterSet: ''")
    code, _, err = _planned(tmp_path, wrong)
    assert (code, err.count("\n")) == (1, 1)
    assert "sets.yaml: ManagedClusterSetBinding gpu" in err
    assert "spec.clusterSet" in err


def test_items_of_a_list_of_one_kind_need_not_repeat_it(tmp_path: Path) -> None:
    text = (SCENARIO / "clusters" / "worker01.yaml").read_text()
    cluster = yaml.safe_load(text)
    whole = {key: cluster.pop(key) for key in ("apiVersion", "kind")}
    whole |= {"kind": f"{whole['kind']}List", "items": [cluster]}
    (tmp_path / "clusters.json").write_text(json.dumps(whole))
    rest = [FOLDERS[0], f"-f{SCENARIO / 'clusters' / 'worker02.yaml'}", FOLDERS[2]]
    result = CliRunner().invoke(plan, [*rest, REQUEST, f"-f{tmp_path / 'clusters.json'}"])
    assert (result.exit_code, result.stdout.splitlines()[0][:22]) == (0, "Optimal: objective 115")


def test_inventories_count_as_on_a_hub(tmp_path: Path) -> None:
    """Without a node that has GPUs worker01 supplies none; the file is renewed after 3 minutes."""
    status: dict[str, Any] = {
        "observedTime": "2026-01-01T00:00:00Z",
        "validUntil": "2100-01-01T00:00:00Z",
    }
    amounts = {"allocatable": {"cpu": "8"}, "requested": {}}
    status["nodes"] = [{"count": 1, "ready": True, **amounts}]
    code, out, err = _planned(tmp_path, _inventory(status))
    assert (code, err) == (0, "")
    assert {item["cluster"] for item in json.loads(out)["placements"]} == {"worker02"}
    assert "SupplyContradicted" in {item["reason"] for item in json.loads(out)["gaps"]}
    status["nodes"][0]["redy"] = True
    code, _, err = _planned(tmp_path, _inventory(status))
    assert (code, err.count("\n")) == (1, 1)
    assert "NodeInventory worker01: unknown field" in err
    assert "redy" in err


def _inventory(status: dict[str, Any]) -> str:
    metadata = {"name": "worker01", "namespace": "worker01"}
    kind = {"apiVersion": "dynamic-scoring.open-cluster-management.io/v1alpha1"}
    return json.dumps({**kind, "kind": "NodeInventory", "metadata": metadata, "status": status})


def test_neither_an_api_server_nor_a_solver_is_imported_for_files() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from optimizer.cli.planning import plan;"
        f"found = CliRunner().invoke(plan, {[*FOLDERS, REQUEST]!r}); print(found.exit_code,"
        " [name for name in ('dsf.kube.embedded', 'optimizer.service.optimizer', 'cel',"
        " 'jsonschema', 'pulp', 'highspy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 []\n"
