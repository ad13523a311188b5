"""Pure: what the controller keeps of each observed object, and how it reads the object.

Without I/O, clock or randomness: objects go in, dataclasses come out; bad input is InvalidInput.
Imports dsf.kube and dsf.api; everything else in dsf.hub builds on it.
"""
