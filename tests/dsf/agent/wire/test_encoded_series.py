import json

from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.wire.encoded_series import PIECE_BYTES, EncodedSeries, ScoringRequestBody

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
