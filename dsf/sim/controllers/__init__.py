"""The simulated controllers of OCM, its policy framework, and the GPU operator's MIG manager.

Pure: each module decides what one controller changes, given the objects that it reads.
Imports `dsf.api` and `dsf.kube` only. `dsf.sim.simulation` reads and applies for all of them.
"""
