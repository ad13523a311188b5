"""The audit log: a line for each attempt to write, and for each caller that is turned away."""

import logging

audit_log = logging.getLogger("audit")

NOT_AUTHENTICATED = "(not authenticated)"
"""The user where nobody is authenticated."""
