"""The adapter for a real API server, from a kubeconfig or a pod's service account.
Shell: reads files, runs credential plugins, opens connections.
May import the modules of `dsf.kube`; the only place that imports `kubernetes`.
"""
