"""Stored objects with revisions, lists and watches, and the garbage collector.
Shell: it keeps the objects in memory and wakes watches; it reads no clock and no file.
May import `registry` and `schema`.
"""
