"""Whether Pods find nodes: what nodes have under each policy, and what Pods ask of them.

Pure. Imports optimizer.model.parameters and optimizer.domain.
"""
