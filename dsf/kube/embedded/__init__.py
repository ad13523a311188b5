"""A hub in memory that behaves as a Kubernetes API server does."""

from dsf.kube.embedded.files import FileProblem
from dsf.kube.embedded.folder import load, save
from dsf.kube.embedded.hub import EmbeddedHub
from dsf.kube.embedded.ocm import ocm_crds

__all__ = ["EmbeddedHub", "FileProblem", "load", "ocm_crds", "save"]
