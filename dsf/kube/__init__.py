"""The one port to Kubernetes (`port.Kube`), its errors and kinds, and changes as data.
`changes`, `json_merge_patch`, `selectors` and `redaction` are pure; `apply` and
`reads` call an API server.
May import `dsf.api`. The adapters (`client`, `embedded`) stand above these modules.
"""
