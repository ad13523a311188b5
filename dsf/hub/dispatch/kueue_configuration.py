"""Kueue's own configuration: which dispatcher it names, and what admission checks say of it. Pure.

Kueue's manager keeps conditions of other types: it changes the one of type Active in the list that
it has read.

Sources: apis/config/v1beta2 and pkg/controller/admissionchecks/multikueue/admissioncheck.go of
sigs.k8s.io/kueue v0.17.0.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import yaml

from dsf.api.conditions import Condition, conditions_of, find
from dsf.api.names import GROUP
from dsf.api.times import read_time
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.hub.dispatch.candidates import WorkerFleet
from dsf.kube.port import Object
from dsf.kube.yaml_documents import parsed_yaml

DISPATCHER = f"{GROUP}/dispatcher"
"""The name by which Kueue's configuration names this dispatcher."""
CONFIGURATION_KEY = "controller_manager_config.yaml"
ANSWER_SECONDS = 60.0
"""How long a new admission check may be without an answer."""
ALL_AT_ONCE = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
"""The dispatcher of a configuration that names none."""


def other_dispatcher(config_map: Object | None, where: str) -> str:
    """Return why Kueue does not ask this dispatcher, and what to do; empty if it does.

    `where` is the namespace and the name of the ConfigMap.
    """
    if config_map is None:
        return (
            f"there is no ConfigMap {where} with Kueue's configuration: name it by --kueue-config"
        )
    text = (config_map.get("data") or {}).get(CONFIGURATION_KEY)
    if text is None:
        return f"ConfigMap {where} has no {CONFIGURATION_KEY}: name another one by --kueue-config"
    try:
        (configuration,) = parsed_yaml(text)
    except (yaml.YAMLError, ValueError):
        return f"{CONFIGURATION_KEY} of ConfigMap {where} is not one YAML document: correct it"
    if _part(_part(configuration).get("featureGates")).get("MultiKueue") is False:
        return f"the feature gate MultiKueue is off in ConfigMap {where}: set it, restart Kueue"
    section = _part(_part(configuration).get("multiKueue"))
    found = str(section.get("dispatcherName") or ALL_AT_ONCE)
    if found == DISPATCHER:
        return ""
    return (
        f"Kueue's configuration in ConfigMap {where} names {UntrustedName(found)}: set"
        f" multiKueue.dispatcherName to {DISPATCHER} there and restart Kueue's manager"
    )


def unanswered(check: Object, now: datetime) -> str:
    """Return that Kueue takes no notice of an admission check; empty for one that it answers."""
    created = read_time(check["metadata"].get("creationTimestamp")) or now
    if find(conditions_of(check), "Active") or (now - created).total_seconds() < ANSWER_SECONDS:
        return ""
    return (
        "Kueue does not say whether this check is active: see that its manager runs, with the"
        " feature gate MultiKueue"
    )


def _part(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


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
