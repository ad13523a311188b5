"""Shell: watches the hub's objects and probes scoring APIs.

May use the network, the clock and threads.
Imports dsf.hub.assess (when to believe a probe), dsf.hub.snapshot, and the layers below dsf.hub.
"""
