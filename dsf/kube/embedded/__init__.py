"""A hub in memory that behaves as a Kubernetes API server does, with OCM's resources.
Layers: `http`, `kubectl` over `hub`, `api_server`, `storage`, `registry`.
May import the modules of `dsf.kube`. Only `EmbeddedHub` and `http` read a clock.
"""

from dsf.kube.embedded.hub import EmbeddedHub
from dsf.kube.embedded.hub_folder import load
from dsf.kube.embedded.registry.access_table import AccessTable, IssuedToken
from dsf.kube.files.yaml_documents import YamlFileError
from dsf.kube.resources.ocm import ocm_crds

__all__ = ["AccessTable", "EmbeddedHub", "IssuedToken", "YamlFileError", "load", "ocm_crds"]
