"""The resources of kinds that OCM or the product defines, without an API server."""

from functools import cache

from dsf.api.crd.definitions import crds
from dsf.api.names import GROUP
from dsf.kube.kinds import Kind
from dsf.kube.resources.custom_resource_definitions import prepared, resources
from dsf.kube.resources.ocm import shared_ocm_crd
from dsf.kube.resources.resource_catalog import Resource


@cache
def known_resource(kind: Kind) -> Resource:
    """Return the resource of one of OCM's kinds, or of the product's own."""
    if kind.group == GROUP:
        (crd,) = (crd for crd in crds() if crd["spec"]["names"]["plural"] == kind.plural)
    else:
        crd = shared_ocm_crd(f"{kind.plural}.yaml")
    (found,) = (item for item in resources(prepared(crd)) if item.kind.version == kind.version)
    return found
