"""Receives OTLP metrics over HTTP, and counts them.

Shell: an HTTP server. Needs the extra `otlp` (protobuf messages and RE2).
May import `dsf.agent.fetch.bounded_body` and `dsf.runtime`; what is kept is decided in `memory`.
"""
