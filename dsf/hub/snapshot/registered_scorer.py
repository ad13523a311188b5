"""A DynamicScorer: its spec, what its status records of earlier probes, and probes of its API."""

from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import ValidationError

from dsf.api.crd.dynamic_scorer import DynamicScorerSpec
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.snapshot import urls
from dsf.kube.port import Object


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """What is probed for a scorer: its `configURL`, and whether its config is fetched too."""

    config_url: str
    full: bool


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """Why an endpoint gave no usable answer: a CamelCase reason and a message for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a scoring API answered: `health` is None if it is healthy.

    `config` is None if it was not asked for. `unknown` names the fields of its config document that
    the contract does not know.
    """

    health: ProbeFailure | None = None
    config: ScorerConfig | ProbeFailure | None = None
    unknown: tuple[str, ...] = ()


HealthStatus = Literal["Active", "Inactive", "Unknown"]


@dataclass(frozen=True, slots=True)
class RegisteredScorer:
    """One registered scoring API.

    `current` says whether the status is about this spec. `reported_health`, `last_synced_config`
    and `last_synced_config_url` (the configURL that served the config) are what the status records
    of earlier probes; None or empty if it records nothing.
    """

    obj: Object
    name: str
    created: str
    spec: DynamicScorerSpec | InvalidInput
    current: bool
    reported_health: HealthStatus | None
    last_synced_config: ScorerConfig | None
    last_synced_config_url: str = ""

    @property
    def target(self) -> ProbeTarget | None:
        """What to probe; None if the spec can't be used."""
        if isinstance(self.spec, InvalidInput):
            return None
        return ProbeTarget(self.spec.config_url, full=is_full(self.spec))


def is_full(spec: DynamicScorerSpec) -> bool:
    """Tell whether `configSyncMode` is Full, in any letter case."""
    return spec.config_sync_mode.lower() == "full"


def read_scorer(obj: Object) -> RegisteredScorer:
    """Read a DynamicScorer object."""
    metadata = obj["metadata"]
    status = obj.get("status") or {}
    return RegisteredScorer(
        obj=obj,
        name=str(metadata["name"]),
        created=str(metadata.get("creationTimestamp") or ""),
        spec=_spec(obj.get("spec") or {}),
        current=status.get("observedGeneration") == metadata.get("generation"),
        reported_health=cast("HealthStatus | None", status.get("healthStatus")),
        last_synced_config=_config(status.get("lastSyncedConfig")),
        last_synced_config_url=str(status.get("lastSyncedConfigURL") or ""),
    )


def read_misplaced(obj: Object) -> Object | None:
    """Return what is written back of a DynamicScorer outside the controller's namespace.

    None if it is being deleted, or if the status says that another controller uses it.
    """
    metadata, status = obj["metadata"], obj.get("status") or {}
    if metadata.get("deletionTimestamp") or status.get("healthStatus"):
        return None
    kept = ("name", "namespace", "generation", "resourceVersion")
    return {
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "status": {
            key: status[key] for key in ("conditions", "observedGeneration") if key in status
        },
    }


def validation_message(error: ValidationError, limit: int = 3) -> str:
    """Return the first errors of a validation, each with the path of its field."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in errors]
    more = f" and {len(lines) - limit} more" if len(lines) > limit else ""
    return "; ".join(line.removeprefix(": ") for line in lines[:limit]) + more


def _spec(spec: Any) -> DynamicScorerSpec | InvalidInput:
    try:
        parsed = DynamicScorerSpec.model_validate(spec)
    except ValidationError as error:
        return InvalidInput("InvalidSpec", f"spec: {validation_message(error)}")
    server = urls.server(parsed.config_url, "spec.configURL")
    return server if isinstance(server, InvalidInput) else parsed


def _config(document: Any) -> ScorerConfig | None:
    try:
        return ScorerConfig.model_validate(document)
    except ValidationError:
        return None
