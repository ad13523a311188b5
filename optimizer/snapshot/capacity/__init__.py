"""What nodes have and Pods request: NodeInventories, Pod templates and claims of devices (P).

May import optimizer.domain, optimizer.wire, and what reads objects in optimizer.snapshot.
"""
