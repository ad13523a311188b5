"""CEL selectors of DeviceClasses and claims, evaluated for a device as kube-scheduler does.

Selectors come from strangers. What they may call has no loop, so that an evaluation costs at most
as much as the text is long, and evaluations are counted: their number is the only bound.

Sources: https://kubernetes.io/docs/reference/using-api/cel/ (quantities, semantic versions) and
https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/resource-slice-v1/
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dsf.api.crd.node_inventory import MAX_SELECTOR_LENGTH
from dsf.api.scoring.quantity import parse_quantity
from optimizer.domain.dra.device_sets import ClaimRequest, Device, DeviceClasses, DeviceSet, Version

if TYPE_CHECKING:
    import cel

MAX_WORK = 100_000
"""Evaluations for a cluster; with a regular expression one counts as many as it has characters."""

MAX_VERSION_LENGTH = 64
"""Characters of a semantic version (DeviceAttributeMaxValueLength of resource.k8s.io/v1)."""

_OPERATORS = "_==_ _!=_ _<_ _<=_ _>_ _>=_ _&&_ _||_ !_ -_ _?_:_ _[_] @in"
_METHODS = "size startsWith endsWith contains matches"
_DOMAIN = re.compile(r"""\.\s*(?:attributes|capacity)\s*\[\s*(['"])([^'"\\]+)\1\s*\]""")
_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+.+)?")
_FAILURES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class NotEvaluated(NamedTuple):
    """Why it is not known whether a device matches: `why` of a selector."""

    selector: str
    why: str


class _Compiled(NamedTuple):
    program: "cel.Program"
    domains: tuple[str, ...]
    work: int


class DeviceSelectors:
    """Matches devices with the requests of claims, with the DeviceClasses of one cluster."""

    def __init__(self, classes: DeviceClasses, work: int = MAX_WORK) -> None:
        self._classes, self._left = classes, work

    def matching(self, request: ClaimRequest, devices: DeviceSet) -> frozenset[int] | NotEvaluated:
        """Return the indexes of the devices that match a request."""
        known = self._classes.get(request.device_class)
        if known is None:
            return NotEvaluated("", f"the cluster has no DeviceClass {request.device_class}")
        selectors = (*known.selectors, *request.selectors)
        found = set()
        for index, device in enumerate(devices.devices):
            matches = self._matches(selectors, devices.driver, device)
            if isinstance(matches, NotEvaluated):
                return matches
            if matches:
                found.add(index)
        return frozenset(found)

    def _matches(
        self, selectors: Iterable[str], driver: str, device: Device
    ) -> bool | NotEvaluated:
        for text in selectors:
            compiled = _compiled(text)
            if isinstance(compiled, str):
                return NotEvaluated(text, compiled)
            self._left -= compiled.work
            if self._left < 0:
                return NotEvaluated(text, f"selectors need more than {MAX_WORK} evaluations")
            result = _evaluated(text, driver, device)
            if isinstance(result, str):
                return NotEvaluated(text, result)
            if not result:
                return False
        return True


@lru_cache(maxsize=1_024)
def _compiled(text: str) -> _Compiled | str:
    """Return a selector that is cheap to evaluate, or why it is not evaluated."""
    if len(text) > MAX_SELECTOR_LENGTH:
        return f"it has {len(text)} characters, of which at most {MAX_SELECTOR_LENGTH} are read"
    import cel  # noqa: PLC0415 - it takes half a second, which commands without DRA need not pay

    try:
        program = cel.compile(text)
    except _FAILURES as error:
        return f"it is not valid CEL: {_first_line(error)}"
    called = set(program.functions())
    if unknown := sorted(called - _CALLABLE):
        return f"it uses {unknown[0]}, which is not supported"
    if unknown := sorted(set(program.variables()) - {"device"}):
        return f"it names {unknown[0]}, which is not there"
    domains = tuple(sorted({found[1] for found in _DOMAIN.findall(text)}))
    return _Compiled(program, domains, len(text) if "matches" in called else 1)


@lru_cache(maxsize=65_536)
def _evaluated(text: str, driver: str, device: Device) -> bool | str:
    """Return whether a device matches a selector, or why that can't be told."""
    import cel  # noqa: PLC0415 - see above

    compiled = _compiled(text)
    if isinstance(compiled, str):
        return compiled
    for name, _ in device.identities:
        if re.search(rf"\b{re.escape(name.rpartition('/')[2])}\b", text):
            return f"it reads {name}, of which the inventory does not list values"
    attributes: dict[str, dict[str, Any]] = {domain: {} for domain in compiled.domains}
    for name, value in device.attributes:
        typed = _version(value.text) if isinstance(value, Version) else value
        domain, _, short = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[short] = typed
    capacity: dict[str, dict[str, Any]] = {domain: {} for domain in compiled.domains}
    for name, amount in device.capacity:
        domain, _, short = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[short] = {"quantity": amount}
    seen = {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": False,
    }
    failures: list[str] = []
    context = cel.Context({"device": seen})
    for function, body in _FUNCTIONS.items():
        context.add_function(function, _recording(failures, function, body))
    try:
        result = compiled.program.execute(context)
    except KeyError as error:
        return f"a device of {driver} has no {error.args[0]}"
    except _FAILURES as error:
        failures.append(_first_line(error))
    if failures:
        return failures[0]
    return result if isinstance(result, bool) else "it is neither true nor false"


def _recording(failures: list[str], name: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that notes its failure: the library prints exceptions to stderr."""

    def call(*arguments: Any) -> Any:
        try:
            found = body(*arguments)
        except _FAILURES:
            found = None
        if found is None:
            failures.append(f"{name} gets {', '.join(map(repr, arguments))[:100]}")
        return found

    return call


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]


def _quantity(text: str) -> dict[str, Any] | None:
    amount = parse_quantity(text)
    return None if amount is None else {"quantity": amount}


def _version(text: str) -> dict[str, Any] | None:
    """Return a version with a key that sorts as https://semver.org says."""
    found = _SEMVER.fullmatch(text) if len(text) <= MAX_VERSION_LENGTH else None
    if found is None:
        return None
    *numbers, before = found.groups()
    parts = before.split(".") if before else []
    keys = [[0, int(part), ""] if part.isdigit() else [1, 0, part] for part in parts]
    return {"version": [*map(int, numbers), not parts, keys]}


def _compare(left: dict[str, Any], right: dict[str, Any]) -> int:
    (kind,) = left.keys() & right.keys()
    return int(left[kind] > right[kind]) - int(left[kind] < right[kind])


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": lambda text: _quantity(text) is not None,
    "semver": _version,
    "isSemver": lambda text: _version(text) is not None,
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "major": lambda value: value["version"][0],
    "minor": lambda value: value["version"][1],
    "patch": lambda value: value["version"][2],
    "lowerAscii": lambda text: text.lower(),
    "upperAscii": lambda text: text.upper(),
}
_CALLABLE = frozenset([*_OPERATORS.split(), *_METHODS.split(), *_FUNCTIONS])
