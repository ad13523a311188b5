"""A simulated Open Cluster Management for the embedded hub, and the demo.

`controllers` is pure; `simulation` and `demo` do I/O.
Imports every other part of dsf; only `optimizer.twin` imports it, and the command line by name.
"""
