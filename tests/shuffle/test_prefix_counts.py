"""The vector instructions do to a row of prefix counts what the four plain lines in their docstring do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.shuffle.sampling import prefix_counts
from dovetail.shuffle.sampling.prefix_counts import LANES16, LANES32
from dovetail.shuffle.sampling.simd_prefix_counts import lower, take


def plain(row: list[int], rank: int) -> tuple[int, int, list[int]]:
    """Child, items before it, and the row after the item is taken out."""
    child = len(row) - 1 - sum(count > rank for count in row)
    return child, row[child], [count - (count > rank) for count in row]


def rows(lanes: int, most: int) -> st.SearchStrategy[list[int]]:
    """Prefix counts: 0, then never falling."""
    return st.lists(st.integers(0, most), min_size=lanes - 1, max_size=lanes - 1).map(lambda c: [0, *sorted(c)])


@given(row=rows(LANES16, 2**16 - 1), first=st.sampled_from([0, 1, 32]), data=st.data())
def test_taking_an_item_equals_the_plain_version(row: list[int], first: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, row[-1]) | st.sampled_from(row))
    counts = np.full(first + LANES16 + 3, 7, dtype=np.uint16)
    counts[first : first + LANES16] = row
    found = int(take(counts, first, rank))
    child, before, after = plain(row, rank)
    assert (found >> 16, found & 0xFFFF) == (child, before)
    assert counts[first : first + LANES16].tolist() == after
    assert (counts[:first] == 7).all() and (counts[first + LANES16 :] == 7).all()


@pytest.mark.exhaust
@given(row=rows(LANES32, 2**31), first=st.sampled_from([0, 1, 16]), data=st.data())
def test_lowering_a_row_equals_the_plain_version(row: list[int], first: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, row[-1]) | st.sampled_from(row))
    counts = np.full(first + LANES32 + 3, 7, dtype=np.uint32)
    counts[first : first + LANES32] = row
    child, _, after = plain(row, rank)
    assert lower(counts, first, rank) == LANES32 - 1 - child
    assert counts[first : first + LANES32].tolist() == after
    assert (counts[:first] == 7).all() and (counts[first + LANES32 :] == 7).all()


@pytest.mark.parametrize("rank", [0, 5, 65_535])
def test_a_row_of_equal_counts_is_left_alone_below_and_lowered_above(rank: int) -> None:
    counts = np.zeros(LANES16, dtype=np.uint16)
    assert int(take(counts, 0, rank)) >> 16 == LANES16 - 1 and not counts.any()


@given(row=rows(LANES16, 2**16 - 1), rank=st.integers(0, 2**16 - 1))
def test_where_there_is_no_compiler_numpy_takes_the_same_item(row: list[int], rank: int) -> None:
    compiled, numpy = (np.array([7, *row, 7], dtype=np.uint16) for _ in range(2))
    assert int(take(compiled, 1, rank)) == prefix_counts.take(numpy, 1, np.int64(rank))
    assert (compiled == numpy).all()


@given(row=rows(LANES32, 2**31), rank=st.integers(0, 2**31))
def test_where_there_is_no_compiler_numpy_lowers_the_same_counts(row: list[int], rank: int) -> None:
    compiled, numpy = (np.array([7, *row, 7], dtype=np.uint32) for _ in range(2))
    assert int(lower(compiled, 1, rank)) == prefix_counts.lower(numpy, 1, np.int64(rank))
    assert (compiled == numpy).all()
