"""Pages of scores: bounded, complete, in a fixed order."""

from datetime import UTC, datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mcp_server.results.fleet_results import score_lines, score_page
from optimizer.wire.result import ScoreEntry, ScoreObject

NAMES = st.sampled_from(["a", "b", "c", "d"])
ENTRIES = st.lists(st.builds(ScoreEntry, name=NAMES, value=st.integers(-100, 100)), max_size=5)
OBJECTS = st.lists(
    st.builds(ScoreObject, cluster=NAMES, name=NAMES, scores=ENTRIES.map(tuple)),
    max_size=6,
    unique_by=lambda score: (score.cluster, score.name),
)


@given(OBJECTS, st.integers(1, 7))
def test_the_pages_together_hold_every_entry_once(objects: list[ScoreObject], limit: int) -> None:
    seen: list[tuple[str, str, str, int]] = []
    cited: set[tuple[str, str]] = set()
    offset: int | None = 0
    while offset is not None:
        page = score_page(objects, offset=offset, limit=limit)
        rows = [(i.cluster, i.name, e.name, e.value) for i in page.items for e in i.scores]
        assert len(rows) <= limit
        seen += rows
        cited |= {(item.cluster, item.name) for item in page.items}
        assert page.next_offset is None or page.next_offset == offset + limit
        offset = page.next_offset
    expected = [(o.cluster, o.name, e.name, e.value) for o in objects for e in o.scores]
    assert sorted(seen) == sorted(expected)
    assert [row[:3] for row in seen] == sorted(row[:3] for row in expected)
    assert cited == {(o.cluster, o.name) for o in objects}


@given(OBJECTS, st.randoms(use_true_random=False))
def test_the_order_of_the_objects_does_not_matter(
    objects: list[ScoreObject], random: Random
) -> None:
    shuffled = list(objects)
    random.shuffle(shuffled)
    assert score_page(shuffled, offset=0, limit=9) == score_page(objects, offset=0, limit=9)


def test_a_page_behind_the_end_is_empty() -> None:
    page = score_page([ScoreObject(cluster="c", name="n")], offset=5, limit=5)
    assert (page.total, page.items, page.next_offset) == (1, (), None)


def test_every_text_of_a_result_is_cleaned() -> None:
    score = ScoreObject(
        cluster="worker01",
        name="s",
        description="a\nb" + "x" * 5000,
        scores=(ScoreEntry(name="c\u202ed", value=1),),
    )
    [shown] = score_page([score], offset=0, limit=10).items
    assert shown.description.startswith("a bx")
    assert shown.description.endswith("…")
    assert shown.scores == (ScoreEntry(name="c\ufffdd", value=1),)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_line_of_scores_tells_how_far_they_can_be_trusted() -> None:
    known = ScoreObject(cluster="c", name="n", trust=0.5)
    lines = score_lines(
        score_page([known, ScoreObject(cluster="d", name="n")], offset=0, limit=5), NOW
    )
    assert lines[1:] == ["c n (valid, trust 0.50): no entries", "d n (valid): no entries"]
