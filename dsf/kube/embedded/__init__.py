"""A hub in memory that behaves as a Kubernetes API server does, with OCM's resources.
Layers: `http` over `hub`, `api_server`, `stored_objects`, and what they store and answer.
`builtin_resources`, `reviews` and `status_errors` are pure. May import the modules of `dsf.kube`.
"""

from dsf.kube.embedded.hub import EmbeddedHub

__all__ = ["EmbeddedHub"]
