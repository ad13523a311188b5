"""Which devices of dynamic resource allocation the claims of Pods get (pure).

May import what `optimizer.model` may.
"""
