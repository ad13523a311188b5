"""What long-running commands share: endpoints, events, logs, metrics, signals, back-off.
Shell, except `backoff` and `lru_cache`.
May import `dsf.kube` and `dsf.api`.
"""
