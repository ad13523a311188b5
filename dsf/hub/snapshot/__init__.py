"""Pure: what the controller keeps of each observed object, and how it reads the object.

No I/O, clock or randomness. Objects go in, frozen dataclasses come out; bad input becomes Invalid.
Imports dsf.kube and dsf.api; everything else in dsf.hub builds on it.
"""
