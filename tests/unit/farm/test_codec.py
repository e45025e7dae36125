"""Records survive JSON, and wrong documents are refused with their place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.analysis import Analysis, ArrayArg, ConstantArg, Launch, Row, RowStatus, ScalarArg
from farm.codec import CodecError, decode, encode

names = st.text(min_size=1, max_size=8)
args = st.one_of(
    st.builds(
        ArrayArg,
        name=names,
        dtype=st.just("f16"),
        shape=st.tuples(st.integers(0, 9)),
        strides=st.tuples(st.integers(0, 9)),
        address=st.integers(0, 2**63),
    ),
    st.builds(ScalarArg, name=names, dtype=st.just("f32"), value=st.floats(allow_nan=False)),
    st.builds(ConstantArg, name=names, value=st.one_of(st.none(), st.booleans(), st.integers(), st.text())),
)
launches = st.builds(
    Launch, kernel=names, signature=names, grid=st.just((1, 2, 3)), args=st.lists(args).map(tuple)
)
rows = st.builds(
    Row,
    key=names,
    node=names,
    status=st.sampled_from(RowStatus),
    reason=st.one_of(st.none(), names),
    launches=st.lists(launches, max_size=2).map(tuple),
)


@given(rows)
def test_a_row_survives_json(row):
    again = decode(Row, json.loads(json.dumps(encode(row))))
    assert again == row
    assert [type(a) for launch in again.launches for a in launch.args] == [
        type(a) for launch in row.launches for a in launch.args
    ]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"status": "odd"}, "$.status"),
        ({"extra": 1}, "unknown field 'extra'"),
        ({"launches": [{"kernel": "k"}]}, "$.launches[0]"),
        ({"key": 3}, "$.key"),
    ],
)
def test_a_wrong_document_names_the_place(change, place):
    good = {"key": "k", "node": "n", "status": "traced", "reason": None, "launches": []}
    with pytest.raises(CodecError) as caught:
        decode(Row, good | change)
    assert place in str(caught.value)


def test_a_missing_field_is_named():
    with pytest.raises(CodecError, match="'op' of Analysis is missing"):
        decode(Analysis, {})
