import pytest

from dsf.api.scoring.quantity import format_quantity, parse_pairs, parse_quantity, parse_resource


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4", 4.0),
        ("0", 0.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("500m", 0.5),
        ("2k", 2e3),
        ("16Gi", 16 * 2.0**30),
        ("1E", 1e18),
        ("1e3", 1e3),
        ("1E2", 1e2),
        ("5e-1", 0.5),
        ("+5", 5.0),
        ("250u", 250e-6),
        ("3920000000n", 3.92),
    ],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: str, number: float) -> None:
    assert parse_quantity(text) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["", "many", "4 ", "-1", "1.2.3", "1KiB", "4x", "\u0663", "1_000", "e3"]
)
def test_what_is_no_quantity_has_no_number(text: str) -> None:
    assert parse_quantity(text) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (1024.0, "1024"),
        (0.1 + 0.2, "0.3"),
        (16 * 2.0**30, "16Gi"),
        (16 * 2.0**30 + 1, "17179869185"),
        (1234567.5, "1234567.5"),
    ],
)
def test_amounts_are_spelt_so_that_they_can_be_written_down_again(number: float, text: str) -> None:
    assert format_quantity(number) == text
    assert parse_quantity(text) == pytest.approx(number)


def test_pairs_end_at_the_last_equals_sign() -> None:
    assert parse_pairs("a=1, b/c = 2") == [("a", "1"), ("b/c", "2")]
    assert parse_pairs("a=b=1") == [("a=b", "1")]
    assert parse_pairs("a") is None
    assert parse_pairs("a=1,") is None
    assert parse_pairs("=1") is None


@pytest.mark.parametrize(
    ("text", "kind", "device"),
    [
        ("cpu", "cpu", ""),
        ("gpu/3g.48gb", "gpu", "3g.48gb"),
        ("nvidia.com/gpu", "nvidia.com/gpu", ""),
        ("nvidia.com/gpu/3g.48gb", "nvidia.com/gpu", "3g.48gb"),
    ],
)
def test_a_domain_belongs_to_the_kind(text: str, kind: str, device: str) -> None:
    assert parse_resource(text) == (kind, device)
