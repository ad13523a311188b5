"""Errors with the details and the wording of the real API server."""

from typing import Any

from dsf.kube import errors
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.schema import field_errors, object_metadata

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def method_not_allowed() -> errors.ApiError:
    """Return the error for a method that a resource does not have."""
    return errors.ApiError(
        "the server does not allow this method on the requested resource",
        code=405,
        reason="MethodNotAllowed",
    )


def not_found(kind: Kind, name: str) -> errors.NotFound:
    """Return the error for an object that does not exist."""
    return errors.NotFound(f'{kind.resource} "{name}" not found', details=_details(kind, name))


def conflict(kind: Kind, name: str, problem: str) -> errors.Conflict:
    """Return the error for an object that changed or was re-created."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {problem}'
    return errors.Conflict(message, details=_details(kind, name))


def other_uid(kind: Kind, name: str, uid: str, actual: str) -> errors.Conflict:
    """Return the conflict of an update that names another uid."""
    problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
    return conflict(kind, name, problem)


def precondition(
    kind: Kind, obj: Object, uid: str | None, resource_version: str | None
) -> errors.Conflict | None:
    """Return the conflict if a precondition of a deletion does not hold, else None."""
    metadata = obj["metadata"]
    if uid and uid != metadata["uid"]:
        return conflict(
            kind,
            metadata["name"],
            f"the UID in the precondition ({uid}) does not match the UID in record "
            f"({metadata['uid']}). The object might have been deleted and then recreated",
        )
    if resource_version and resource_version != metadata["resourceVersion"]:
        return conflict(
            kind,
            metadata["name"],
            f"the ResourceVersion in the precondition ({resource_version}) does not match the "
            f"ResourceVersion in record ({metadata['resourceVersion']}). The object might have "
            "been modified",
        )
    return None


def forbidden(kind: Kind, name: str, problem: str, causes: Any = None) -> errors.Forbidden:
    """Return the error for a write that is not allowed now."""
    quoted = f' "{name}"' if name else ""
    details = {**_details(kind, name), **({"causes": causes} if causes else {})}
    return errors.Forbidden(f"{kind.resource}{quoted} is forbidden: {problem}", details=details)


def terminating_namespace(kind: Kind, name: str, namespace: str) -> errors.Forbidden:
    """Return the error for a create in a namespace that is being deleted."""
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    problem = (
        f"unable to create new content in namespace {namespace} because it is being terminated"
    )
    return forbidden(kind, name, problem, [cause])


def unreadable_patch(error: errors.BadRequest) -> errors.Invalid:
    """Return the error for a patch whose result is not an object of the kind."""
    cause = {"reason": "FieldValueInvalid", "message": error.message, "field": "patch"}
    return errors.Invalid(f"patch: {error.message}", details={"causes": [cause]})


def unversioned(kind: Kind, name: str) -> errors.Invalid:
    """Return the error for an update without the resourceVersion that it replaces."""
    problem = field_errors.wrong("metadata.resourceVersion", 0, "must be specified for an update")
    return field_errors.invalid(kind.plural, kind.group, name, [problem])


def already_exists(
    kind: Kind, name: str, existing: Object, *, generated: bool
) -> errors.AlreadyExists:
    """Return the error for a create whose name is taken."""
    message = f'{kind.resource} "{name}" already exists'
    if generated:
        message += ", the server was not able to generate a unique name for the object"
    elif object_metadata.is_deleting(existing):
        message = f"object is being deleted: {message}"
    return errors.AlreadyExists(message, details=_details(kind, name))


def _details(kind: Kind, name: str) -> dict[str, Any]:
    return {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}
