"""Devices of dynamic resource allocation, and what claims for them get (P).

May import the standard library, CEL, and `dsf.api`.
"""
