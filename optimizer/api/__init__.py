"""The optimizer over HTTP: routes, problem details (RFC 9457).

Also guards of bodies, hosts and connections.
Shell: answers requests. Decides nothing; calls the service.
"""
