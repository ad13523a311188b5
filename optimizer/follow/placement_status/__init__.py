"""What OCM has made of the generated objects: landings, drift, and both as text.

Pure: compares the objects of one observation; reads no hub and no clock. May import `record`
and every layer below it, and `dsf`.
"""
