"""What the nodes of the managed cluster have and what Pods request, published on the hub.

Pure, except `watch` (the managed cluster's API server) and `inventory_publisher` (the hub's): what
one object says, the sums that one changed Pod changes, groups of equal nodes, and the status.
May import `dsf.agent.publish.write_permission`, `dsf.api`, `dsf.kube` and `dsf.runtime`.
"""
