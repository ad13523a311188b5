"""The history of scores: what agents published over the last hours, read from a Prometheus.

Shell: `prometheus_history` asks the server; `score_history` is pure. May import `optimizer.wire`,
`optimizer.domain`, and of `dsf.agent` the client that reads Prometheus within limits.
"""
