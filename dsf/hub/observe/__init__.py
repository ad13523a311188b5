"""Shell: watches the hub's objects and probes scoring APIs, at addresses that it checked.

May use the network, the clock and threads. Only `destinations`, the rules for addresses, is pure.
Imports dsf.hub.assess (when to believe a probe), dsf.hub.snapshot, and the layers below dsf.hub.
"""
