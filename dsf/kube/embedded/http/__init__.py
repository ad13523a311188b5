"""The embedded hub over HTTP, for kubectl and every other Kubernetes client.
Shell: it listens on a socket.
May import everything in `dsf.kube.embedded`.
"""
