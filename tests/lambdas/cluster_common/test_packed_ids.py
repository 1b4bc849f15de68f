"""Ids of instances that an item of the state table holds packed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_common.packed_ids import pack, unpack

IDS = st.from_regex(r"i-([0-9a-f]{8}|[0-9a-f]{17})|[a-z=]{1,7}", fullmatch=True)


@given(st.lists(IDS))
def test_every_id_comes_back_in_its_place(ids: list[str]) -> None:
    assert unpack(pack(ids)) == tuple(ids)


@pytest.mark.parametrize("ids", [(), ("i-0123456789abcdef0",), ("i-0000000000000000f", "i-12345678")])
def test_ids_that_were_not_packed_are_read(ids: tuple[str, ...]) -> None:
    assert unpack(ids) == ids


def test_an_id_takes_less_than_twelve_bytes() -> None:
    ids = [f"i-{number * 0x1F3D5B79A:017x}" for number in range(20_000)]

    assert sum(map(len, pack(ids))) <= 11.25 * len(ids) + 5


@pytest.mark.parametrize("text", ["=ids:abc", '=ids:"', "=ids:00"])
def test_a_text_that_is_no_packed_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpack([text])
