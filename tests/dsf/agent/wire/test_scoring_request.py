import json

from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.wire.scoring_request import PIECE_BYTES, EncodedSeries, ScoringRequestBody, of_source

SAMPLES = b"[[1,%b]]" % (b'"' + b"1" * 2000 + b'"')


def test_no_series_are_an_empty_list() -> None:
    assert b"".join(ScoringRequestBody(())) == b'{"data":[]}'


@given(st.integers(0, 400))
def test_a_document_comes_in_pieces_of_its_length(count: int) -> None:
    document = ScoringRequestBody([EncodedSeries(b'{"n":"%d"}' % n, SAMPLES) for n in range(count)])
    pieces = list(document)
    assert sum(map(len, pieces)) == len(document)
    assert all(PIECE_BYTES <= len(piece) < 2 * PIECE_BYTES for piece in pieces[:-1])
    data = json.loads(b"".join(pieces))["data"]
    assert [series["metric"]["n"] for series in data] == [str(n) for n in range(count)]


labels = st.dictionaries(st.text(max_size=8) | st.just("__source__"), st.text(max_size=8))


@given(labels=labels, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_a_series_of_a_source_has_its_labels_and_the_name_once(
    labels: dict[str, str], ascii_only: bool, indent: int | None
) -> None:
    metric = json.dumps(labels, ensure_ascii=ascii_only, indent=indent).encode()
    series = list(of_source([EncodedSeries(metric, SAMPLES)], "gpu"))
    document = ScoringRequestBody(series, b'{"cluster":"c"}', b'{"model":"m"}')
    body = b"".join(document)
    assert len(document) == len(body)
    read = json.loads(body)
    assert read["data"][0]["metric"] == {**labels, "__source__": "gpu"}
    assert read["context"] == {"cluster": "c"}
    assert read["params"] == {"model": "m"}
    assert json.loads(series[0].labels) == read["data"][0]["metric"]
    assert body.count(b'"__source__"') == 1


def test_a_label_that_is_written_in_escapes_is_replaced_too() -> None:
    hidden = EncodedSeries(b'{"\\u005f_source__":"cost","a":"b"}', SAMPLES)
    (series,) = of_source([hidden], "gpu")
    assert series.labels == b'{"a":"b","__source__":"gpu"}'
    assert (series.source, hidden.source) == ("gpu", "")
