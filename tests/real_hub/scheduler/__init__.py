"""Random nodes and Pods, and what the optimizer and kube-scheduler say of them."""
