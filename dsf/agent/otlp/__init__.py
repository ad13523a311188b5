"""Receives OTLP metrics over HTTP, and counts them.

Pure, except `receiver`, an HTTP server. Needs the extra `otlp` (protobuf messages and RE2).
May import `dsf.agent.wire`, `dsf.agent.scorer_selection`, `dsf.api` and, in `receiver`,
`dsf.agent.fetch.bounded_body` and `dsf.runtime`.
"""
