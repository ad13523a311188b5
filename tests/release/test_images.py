"""`make images`, `push` and `kind-load`, with programs that stand for docker, podman and kind.

They write down what they are called with, and do nothing: no image was built by these tests.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from dsf import __version__
from tests.charts.entrypoints import SAMPLES
from tests.repository import ROOT

STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$*" in
  "get clusters") printf 'hub01\\nworker01\\n' ;;
  "image inspect"*) echo 151000000 ;;
  "push"*) exit ${PUSH_ENDS_WITH:-0} ;;
  "save"*) exit ${SAVE_ENDS_WITH:-0} ;;
esac
"""
CHARTS = sorted(path.parent for path in (ROOT / "charts").glob("*/Chart.yaml"))
OURS = ("dynamic-scoring-framework", *SAMPLES)


MAKE = shutil.which("make") or "make"


class Checkout:
    """What the command needs of a checkout, with stand-ins on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("Makefile", ".ci/images", "dsf/__init__.py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        self.programs = folder / "programs"
        self.programs.mkdir()
        self._calls = folder / "calls"

    def install(self, *names: str) -> None:
        for name in names:
            (self.programs / name).write_text(STAND_IN)
            (self.programs / name).chmod(0o755)

    def make(self, *words: str, **environment: str) -> tuple[int, str]:
        """Run make; return its exit code and what it said."""
        path = f"{self.programs}:/usr/bin:/bin"
        ended = subprocess.run(
            [MAKE, *words],
            cwd=self.folder,
            env={"PATH": path, "CALLS": str(self._calls), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    def calls(self) -> list[list[str]]:
        return [line.split() for line in self._calls.read_text().splitlines()]

    def values(self, chart: str) -> dict:
        return yaml.safe_load((self.folder / ".build" / "values" / f"{chart}.yaml").read_text())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_both_engines_build_each_image_from_files_that_exist(
    checkout: Checkout, engine: str
) -> None:
    checkout.install(engine)
    code, said = checkout.make("images")
    assert code == 0, said
    built = [call for call in checkout.calls() if call[1] == "build"]
    assert {call[0] for call in built} == {engine}
    for call, name in zip(built, OURS, strict=True):
        _, _, _, image, _, file, folder = call
        assert image.endswith(f"/{name}:{__version__}")
        assert (ROOT / file).is_file()
        assert (ROOT / folder).is_dir()
    assert f"sample-scorer:{__version__}, 151 MB" in said


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_the_values_are_those_of_the_chart_and_name_the_registry(
    checkout: Checkout, chart: Path
) -> None:
    checkout.install("docker")
    code, said = checkout.make("images", "REGISTRY=registry.test:5000/team", "TAG=t1")
    assert code == 0, said
    values = checkout.values(chart.name)
    schema = json.loads((chart / "values.schema.json").read_text())
    assert not [error.message for error in Draft7Validator(schema).iter_errors(values)]
    images = {image["name"]: image["tag"] for image in _images(values)}
    built = {call[3] for call in checkout.calls() if call[1] == "build"}
    assert images
    assert {f"{name}:{tag}" for name, tag in images.items()} <= built
    assert all(name.startswith("registry.test:5000/team/") for name in images)
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    assert len(_images(values)) == sum(bool(image) for image in _images(defaults))


def _images(values: object) -> list[dict]:
    if not isinstance(values, dict):
        return []
    found = [values["image"]] if isinstance(values.get("image"), dict) else []
    return found + [image for name in values if name != "image" for image in _images(values[name])]


def test_the_charts_name_what_is_built_by_default(checkout: Checkout) -> None:
    checkout.install("docker")
    assert checkout.make("images")[0] == 0
    built = {call[3] for call in checkout.calls() if call[1] == "build"}
    for chart in CHARTS:
        version = yaml.safe_load((chart / "Chart.yaml").read_text())["appVersion"]
        for image in _images(yaml.safe_load((chart / "values.yaml").read_text())):
            assert not image or f"{image['name']}:{image['tag'] or version}" in built


def test_images_are_pushed_after_they_were_built(checkout: Checkout) -> None:
    checkout.install("podman")
    code, said = checkout.make("push", "REGISTRY=registry.test/team", "IMAGES=sample-scorer")
    assert code == 0, said
    assert [call[1] for call in checkout.calls() if call[1] in ("build", "push")] == [
        "build",
        "push",
    ]
    assert f"push registry.test/team/sample-scorer:{__version__}".split() in [
        call[1:] for call in checkout.calls()
    ]


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_kind_clusters_get_archives_so_that_no_engine_is_special(
    checkout: Checkout, engine: str
) -> None:
    checkout.install(engine, "kind")
    words = ("kind-load", "IMAGES=sample-scorer static-scorer", "CLUSTERS=hub01 worker01")
    code, said = checkout.make(*words)
    assert code == 0, said
    calls = checkout.calls()
    assert sum(call[:2] == [engine, "save"] for call in calls) == 2
    loaded = [(call[3].startswith("/"), call[-1]) for call in calls if call[:2] == ["kind", "load"]]
    assert loaded == [(True, "hub01"), (True, "worker01")] * 2


@pytest.mark.parametrize(
    ("installed", "words", "environment", "message"),
    [
        ("", "images", {}, "neither docker nor podman answers"),
        ("docker", "images ENGINE=podman", {}, "podman does not answer; start it"),
        ("docker", "images ENGINE=buildah", {}, "'buildah' is unknown; write docker or podman"),
        ("docker", "push", {}, "REGISTRY: not set; write where to push"),
        ("docker", "push REGISTRY=https://r", {}, "'https://r' is no address of a registry"),
        ("docker", "push REGISTRY=REGISTRY", {}, "'REGISTRY' is no address of a registry"),
        ("docker", "push REGISTRY=<registry>", {}, "'<registry>' is no address of a registry"),
        ("docker", "push REGISTRY=registry.example.com/t", {}, "stands for yours in the documents"),
        ("docker", "push REGISTRY=r/t", {"PUSH_ENDS_WITH": "1"}, "log in first: docker login r"),
        ("docker", "images TAG=a:b", {}, "TAG: 'a:b' is no tag of an image"),
        ("docker", "images IMAGES=scorer", {}, "there is no image scorer; write some of"),
        ("docker", "kind-load", {}, "no kind on PATH"),
        ("docker kind", "kind-load", {}, "no kind cluster worker02 of docker; there are: hub01"),
        ("docker kind", "kind-load CLUSTERS=hub01", {"SAVE_ENDS_WITH": "1"}, "make images"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_a_remedy(
    checkout: Checkout, installed: str, words: str, environment: dict[str, str], message: str
) -> None:
    checkout.install(*installed.split())
    # What the machine has by that name is none of ours.
    for name in {"docker", "podman"} - {*installed.split()}:
        (checkout.programs / name).write_text("#!/bin/sh\nexit 1\n")
        (checkout.programs / name).chmod(0o755)
    code, said = checkout.make(*words.split(), **environment)
    assert code != 0
    [line] = [line for line in said.splitlines() if line.startswith("images: ")]
    assert message in line
