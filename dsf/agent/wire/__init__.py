"""Documents that cross the wire: queries, answers, request bodies, and what Secrets contain.

Pure: bytes and mappings in, values out.
May import `dsf.agent.failure`, `dsf.api` and `dsf.kube.redaction`.
"""
