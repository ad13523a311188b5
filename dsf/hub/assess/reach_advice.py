"""What to do about a scoring API that not all of the hub and the managed clusters reach."""

from urllib.parse import urlsplit

MAKE_REACHABLE = (
    "expose it at an address that the hub and all managed clusters reach, or run one on each"
    " managed cluster with configSyncMode None and location Internal"
)
_CHECK = (
    "check spec.configURL and that the hub can reach it; if only managed clusters can, set"
    " location Internal and configSyncMode None"
)
_SERVICE_NAMES = (".svc", ".svc.cluster.local")


def advice_for_unanswered(config_url: str, reason: str) -> str:
    """Return what to do about an API from which the hub got no answer; `reason` is the probe's.

    The usual cause of `Unreachable` is the name of a Service: only the Service's cluster knows it.
    """
    host = urlsplit(config_url).hostname or ""
    if reason == "Unreachable" and host.endswith(_SERVICE_NAMES):
        return f"{host} is a Service, which only its own cluster reaches: {MAKE_REACHABLE}"
    return _CHECK
