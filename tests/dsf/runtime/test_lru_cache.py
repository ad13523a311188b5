"""The cache, compared with a list of all uses."""

from hypothesis import given
from hypothesis import strategies as st

from dsf.runtime.lru_cache import LruCache

USES = st.tuples(st.sampled_from(["put", "get", "forget"]), st.integers(0, 4), st.integers())


@given(st.integers(1, 3), st.lists(USES))
def test_the_entries_that_were_used_last_are_kept(
    size: int, uses: list[tuple[str, int, int]]
) -> None:
    cache, kept = LruCache[int, int](size), list[tuple[int, int]]()
    for action, key, value in uses:
        held = dict(kept).get(key)
        if action == "put":
            cache.put(key, value)
        elif action == "get":
            assert cache.get(key) == held
        else:
            cache.forget(key)
        if action != "get" or held is not None:
            kept = [item for item in kept if item[0] != key]
        if action == "put":
            kept = [*kept, (key, value)][-size:]
        elif action == "get" and held is not None:
            kept.append((key, held))
        assert cache.values() == [item for _, item in kept]
