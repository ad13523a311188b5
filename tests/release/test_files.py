"""What a release publishes, made here, and the wheel as somebody who installs it has it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest
import uv
import yaml

from dsf.cli.root import COMMANDS
from tests.real_hub.build import BuildError, locate
from tests.repository import ROOT

# Builds and installs a wheel, and runs the whole loop.
pytestmark = pytest.mark.exhaustive

UV = uv.find_uv_bin()
CHARTS = [path.parent.name for path in sorted((ROOT / "charts").glob("*/Chart.yaml"))]


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    try:
        helm = locate().program("helm")
    except BuildError as error:
        pytest.skip(str(error))
    with TemporaryDirectory() as folder:
        out = Path(folder) / "dist"
        programs = {"UV": UV, "HELM": str(helm)}
        subprocess.run(
            [ROOT / ".ci" / "release", out],
            env={**os.environ, **programs},
            check=True,
            capture_output=True,
        )
        yield out


def test_each_command_has_a_man_page_and_each_shell_a_completion(made: Path) -> None:
    pages = {path.stem for path in (made / "man").iterdir()}
    assert {"dsf", *(f"dsf-{name}" for name in COMMANDS)} <= pages
    assert {path.suffix for path in (made / "completion").iterdir()} == {".bash", ".zsh", ".fish"}


def test_manifests_protect_scores_as_the_chart_does_on_a_hub(made: Path) -> None:
    text = (made / "manifests" / "dynamic-scoring-framework.yaml").read_text()
    kinds = {item["kind"] for item in yaml.safe_load_all(text) if item}
    assert {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} <= kinds


def test_manifests_are_objects_and_name_the_image_of_the_version(made: Path) -> None:
    for chart in CHARTS:
        text = (made / "manifests" / f"{chart}.yaml").read_text()
        objects = [item for item in yaml.safe_load_all(text) if item]
        assert all(item["apiVersion"] and item["metadata"]["name"] for item in objects)
        image = "sample-scorer:" if chart == "sample-scorers" else f"framework:{version()}"
        assert image in text
        packed = yaml.safe_load((ROOT / "charts" / chart / "Chart.yaml").read_text())["version"]
        assert (made / "charts" / f"{chart}-{packed}.tgz").is_file()


def test_each_published_file_has_its_checksum(made: Path, tmp_path: Path) -> None:
    """Those who download a release have its files in one folder."""
    published = [
        path
        for path in made.rglob("*")
        if path.is_file() and path.parent.name not in {"man", "completion"}
    ]
    for path in published:
        shutil.copy(path, tmp_path)
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    checked = {line.removesuffix(": OK") for line in ended.stdout.splitlines()}
    assert checked == {path.name for path in published} - {"SHA256SUMS"}


def test_the_wheel_has_the_built_page_without_its_sources(made: Path) -> None:
    [wheel] = made.glob("*.whl")
    with ZipFile(wheel) as archive:
        page = [name for name in archive.namelist() if name.startswith("optimizer/page/")]
    assert page == ["optimizer/page/dist/index.html"]


def test_the_installed_wheel_runs_the_demo_from_an_empty_folder(made: Path, tmp_path: Path) -> None:
    [wheel] = made.glob("*.whl")
    environment, empty, locked = (tmp_path / name for name in ("venv", "empty", "locked.txt"))
    empty.mkdir()
    export = ("export", "--locked", "--all-extras", "--no-emit-project", "--no-hashes")
    run(UV, *export, "--project", str(ROOT), "--output-file", str(locked))
    run(UV, "venv", "--python", sys.executable, str(environment))
    install = ("pip", "install", "--python", str(environment), "--constraint", str(locked))
    run(UV, *install, f"{wheel}[demo]")
    told = run(str(environment / "bin" / "dsf"), "demo", "--json", "--port", "0", cwd=empty)
    result = json.loads(told)
    assert {name: result[name]["objective_value"] for name in ("performance", "power")} == {
        "performance": 115,
        "power": 170,
    }
    assert list(empty.iterdir()) == []


def run(*words: str, cwd: Path | None = None) -> str:
    """Run a program without this project's environment, and return what it prints."""
    kept = ("PATH", "HOME", "SSL_CERT_FILE", "UV_SYSTEM_CERTS", "UV_CACHE_DIR", "UV_INDEX_URL")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    done = subprocess.run(words, cwd=cwd, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def version() -> str:
    return subprocess.run(
        [sys.executable, "-m", "dsf", "--version"], check=True, capture_output=True, text=True
    ).stdout.strip()
