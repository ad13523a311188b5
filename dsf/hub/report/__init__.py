"""Pure: the statuses, conditions and Events that tell people how each scorer is doing.

No I/O, clock or randomness: counts and assessments go in, statuses and Events come out.
Imports dsf.hub.assess, dsf.hub.distribute and dsf.hub.snapshot.
"""
