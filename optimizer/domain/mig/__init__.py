"""MIG: the layouts that a GPU can have, the patterns that serve a demand, policies that apply them.

Pure: geometry is data, and a generated policy is a dictionary.
Imports optimizer.domain and dsf.api, and constants of dsf.kube.
"""
