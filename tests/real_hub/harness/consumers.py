"""Readers of Placements: the namespaces and CRDs of Kueue and Argo CD, not their controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .api import parse

if TYPE_CHECKING:
    from .api import Object
    from .hub import Hub

DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
NAMESPACES = {"kueue": "kueue-system", "argocd": "argocd"}


def install_consumers(hub: Hub) -> list[Object]:
    """Create the namespaces and the CRDs of their releases; return the CRDs."""
    for namespace in NAMESPACES.values():
        hub.namespace(namespace)
    folder = hub.assets.manifests
    files = [*(folder / "kueue").rglob("*.yaml"), *(folder / "argo-cd").rglob("*.yaml")]
    crds = [crd for path in files for crd in parse(path.read_text())]
    for crd in crds:
        hub.apply(crd)
    for crd in crds:
        hub.api.wait_condition(*DEFINITION, crd["metadata"]["name"], "Established")
    return crds
