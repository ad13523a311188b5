"""CustomResourceDefinitions of the Open Cluster Management kinds that the product uses.

The definitions in this folder are our own: they have OCM's constraints for the fields that we use
and preserve all other fields. Source: https://github.com/open-cluster-management-io/api
"""

from functools import cache
from importlib import resources

import yaml

from dsf.kube.embedded.schema.json_values import copied
from dsf.kube.port import Object


def ocm_crds() -> list[Object]:
    """Return the CustomResourceDefinitions of OCM's kinds."""
    return [copied(crd) for crd in shared_ocm_crds()]


@cache
def shared_ocm_crds() -> tuple[Object, ...]:
    """Return the same, once for all callers, who must not change them."""
    files = sorted(
        (file for file in resources.files(__package__).iterdir() if file.name.endswith(".yaml")),
        key=lambda file: file.name,
    )
    return tuple(yaml.safe_load(file.read_text(encoding="utf-8")) for file in files)
