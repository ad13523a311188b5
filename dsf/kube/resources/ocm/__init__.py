"""CustomResourceDefinitions of the Open Cluster Management kinds that the product uses.

The definitions in this folder are our own: they have OCM's constraints for the fields that we use
and preserve all other fields. Source: https://github.com/open-cluster-management-io/api
"""

from functools import cache
from importlib import resources

import yaml

from dsf.kube.port import Object


def ocm_crds() -> tuple[Object, ...]:
    """Return the CustomResourceDefinitions of OCM's kinds, once for all callers.

    They are not to be changed.
    """
    files = (file.name for file in resources.files(__package__).iterdir())
    return tuple(ocm_crd(name) for name in sorted(files) if name.endswith(".yaml"))


@cache
def ocm_crd(file: str) -> Object:
    """Return the CustomResourceDefinition of a file of this folder, which is not to be changed."""
    text = (resources.files(__package__) / file).read_text(encoding="utf-8")
    found: list[Object] = list(yaml.load_all(text, yaml.CSafeLoader))
    return found[0]
