"""Which app a pod belongs to, by the name of the pod: pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
"""The characters of Kubernetes' generated names (k8s.io/apimachinery/pkg/util/rand)."""

_SUFFIX = re.compile(rf"-{_RANDOM}{{1,10}}-{_RANDOM}{{5}}$|-{_RANDOM}{{5}}$|-\d+$")
"""What a Deployment, a DaemonSet or Job, or a StatefulSet adds to its name."""


@dataclass(frozen=True)
class AppPattern:
    """An app, and the pods that belong to it as a pattern with `*` and `?`."""

    app: str
    pods: str


def app_of(pod: str, patterns: Sequence[AppPattern] = ()) -> str:
    """Return the app of the first pattern that fits, or else the pod's name without its suffix."""
    for pattern in patterns:
        if fnmatchcase(pod, pattern.pods):
            return pattern.app
    return _SUFFIX.sub("", pod, count=1) or pod
