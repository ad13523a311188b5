"""Turns policy compliance on a managed cluster into a ClusterClaim."""
