"""A simulated Open Cluster Management for the embedded hub, and the demo."""
