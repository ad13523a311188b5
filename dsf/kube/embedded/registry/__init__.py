"""The built-in resources that the embedded hub serves, and its errors.
Pure.
May import `dsf.kube.resources` and `dsf.kube.schema`.
"""
