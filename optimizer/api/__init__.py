"""The optimizer over HTTP: routes, problem details (RFC 9457), limits of bodies, connections and
streams.

Shell: answers requests and calls the service. It decides nothing.
"""
