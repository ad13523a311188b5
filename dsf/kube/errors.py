"""Errors of calls to an API server.

    KubeError
    ├── ApiError              the API server answered with a Status
    │   ├── BadRequest        400
    │   ├── Unauthorized      401
    │   ├── Forbidden         403
    │   ├── NotFound          404
    │   ├── AlreadyExists     409, reason AlreadyExists
    │   ├── Conflict          409, reason Conflict
    │   ├── Gone              410, reasons Expired and Gone
    │   ├── Invalid           422
    │   ├── TooManyRequests   429
    │   └── ServerError       5xx
    ├── AnswerTooLarge        the answer is larger than the client reads
    └── Unreachable           no answer: refused, reset, timed out, bad TLS

`retryable` is true if the same call may succeed later without a change of the request.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

FLOW_SCHEMA_UID, PRIORITY_LEVEL_UID = "flowSchemaUID", "priorityLevelUID"
"""Keys of an error's details: what API priority and fairness says about a refused request."""
FIELD_MANAGER_CONFLICT = "FieldManagerConflict"
"""Reason of a cause in an error's details: another client owns a field that is applied."""
LONGEST_RETRY_AFTER_SECONDS = 300.0
"""A server that asks for a longer pause gets this one, so that a mistake of it does not last."""


class KubeError(Exception):
    """The base class of all errors of this module."""

    retryable: ClassVar[bool] = False


class Unreachable(KubeError):
    """No usable answer came from the API server."""

    retryable = True


class AnswerTooLarge(KubeError):
    """The API server's answer is larger than the client reads."""


class ApiError(KubeError):
    """The API server answered with an error; carries its Kubernetes Status body."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        reason: str | None = None,
        code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})
        self.actual_code = self.code if code is None else code
        self.actual_reason = self.reason if reason is None else reason

    def status(self) -> dict[str, Any]:
        """Return the `meta/v1` Status object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.actual_reason,
            **({"details": self.details} if self.details else {}),
            "code": self.actual_code,
        }


class BadRequest(ApiError):
    """The request itself is malformed."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """The credentials are missing, wrong or expired."""

    code, reason, retryable = 401, "Unauthorized", True


class Forbidden(ApiError):
    """The user lacks a permission (RBAC), or the object may not be written now."""

    code, reason, retryable = 403, "Forbidden", True


class NotFound(ApiError):
    """No such object, or no such kind."""

    code, reason = 404, "NotFound"


class AlreadyExists(ApiError):
    """An object of that name exists."""

    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    """The object changed since it was read, or a precondition failed."""

    code, reason, retryable = 409, "Conflict", True


class Gone(ApiError):
    """The resource version or the continue token is too old: list again."""

    code, reason, retryable = 410, "Expired", True


class Invalid(ApiError):
    """The object breaks its schema or a validation rule."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """The API server is busy; `details.retryAfterSeconds` may say how long to wait."""

    code, reason, retryable = 429, "TooManyRequests", True


class ServerError(ApiError):
    """The API server failed with an internal error."""

    code, reason, retryable = 500, "InternalError", True


def retry_after(error: BaseException) -> float:
    """Return the `retryAfterSeconds` of an error, at most 300, or 0 if it has none."""
    value = error.details.get("retryAfterSeconds") if isinstance(error, ApiError) else None
    if not isinstance(value, int | float) or not value > 0:
        return 0.0
    return float(min(value, LONGEST_RETRY_AFTER_SECONDS))


_BY_CODE: dict[int, type[ApiError]] = {
    error.code: error
    for error in (BadRequest, Unauthorized, Forbidden, NotFound, Gone, Invalid, TooManyRequests)
}


def from_status(code: int, body: Mapping[str, Any]) -> ApiError:
    """Return the error for an HTTP code and a Status body, which may be incomplete."""
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or f"the API server answered {code}")
    details = body.get("details")
    return _error_type(code, reason)(
        message,
        details=details if isinstance(details, Mapping) else None,
        reason=reason or None,
        code=code,
    )


def _error_type(code: int, reason: str) -> type[ApiError]:
    if code == Conflict.code:
        return AlreadyExists if reason == AlreadyExists.reason else Conflict
    return _BY_CODE.get(code, ServerError if code >= ServerError.code else BadRequest)
