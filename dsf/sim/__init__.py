"""A simulated Open Cluster Management for the embedded hub, a replayed Prometheus, and the demo.

`controllers` is pure; `simulation`, `prometheus_replay` and `demo` do I/O.
Imports every other part of dsf; nothing imports this package, except the command line by name.
"""
