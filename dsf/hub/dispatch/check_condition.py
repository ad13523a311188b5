"""The condition of MultiKueue's admission checks that says whether this dispatcher serves them.

Pure. Kueue's manager keeps conditions of other types: it changes the one of type Active in the list
that it has read.

Source: pkg/controller/admissionchecks/multikueue/admissioncheck.go of sigs.k8s.io/kueue v0.17.0.
"""

from collections.abc import Iterable
from datetime import datetime

from dsf.api.conditions import Condition
from dsf.api.names import GROUP
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.hub.dispatch.candidates import WorkerFleet
from dsf.hub.dispatch.kueue_configuration import unanswered
from dsf.kube.port import Object

DISPATCHING = f"{GROUP}/Dispatching"
"""The type of the condition."""
_MOST_TOLD = 5
"""Names that the message has of each sort."""


def dispatching(
    check: Object, fleet: WorkerFleet, idle_reason: str, others: Iterable[str], now: datetime
) -> Condition:
    """Return the condition of an admission check of MultiKueue.

    `idle_reason`: why nothing is nominated; empty if that is not so. `others`: the Workloads whose
    clusters somebody else nominates.
    """
    config = fleet.checks[check["metadata"]["name"]]
    if idle_reason:
        return Condition(DISPATCHING, "False", "NotItsDispatcher", idle_reason)
    if why := unanswered(check, now):
        return Condition(DISPATCHING, "False", "NotAnswered", why)
    if config not in fleet.configs:
        why = f"there is no MultiKueueConfig {UntrustedName(config)}"
        return Condition(DISPATCHING, "False", "NoMultiKueueConfig", why)
    managed = {name: fleet.managed_cluster(name) for name in fleet.configs[config]}
    strangers = [name for name, cluster in managed.items() if not cluster]
    rest = fleet.managed.keys() - set(managed.values())
    sentences = (
        _sentence("Left alone, because another dispatcher nominates their clusters", others),
        _sentence("Worker clusters that OCM does not know, so without a score", strangers),
        _sentence(f"Managed clusters not in MultiKueueConfig {UntrustedName(config)}", rest),
    )
    reason = "OtherDispatcher" if sentences[0] else "UnknownWorkers" if strangers else "Dispatching"
    message = " ".join(f"{sentence}" for sentence in sentences if sentence)
    return Condition(DISPATCHING, "True", reason, message)


def _sentence(what: str, names: Iterable[str]) -> str:
    return f"{what}: {listed(told, _MOST_TOLD)}." if (told := sorted(names)) else ""
