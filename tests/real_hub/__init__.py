"""Tests that run against a real hub: kube-apiserver, etcd and OCM's own controllers."""
