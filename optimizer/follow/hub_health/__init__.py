"""What is installed on a hub, whether it works, and what to do next: for `dsf doctor` and `status`.

Pure: facts that were read from the hub in, findings and text out. Imports `overview`,
`placement_status`, `snapshot` and `wire` of the optimizer, and `dsf.api` and `dsf.kube`.
"""
