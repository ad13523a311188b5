"""Pure: which managed clusters get which summaries and Secrets, and which writes that takes.

No I/O, clock or randomness: functions return changes; the root of dsf.hub applies them.
Imports dsf.hub.snapshot, dsf.kube and dsf.api; independent of dsf.hub.assess.
"""
