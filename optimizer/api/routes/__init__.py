"""The routes of the HTTP API by what they are about: the fleet, recorded plans, rollouts, the page.

Shell: each reads a request, calls the caller's optimizer, and writes the response. May import
`optimizer.api`, except `app`, and whatever that may import.
"""
