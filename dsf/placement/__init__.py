"""Which managed clusters OCM's placement controller can select: cluster sets, taints, tolerations.

Pure: everything, the current time included, is an argument. The simulated OCM and the optimizer
decide by the same functions. May import dsf.kube's pure modules and dsf.api.
"""
