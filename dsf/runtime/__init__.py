"""What long-running commands share: endpoints, events, leader election, logs, metrics, back-off.
Shell, except `backoff`, `lease`, `lru_cache` and `problem_details`.
May import `dsf.kube` and `dsf.api`.
"""
