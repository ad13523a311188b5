"""A hub in memory that behaves as a Kubernetes API server does."""

from dsf.kube.embedded.hub import EmbeddedHub
from dsf.kube.embedded.ocm import ocm_crds

__all__ = ["EmbeddedHub", "ocm_crds"]
