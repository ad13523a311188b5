"""What others use and the hub does not know, from OCM's resource usage scores."""

from hypothesis import given
from hypothesis import strategies as st

from optimizer.snapshot.ownership.others_part import unexplained_use

FULL = {"cpu": 100.0, "memory": float(2**40)}
ENTRIES = {"cpu": "cpuAvailable", "memory": "memAvailable"}


@given(st.sampled_from(["cpu", "memory"]), st.floats(0, 1.5), st.floats(0, 1), st.floats(0, 1))
def test_no_more_is_taken_than_pods_request_and_hardly_less(
    kind: str, size: float, used: float, explained: float
) -> None:
    """The score is 200 * available / full - 100, cut towards 0 as Go does, and at most 100."""
    full = FULL[kind]
    most = int(size * full)
    taken = used * most
    value = min(100, int(200 * (most - taken) / full - 100))
    cluster = {"status": {"allocatable": {kind: str(most)}}}
    score = {"status": {"scores": [{"name": ENTRIES[kind], "value": value}]}}
    known = explained * taken
    found = dict(unexplained_use(cluster, score, {kind: known}))
    rest, step = taken - known, full / 200
    assert found.keys() <= {kind}
    amount = found.get(kind, 0.0)
    assert amount <= rest + 1e-6 * full
    if value < 100:
        assert amount >= min(max(rest - (2 if value == 0 else 1) * step - 1e-6 * full, 0), rest)
    else:
        assert found == {}
