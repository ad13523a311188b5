"""The form of an HTTP error of any server of the product. Source: RFC 9457."""

import re

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:dynamic-scoring-framework:problem:"


def problem_type(reason: str) -> str:
    """Return the `type` of a problem, from its reason in CamelCase."""
    return TYPE + re.sub(r"(?<!^)(?=[A-Z])", "-", reason).lower()
