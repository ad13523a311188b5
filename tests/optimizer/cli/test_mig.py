"""`dsf mig`, as an operator calls it."""

import json
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

import dsf.sim
from dsf.cli.root import root
from tests.optimizer.domain.mig.test_layouts import of
from tests.optimizer.domain.mig.test_policy_spec import check_parted_file

SCENARIO = Path(dsf.sim.__path__[0]) / "scenario"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["mig", *arguments])


def test_models_says_what_is_known_and_what_is_inferred() -> None:
    lines = run("models").output.splitlines()
    assert lines[0].split()[0] == "MODEL"
    inferred = {line.split()[0] for line in lines if " inferred " in line}
    assert inferred == {"H100-96GB", "H200-141GB", "B200-180GB"}
    assert len(lines) == 1 + 8


def test_layouts_counts_them() -> None:
    output = run("layouts", "NVIDIA-H100-80GB-HBM3").output
    assert output.endswith("28 shown; 723 legal layouts in all, positions counted\n")
    rows = [line.split() for line in output.splitlines()]
    assert ["1x", "3g.40gb", "+", "1x", "4g.40gb", "7", "8", "4g.40gb@0", "3g.40gb@4"] in rows


def test_what_is_held_stays() -> None:
    output = run("layouts", "H100-80GB", "--held", "1g.10gb@0").output
    rows = output.splitlines()[1:-1]
    assert rows
    assert all("1g.10gb@0" in row for row in rows)
    assert "4g.40gb" not in output


def test_explain_names_the_best_layout_and_what_it_is_worth() -> None:
    wanted = ["--want", "3g.48gb=1x3:60", "--want", "2g.24gb=2:15", "--want", "all=1:80"]
    output = run("explain", "H100-96GB", "--count", "2", *wanted).output
    assert "1      MIG off" in output
    assert "1      2x 3g.48gb" in output
    assert "worth 200 of 275 asked for" in output
    assert "No layout is worth more than 200." in output


def test_explain_writes_what_mig_parted_reads() -> None:
    output = run("explain", "A30", "--want", "2g.12gb=1x2", "-o", "mig-parted").output
    assert set(check_parted_file(output, of("A30"))) == {"all-disabled", "dsf-2x2g.12gb"}
    assert yaml.safe_load(output)["version"] == "v1"


def test_what_is_wrong_is_one_line() -> None:
    for arguments, why in [
        (["layouts", "L4"], "no MIG geometry is known for GPU 'L4'"),
        (["layouts", "A30", "--held", "1g.6gb"], "is not of the form 1g.10gb@0"),
        (["layouts", "A30", "--held", "2g.12gb@1"], "2g.12gb can't start at 1, only at 0, 2"),
        (["explain", "A30", "--want", "3g.1gb=1"], "A30-24GB has no profile '3g.1gb'"),
        (["explain", "A30", "--want", "1g.6gb=none"], "is not of the form 3g.40gb=2"),
        (["explain", "A30", "--want", "1g.6gb=5"], "no layout of 1 A30-24GB serves any of this"),
    ]:
        result = run(*arguments)
        assert result.exit_code in {1, 2}
        assert why in result.output
        assert "Traceback" not in result.output


def test_plan_generates_policies_from_files_with_the_guide_s_labels(tmp_path: Path) -> None:
    request = json.loads((SCENARIO / "params.json").read_text())
    for cluster in request["clusters"]:
        del cluster["availablePolicies"]
        cluster["gpus"] = [{"model": "H100-96GB", "node": f"{cluster['name']}-control-plane"}]
    (tmp_path / "request.json").write_text(json.dumps(request))
    folders = ["manifests", "clusters", "scores"]
    files = [part for name in folders for part in ("-f", str(SCENARIO / name))]
    arguments = [*files, "--request", str(tmp_path / "request.json"), "--mig-labels", "guide"]
    where = ["--mig-config-map", "gpus/layouts", "-o", "manifests"]
    result = CliRunner().invoke(root, ["plan", *arguments, *where])
    assert result.exit_code == 0, result.output
    made = [item for item in yaml.safe_load_all(result.stdout) if item["kind"] == "Policy"]
    assert len(made) == 2
    file, wanted, _ = (
        template["objectDefinition"]["spec"]["object-templates"][0]["objectDefinition"]
        for template in made[0]["spec"]["policy-templates"]
    )
    assert file["metadata"] == {"name": "layouts", "namespace": "gpus"}
    assert wanted["metadata"]["labels"] == {"migsettinglabel": "dsf-2x3g.48gb"}


def test_a_config_map_has_a_namespace() -> None:
    result = CliRunner().invoke(root, ["plan", "-f", ".", "--mig-config-map", "layouts"])
    assert result.exit_code == 2
    assert "'layouts' is not of the form namespace/name" in result.output
