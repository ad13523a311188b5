"""Pages of scores: bounded, complete, in a fixed order."""

from datetime import UTC, datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from mcp_server.results.fleet_results import ScoresView, scores_text, scores_view
from mcp_server.results.tool_result import bounded, next_page
from optimizer.wire.result import ScoreEntry, ScoreObject

NAMES = st.sampled_from(["a", "b", "c", "d"])
ENTRIES = st.lists(st.builds(ScoreEntry, name=NAMES, value=st.integers(-100, 100)), max_size=5)
OBJECTS = st.lists(
    st.builds(ScoreObject, cluster=NAMES, name=NAMES, scores=ENTRIES.map(tuple)),
    max_size=6,
    unique_by=lambda score: (score.cluster, score.name),
)


def _page(objects: list[ScoreObject], most: int, offset: int = 0) -> ScoresView:
    return bounded(scores_view([], objects), most, offset)


@given(OBJECTS, st.integers(1, 7))
def test_the_pages_together_hold_every_entry_once(objects: list[ScoreObject], most: int) -> None:
    seen: list[tuple[str, str, str, int]] = []
    cited: set[tuple[str, str]] = set()
    offset, more = 0, True
    while more:
        page = _page(objects, most, offset)
        rows = [(i.cluster, i.name, e.name, e.value) for i in page.entries for e in i.scores]
        assert len(rows) <= most
        seen += rows
        on_page = [(item.cluster, item.name) for item in page.entries]
        assert len(on_page) == len({*on_page})
        cited |= {*on_page}
        offset, more = offset + most, bool(page.omitted)
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
    assert _page(shuffled, 9) == _page(objects, 9)


def test_a_page_says_what_it_leaves_out_and_where_the_next_one_begins() -> None:
    every = [ScoreObject(cluster="c", name=name) for name in "abc"]
    assert next_page(_page(every, 2), 2) == "\nLeft out: 1 entries. Next page: offset 2."
    assert next_page(_page(every, 2, 2), 4) == ""


def test_every_text_of_a_result_is_cleaned() -> None:
    score = ScoreObject(
        cluster="worker01",
        name="s",
        description="a\nb" + "x" * 5000,
        scores=(ScoreEntry(name="c\u202ed", value=1),),
    )
    [shown] = _page([score], 10).entries
    assert shown.description.startswith("a bx")
    assert shown.description.endswith("…")
    assert shown.scores == (ScoreEntry(name="c\ufffdd", value=1),)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_line_of_scores_tells_how_far_they_can_be_trusted() -> None:
    known = ScoreObject(cluster="c", name="n", trust=0.5)
    text = scores_text(_page([known, ScoreObject(cluster="d", name="n")], 5), NOW)
    assert text.startswith("c n (valid, trust 0.50): no entries\nd n (valid): no entries\n")
