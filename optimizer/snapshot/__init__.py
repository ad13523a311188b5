"""Reads Kubernetes objects and files into a fleet; what can't be used becomes an issue.

Pure: objects in, values out; nothing is optimized here. Imports wire, domain and dsf.
"""
