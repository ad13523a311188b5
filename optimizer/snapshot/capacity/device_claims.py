"""The ResourceClaims of a workload's Pods, read from what it deploys.

Source: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-claim-template-v1/
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from dsf.api.pod_spec import PodSpec, read_part
from dsf.api.untrusted_text import InvalidInput, UntrustedName, quoted
from dsf.api.wire_model import WireModel
from optimizer.domain.dra.device_sets import ClaimRequest, DeviceClaim, MatchAttribute
from optimizer.domain.dra.selectors import NotEvaluated
from optimizer.domain.dra.wanted_claims import ClusterClaims
from optimizer.domain.fleet import Cluster, Workload
from optimizer.domain.issue import Issue

MAX_CLAIM_REQUESTS = 32
"""Requests of a claim, alternatives of a request, and claims of a Pod (the limits of the API)."""

CLAIM, TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"
_GROUP = "resource.k8s.io/"

ClaimManifests = dict[tuple[str, str, str], tuple[str, Any]]
"""Path and claim spec of manifests by kind, namespace and name; None: a Pod has the claim."""


class _Cel(WireModel):
    """A selector's expression."""

    expression: str


class _Selector(WireModel):
    """A selector of devices."""

    cel: _Cel


class _Exactly(WireModel):
    """A request for devices of a class."""

    device_class_name: str
    selectors: tuple[_Selector, ...] | None = None
    allocation_mode: Literal["ExactCount", "All"] | None = None
    count: Annotated[int, Field(ge=1, le=MAX_CLAIM_REQUESTS)] | None = None
    admin_access: bool | None = None
    capacity: Any = None

    def request(self, name: str) -> ClaimRequest:
        """Return it as a value. Raises ValueError if it asks for what is not supported."""
        if self.admin_access:
            raise ValueError(f"request {UntrustedName(name)} asks for adminAccess")
        if self.capacity:
            raise ValueError(
                f"request {UntrustedName(name)} asks for a part of a device's capacity"
            )
        texts = tuple(item.cel.expression for item in self.selectors or ())
        every = self.allocation_mode == "All"
        return ClaimRequest(name, self.device_class_name, texts, self.count or 1, every)


class _Alternative(_Exactly):
    """One of several ways to meet a request."""

    name: str


class _DeclaredRequest(WireModel):
    """A request of a claim; `v1` has one of both."""

    name: str
    exactly: _Exactly | None = None
    first_available: Annotated[tuple[_Alternative, ...], Field(max_length=8)] | None = None

    def alternatives(self) -> Iterator[ClaimRequest]:
        """Yield the ways to meet it. Raises ValueError if it asks for what is not supported."""
        if self.exactly:
            yield self.exactly.request(self.name)
        for item in self.first_available or ():
            yield item.request(f"{self.name}/{item.name}")


class _Constraint(WireModel):
    """What the devices of several requests have in common."""

    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None


class _Devices(WireModel):
    """The devices that a claim asks for."""

    requests: Annotated[tuple[_DeclaredRequest, ...], Field(max_length=MAX_CLAIM_REQUESTS)] = ()
    constraints: Annotated[tuple[_Constraint, ...], Field(max_length=MAX_CLAIM_REQUESTS)] | None = (
        None
    )


class _ClaimSpec(WireModel):
    """The spec of a ResourceClaim."""

    devices: _Devices = _Devices()


def claim_manifests(manifests: Sequence[Any]) -> ClaimManifests:
    """Return the claims and templates of a workload's manifests."""
    found: ClaimManifests = {}
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, Mapping) or manifest.get("kind") not in (CLAIM, TEMPLATE):
            continue
        metadata, spec = manifest.get("metadata"), manifest.get("spec")
        if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
            continue
        kind, path = str(manifest["kind"]), f"manifests[{index}] ({manifest['kind']}): spec"
        if not str(manifest.get("apiVersion")).startswith(_GROUP):
            continue
        if kind == TEMPLATE:
            spec, path = spec.get("spec"), f"{path}.spec"
        key = kind, str(metadata.get("namespace") or ""), str(metadata.get("name"))
        found[key] = path, spec
    return found


def read_claims(
    pod: PodSpec, namespace: str, count: int, known: ClaimManifests
) -> tuple[DeviceClaim, ...] | InvalidInput:
    """Return what each of equal Pods claims, or what can't be read of it or is not supported.

    A claim that is no template belongs to one Pod: it is taken from those that are known.
    """
    listed = pod.resource_claims or ()
    if len(listed) > MAX_CLAIM_REQUESTS:
        return InvalidInput("Unreadable", f"a Pod has {len(listed)} resourceClaims")
    claims = []
    for item in listed:
        template, alone = item.resource_claim_template_name, item.resource_claim_name
        kind, name = (TEMPLATE, template) if template else (CLAIM, alone or "")
        where = f"resourceClaims ({UntrustedName(item.name)})"
        if (kind, namespace, name) not in known:
            named = f"{kind} {UntrustedName(name)}"
            return InvalidInput("Unreadable", f"{where}: {named} is not among the manifests")
        path, spec = known[kind, namespace, name]
        if not template and (count != 1 or spec is None):
            why = "several Pods share a ResourceClaim; give each its own by a template"
            return InvalidInput("Unreadable", f"{where}: {why}")
        if not template:
            known[kind, namespace, name] = path, None
        claim = _claim(path, spec)
        if isinstance(claim, InvalidInput):
            return claim
        claims.append(claim)
    return tuple(claims)


def _claim(path: str, spec: Any) -> DeviceClaim | InvalidInput:
    read = read_part(_ClaimSpec, spec, path)
    if isinstance(read, InvalidInput):
        return read
    requests, rules = [], read.devices.constraints or ()
    for request in read.devices.requests:
        try:
            alternatives = tuple(request.alternatives())
        except ValueError as error:
            return InvalidInput("Unreadable", f"{path}: {error}, which is not supported")
        if not alternatives:
            why = "has neither exactly nor firstAvailable, as resource.k8s.io/v1 wants"
            return InvalidInput(
                "Unreadable", f"{path}: request {UntrustedName(request.name)} {why}"
            )
        requests.append(alternatives)
    if any(not rule.match_attribute for rule in rules):
        why = "a constraint has no matchAttribute; others are not supported"
        return InvalidInput("Unreadable", f"{path}: {why}")
    matching = tuple(
        MatchAttribute(rule.match_attribute or "", tuple(rule.requests or ())) for rule in rules
    )
    return DeviceClaim(tuple(requests), matching)


def claim_issues(cluster: Cluster, workloads: Iterable[Workload]) -> Iterator[Issue]:
    """Yield why it can't be told which devices of a cluster workloads' claims match."""
    finder = ClusterClaims.of(
        cluster.device_classes, (group.devices for group in cluster.nodes or ())
    )
    for workload in workloads if finder.sets else ():
        for claims in dict.fromkeys(group.claims for group in workload.pods):
            found = finder.wanted(claims)
            if isinstance(found, NotEvaluated):
                selector = f" (selector {quoted(found.selector, 200)})" if found.selector else ""
                why = f"the devices that it claims are not known: {found.why}{selector}"
                yield Issue(
                    "ClaimNotEvaluated",
                    f"workload {workload.name} on cluster {cluster.name}: {why}",
                    workload=workload.name,
                    cluster=cluster.name,
                )
