"""Selectors of DeviceClasses and claims, as kube-scheduler evaluates them."""

import pytest

from optimizer.domain.dra.device_sets import ClaimRequest, Device, DeviceClass, DeviceSet, Version
from optimizer.domain.dra.selectors import DeviceSelectors, NotEvaluated

_GPU = Device(
    attributes=(
        ("bool", True),
        ("driverVersion", Version("580.65.6")),
        ("index", 2),
        ("productName", "NVIDIA A100-SXM4-40GB"),
        ("type", "gpu"),
        ("resource.kubernetes.io/pcieRoot", "pci0000:00"),
    ),
    identities=(("uuid", 0),),
    capacity=(("memory", 40.0 * 2**30),),
)
_SET = DeviceSet("gpu.nvidia.com", (_GPU,))


def _result(text: str, work: int = 100_000) -> bool | str:
    selectors = DeviceSelectors({"any": DeviceClass()}, work)
    found = selectors.matching(ClaimRequest("r", "any", (text,)), _SET)
    return found.why if isinstance(found, NotEvaluated) else bool(found)


def test_a_version_of_thousands_of_digits_is_none() -> None:
    """An inventory is what an agent of a managed cluster says."""
    device = Device(attributes=(("v", Version(f"{'9' * 5_000}.0.0")),))
    asked = ClaimRequest("r", "any", ("device.driver == 'gpu.nvidia.com'",))
    selectors = DeviceSelectors({"any": DeviceClass()})
    assert selectors.matching(asked, DeviceSet("gpu.nvidia.com", (device,))) == {0}


_ATTRIBUTES = "device.attributes['gpu.nvidia.com']"
_MEMORY = "device.capacity['gpu.nvidia.com'].memory"


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("device.driver == 'gpu.nvidia.com'", True),
        (f"{_ATTRIBUTES}.type == 'gpu'", True),
        (f"{_ATTRIBUTES}.type == 'mig' && {_ATTRIBUTES}.profile == '1g.5gb'", False),
        (f"{_ATTRIBUTES}.profile == '1g.5gb' || {_ATTRIBUTES}.type == 'gpu'", True),
        (f"'profile' in {_ATTRIBUTES}", False),
        (f"has({_ATTRIBUTES}.profile)", False),
        ("has(device.attributes['other.com'].profile)", False),
        (f"{_ATTRIBUTES}.index in [0, 2]", True),
        (f"{_ATTRIBUTES}.bool ? {_ATTRIBUTES}.index > 1 : false", True),
        (f"{_ATTRIBUTES}.productName.lowerAscii().matches('^.*a100.*$')", True),
        (f"{_ATTRIBUTES}.productName.contains('H100')", False),
        ("device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:00'", True),
        (f"{_MEMORY}.isGreaterThan(quantity('10Gi'))", True),
        (f"{_MEMORY}.compareTo(quantity('40Gi')) >= 0", True),
        (f"{_MEMORY}.isLessThan(quantity('40Gi'))", False),
        (f"{_MEMORY} == quantity('40960Mi')", True),
        (f"{_ATTRIBUTES}.driverVersion.isGreaterThan(semver('535.104.5'))", True),
        (f"{_ATTRIBUTES}.driverVersion.compareTo(semver('580.65.6')) == 0", True),
        (f"{_ATTRIBUTES}.driverVersion.major() >= 570", True),
        ("semver('1.0.0').isGreaterThan(semver('1.0.0-rc.2'))", True),
        ("semver('1.0.0-rc.10').isGreaterThan(semver('1.0.0-rc.2'))", True),
        ("semver('1.0.0-rc.1').isGreaterThan(semver('1.0.0-1'))", True),
        ("isQuantity('ten') || isSemver('1.0')", False),
    ],
)
def test_a_selector_matches_a_device(text: str, matches: bool) -> None:
    assert _result(text) is matches


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{_ATTRIBUTES}.profile == '1g.5gb'", "a device of gpu.nvidia.com has no profile"),
        ("device.attributes['other.com'].x == 1", "a device of gpu.nvidia.com has no x"),
        (
            f"{_ATTRIBUTES}.uuid == 'GPU-1'",
            "it reads uuid, of which the inventory does not list values",
        ),
        (f"!has({_ATTRIBUTES}.uuid)", "it reads uuid, of which the inventory does not list values"),
        (f"{_MEMORY}.isGreaterThan(quantity('a lot'))", "quantity gets 'a lot'"),
        (
            f"{_MEMORY}.isGreaterThan(semver('1.0.0'))",
            "isGreaterThan gets {'quantity': 42949672960.0}, {'version': [1, 0, 0, True, []]}",
        ),
        (f"{_ATTRIBUTES}.index", "it is neither true nor false"),
        ("device.name == 'gpu-0'", "a device of gpu.nvidia.com has no name"),
        ("node == 'a'", "it names node, which is not there"),
        ("cel.bind(a, device.attributes, true)", "it uses bind, which is not supported"),
        ("[1, 2].all(x, x > 0)", "it uses @not_strictly_false, which is not supported"),
        ("[1, 2].map(x, x) == []", "it uses _+_, which is not supported"),
        ("'a' + 'b' == 'ab'", "it uses _+_, which is not supported"),
        ("true" + " " * 2_048, "it has 2052 characters, of which at most 2048 are read"),
    ],
)
def test_what_can_not_be_evaluated_is_told_and_matches_nothing(text: str, why: str) -> None:
    assert _result(text) == why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(" * 1_000 + "true" + ")" * 1_000, "it is not valid CEL"),
        ("[" * 1_000 + "]" * 1_000, "it is not valid CEL"),
        ("device.driver ==", "it is not valid CEL"),
        ("device.driver.matches('(\\\\pL{99}){99}')", "Function 'matches' error"),
    ],
)
def test_hostile_selectors_are_named(text: str, why: str) -> None:
    assert str(_result(text)).startswith(why)


def test_evaluations_are_bounded_and_regular_expressions_count_their_length() -> None:
    plain, pattern = "device.driver == 'a'", "device.driver.matches('x')"
    assert _result(plain, 1) is False
    assert _result(plain, 0) == "selectors need more than 100000 evaluations"
    assert _result(pattern, len(pattern)) is False
    assert _result(pattern, len(pattern) - 1) == "selectors need more than 100000 evaluations"


def test_many_costly_selectors_end_at_the_bound() -> None:
    devices = DeviceSet("d", tuple(Device((("n", number),)) for number in range(500)))
    selectors = DeviceSelectors({"any": DeviceClass()})
    costly = ClaimRequest("r", "any", (f"device.driver.matches('{'(x*|y)*' * 270}')",))
    found = selectors.matching(costly, devices)
    assert isinstance(found, NotEvaluated)
    assert found.why == "selectors need more than 100000 evaluations"


def test_selectors_of_the_class_come_first_and_end_at_the_first_that_does_not_match() -> None:
    classes = {"mig": DeviceClass((f"{_ATTRIBUTES}.type == 'mig'",))}
    request = ClaimRequest("r", "mig", (f"{_ATTRIBUTES}.profile == '1g.5gb'",))
    assert DeviceSelectors(classes).matching(request, _SET) == frozenset()
    assert DeviceSelectors({}).matching(request, _SET) == NotEvaluated(
        "", "the cluster has no DeviceClass mig"
    )
