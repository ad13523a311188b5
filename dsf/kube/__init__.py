"""One port to Kubernetes, its adapters and its wrappers."""
