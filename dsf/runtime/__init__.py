"""What long-running commands share: endpoints, events, leader election, logs, metrics, back-off.
Shell, except `backoff`, `lease` and `lru_cache`.
May import `dsf.kube` and `dsf.api`.
"""
