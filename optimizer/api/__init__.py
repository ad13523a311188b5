"""The optimizer over HTTP: routes, problem details (RFC 9457), guards of bodies and hosts.

Shell: answers requests. Decides nothing; calls the service.
"""
