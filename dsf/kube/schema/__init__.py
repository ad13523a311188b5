"""Structural schemas: pruning, defaulting, validation (OpenAPI and CEL), object metadata.
Pure: a value and a schema give a value or a list of field errors.
May import the modules of `dsf.kube`, and neither its adapters nor `resources`.
"""
