"""Pure: which config of a scorer is in use, what its summary is, and whether its API is healthy.

No I/O, clock or randomness: the caller passes probe results and what earlier statuses recorded.
Imports dsf.hub.snapshot, dsf.kube and dsf.api; independent of dsf.hub.distribute.
"""
