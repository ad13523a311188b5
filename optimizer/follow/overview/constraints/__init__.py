"""Constraints that are said in few words: their fields, and what annotations state of them.

Pure. May import the rest of `overview`, and what that may.
"""
