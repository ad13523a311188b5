"""`dsf scorer new`: each scaffold works, its README's commands work, and it passes the check."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
import yaml

from dsf.api import names
from dsf.cli.root import root
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK, NAMESPACE
from dsf.scorer_kit.cli.commands import LANGUAGES, files_of, free_node_port, new
from tests.command_line import invoked
from tests.dsf.scorer_kit.programs import started
from tests.real_hub.build import cache_root

TOOLCHAINS = cache_root(os.environ) / "toolchain"
"""Where `make hub` installs a Go toolchain if there is none on PATH."""


def found(program: str) -> str | None:
    """Return where a program is: on PATH, or in the toolchain of the real hub."""
    built = sorted(map(str, TOOLCHAINS.glob(f"*/go/bin/{program}")))
    return shutil.which(program) or (built[-1] if built else None)


TOO_LARGE = "--series 3300 --samples 120"
"""A body of 9 MB, where a scaffold takes 8 MiB."""

TOKEN = "a-token-of-the-test"
NEEDS = {"python": [], "shell": ["jq", "sh"], "node": ["node"], "go": ["go"]}
LANGS = [
    pytest.param(
        lang,
        marks=[
            pytest.mark.skipif(
                not all(map(found, programs)), reason=f"needs {' and '.join(programs)}"
            ),
            # Each takes seconds of CPU time; Go's first build compiles a part of its library.
            *([pytest.mark.exhaustive] if lang != "python" else []),
        ],
    )
    for lang, programs in NEEDS.items()
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which commands are typed."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(command: str) -> str:
    """Type a `dsf` command; return what it prints."""
    code, out, err = invoked(root, *shlex.split(command)[1:])
    assert code == 0, out + err
    return out


def commands(readme: str) -> list[str]:
    return re.findall(r"```bash\n(.*?)\n```", readme, re.DOTALL)


@pytest.mark.parametrize("lang", LANGS)
def test_a_scaffold_passes_its_tests_and_the_check_at_once(
    folder: Path, lang: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(f"dsf scorer new cpu-mean --lang {lang}")
    own = folder / "cpu-mean"
    if lang == "go":
        monkeypatch.setenv("PATH", str(Path(found("go") or "").parent), prepend=os.pathsep)
    tests, start, check_and_try, _deploy, register = commands((own / "README.md").read_text())
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    subprocess.run(shlex.split(tests), cwd=own, check=True, capture_output=True)
    monkeypatch.chdir(own)
    with started(start, own) as url:
        for words, said in (
            (f"--port {url.rpartition(':')[2]}", "another"),
            ("--port=99999", "99999"),
            ("--port 1 --port 2", "once"),
        ):
            ended = subprocess.run(
                shlex.split(f"{start} {words}"),
                cwd=own,
                capture_output=True,
                text=True,
                check=False,
            )
            first = ended.stderr.splitlines()[0]
            assert (ended.returncode, said in first, "port" in first) == (1, True, True)
        for command in check_and_try.splitlines():
            out = typed(command.replace("http://127.0.0.1:8000", url))
            assert "cpu-mean" in out
        command, target = register.split(" > ")
        anew = yaml.safe_load(typed(command.replace("http://127.0.0.1:8000", url)))
        assert anew == yaml.safe_load((own / target).read_text())
    assert "AddOnPlacementScore cluster1/cpu-mean: 2 of 2 results" in out
    (folder / "token").write_text(TOKEN)
    with started(start, own, SCORING_TOKEN=TOKEN) as url:
        httpx.post(f"{url}/scoring", json={"data": []}, trust_env=False)
        httpx.get(f"{url}/of-a-caller", trust_env=False)
        metrics = httpx.get(f"{url}/metrics", trust_env=False)
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert set(metrics.text.splitlines()) == {
            "# TYPE scorer_requests_total counter",
            'scorer_requests_total{code="401",path="/scoring"} 1',
            'scorer_requests_total{code="404",path="other"} 1',
        }
        report = typed(f"dsf scorer check {url} --token-file {folder / 'token'} {TOO_LARGE}")
    assert "answered 413" in report
    assert report.splitlines()[-1].startswith("16 passed, 1 warning, 0 failed, 1 skipped")


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_the_hub_accepts_the_manifests(lang: str) -> None:
    files = files_of(lang, "cpu-mean", 30_080)
    hub = EmbeddedHub()
    for namespace in (names.HUB_NAMESPACE, "worker01"):
        await hub.create(NAMESPACE, {"metadata": {"name": namespace}})
    text = files["manifests/dynamicscorer.yaml"].replace("${NODE_IP}", "10.0.0.1")
    await hub.create(DYNAMIC_SCORER, yaml.safe_load(text))
    text = files["manifests/manifestwork.yaml"].replace("${CLUSTER_NAME}", "worker01")
    work = await hub.create(MANIFEST_WORK, yaml.safe_load(text))
    deployment, service = work["spec"]["workload"]["manifests"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "localhost/cpu-mean:latest"
    assert service["spec"]["ports"][0]["nodePort"] == 30_080
    assert ":30080/config" in files["manifests/dynamicscorer.yaml"]
    assert "env" not in container
    (work,) = yaml.safe_load_all(text.replace("# TOKEN: ", ""))
    pod = work["spec"]["workload"]["manifests"][0]["spec"]["template"]["spec"]
    (variable,) = pod["containers"][0]["env"]
    assert variable["name"] == "SCORING_TOKEN"
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "cpu-mean-token", "key": "token"}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_file_of_code_names_its_licence(lang: str) -> None:
    for path, text in files_of(lang, "cpu-mean", 30_080).items():
        if not path.endswith((".md", ".json", ".mod")):
            assert "SPDX-License-Identifier: Apache-2.0" in "".join(text.splitlines()[:2]), path


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_image_holds_files_that_exist(lang: str) -> None:
    files = files_of(lang, "cpu-mean", 30_080)
    lines = files["Dockerfile"].splitlines()
    copied = [
        word
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    ]
    assert copied
    assert [word for word in copied if not any(Path(name).match(word) for name in files)] == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_keeps_the_name_of_the_template(lang: str) -> None:
    text = "".join(files_of(lang, "cpu-mean", 30_080).values())
    assert "my-scorer" not in text
    assert "my_scorer" not in text
    assert "<!--" not in text


@pytest.mark.parametrize("name", ["A", "a_b", "a.b", "-a", "a" * 64, "9a", "../a", ""])
def test_a_name_is_that_of_a_service(folder: Path, name: str) -> None:
    code, _, err = invoked(root, "scorer", "new", "--", name)
    assert code == 2
    assert "must" in err
    assert list(folder.iterdir()) == []


def test_an_existing_folder_is_kept_unless_asked(folder: Path) -> None:
    typed("dsf scorer new mine")
    (folder / "mine" / "score.py").write_text("# mine")
    (folder / "mine" / "notes").write_text("mine")
    code, _, err = invoked(root, "scorer", "new", "mine")
    assert (code, err) == (
        1,
        "Error: mine exists and is not an empty folder; --force overwrites its files\n",
    )
    assert (folder / "mine" / "score.py").read_text() == "# mine"
    typed("dsf scorer new mine --force")
    assert (folder / "mine" / "score.py").read_text() != "# mine"
    assert (folder / "mine" / "notes").read_text() == "mine"


def node_port_of(scorer: Path) -> set[str]:
    """The node ports in the manifests and the README of a scaffold."""
    files = [*(scorer / "manifests").iterdir(), scorer / "README.md"]
    return set(re.findall(r"\b3\d{4}\b", "".join(path.read_text() for path in files)))


def test_no_two_scaffolds_beside_each_other_have_one_node_port(folder: Path) -> None:
    first = free_node_port("cpu-mean", ())
    for name, port in (("mine", first), ("cpu-mean", first + 1)):
        typed(f"dsf scorer new {name}" + (f" --node-port {port}" if name == "mine" else ""))
        assert node_port_of(folder / name) == {str(port)}
    typed("dsf scorer new cpu-mean --force")
    assert node_port_of(folder / "cpu-mean") == {str(first + 1)}
    code, _, err = invoked(root, "scorer", "new", "third", "--node-port", str(first))
    assert code == 2
    assert f"mine/manifests/manifestwork.yaml has the node port {first} already" in " ".join(
        err.split()
    )
    assert invoked(root, "scorer", "new", "third", "--node-port", "80")[0] == 2
    assert not (folder / "third").exists()
    everything = range(30_000, 32_768)
    assert free_node_port("any", everything[:-1]) == everything[-1]


def test_a_folder_that_cannot_be_made_is_told_in_one_line(folder: Path) -> None:
    (folder / "file").touch()
    code, _, err = invoked(root, "scorer", "new", "mine", "--output-dir", "file/below")
    assert (code, err.count("\n")) == (1, 1)
    assert "cannot write to" in err


def test_the_command_offers_every_language() -> None:
    (lang,) = (parameter for parameter in new.params if parameter.name == "lang")
    assert list(lang.type.choices) == list(LANGUAGES) == sorted(NEEDS, key=list(LANGUAGES).index)


def test_scripts_can_be_executed(folder: Path) -> None:
    typed("dsf scorer new mine --lang shell")
    assert os.access(folder / "mine" / "score.sh", os.X_OK)
