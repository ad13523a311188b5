"""`dsf demo --fleet N`: a fleet of any size, whose load changes while people look at it.

`generated_fleet` and `fleet_load` are pure: what the fleet is, and what its Prometheus servers say.
Imports `dsf.sim.demo` and what that imports.
"""
