"""A hub in memory that behaves as a Kubernetes API server does."""

from dsf.kube.embedded.hub import EmbeddedHub

__all__ = ["EmbeddedHub"]
