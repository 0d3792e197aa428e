"""Randomized response decides every word as its 64 bits say, including the words at a step."""

from typing import Any

import numpy as np
import pytest
from tests.randomize.chosen import FREQUENCY, Chosen
from tests.statistics import expect_broken, expect_law

from dovetail.core.channel import KRRChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.sampling import pure_protocol as response
from dovetail.randomize.sampling.coins import CHUNK
from dovetail.randomize.sampling.pure_protocol import UNSURE, decide, offsets, respond
from dovetail_protocol.exact_thresholds import WORD, krr_masses

CHANNELS = [r.channel() for r in FREQUENCY if isinstance(r, KRR)] + [
    r.hash_channel() for r in FREQUENCY if isinstance(r, LocalHashing)
]
LARGE = KRRChannel(4096, *krr_masses(4096, 5.0))
SURE = KRRChannel(3, *krr_masses(3, 700.0))  # lie = 1: a single word each


def offset_of(word: int, channel: KRRChannel) -> int:
    """The definition, in whole numbers without a size limit."""
    return 0 if word < channel.keep else 1 + (word - channel.keep) // channel.lie


def steps(channel: KRRChannel) -> list[int]:
    """The words at which the offset goes up, and their neighbours."""
    first = [channel.keep + j * channel.lie for j in range(min(channel.k - 1, 50))]
    return sorted({w for step in first for w in (step - 1, step, step + 1) if w < WORD} | {0, WORD - 1})


def table_is_right(table: np.ndarray, channel: KRRChannel) -> bool:
    """Every decided entry holds for both ends of its interval; every undecided interval holds a step."""
    for half, offset in enumerate(table.tolist()):
        low, high = offset_of(half << 48, channel), offset_of(((half + 1) << 48) - 1, channel)
        if offset != (low if low == high else UNSURE):
            return False
    return True


@pytest.mark.parametrize("channel", [*CHANNELS, LARGE, SURE], ids=repr)
def test_whole_words_are_decided_by_the_definition(channel: KRRChannel) -> None:
    words = steps(channel)
    zeros = np.zeros(len(words), dtype=np.int64)
    got = decide(zeros, np.array(words, dtype=np.uint64), channel)
    assert got.tolist() == [offset_of(word, channel) for word in words]


@pytest.mark.parametrize("channel", [*CHANNELS, LARGE, SURE], ids=repr)
def test_sixteen_bits_decide_only_what_they_determine(channel: KRRChannel) -> None:
    table = offsets(channel)
    assert table_is_right(table, channel)
    assert np.count_nonzero(table == UNSURE) <= channel.k - 1
    assert not table_is_right(np.roll(table, 1), channel)


@pytest.mark.parametrize("channel", [*CHANNELS, LARGE, SURE], ids=repr)
def test_a_step_inside_sixteen_bits_is_settled_by_the_other_bits(channel: KRRChannel) -> None:
    for word in steps(channel):
        half, tail = word >> 48, word & ((1 << 48) - 1)
        rng = Chosen([half, tail << 16 | 0xFFFF])  # the lowest bits of the second word are not used
        last = channel.k - 1
        report = respond(np.array([last]), channel, rng)[0]
        assert report == (last + offset_of(word, channel)) % channel.k
        assert bool(rng.left) == (offsets(channel)[half] != UNSURE)


@pytest.mark.exhaust
def test_large_domains_use_whole_words_with_the_same_law(rng: Entropy) -> None:
    channel = KRRChannel(5000, *krr_masses(5000, 8.0))
    reports = respond(np.full(200_000, 4999), channel, rng)
    bins = np.bincount((reports - 4999) % 5000 * 10 // 4999 + (reports != 4999), minlength=11)
    offset = np.arange(5000)
    law = np.bincount(offset * 10 // 4999 + (offset > 0), weights=channel.output_law(np.eye(5000)[0]), minlength=12)
    expect_law(np.pad(bins, (0, 12 - bins.size)), law)
    words = steps(channel)
    got = respond(np.zeros(len(words), dtype=np.int64), channel, Chosen(words))
    assert got.tolist() == [offset_of(word, channel) for word in words]
    with pytest.raises(DataError, match="1 of 3 are not, 1: 5000"):
        respond(np.array([0, 5000, 1]), channel, rng)


def test_a_batch_longer_than_a_chunk_keeps_order_and_places_of_offenders(rng: Entropy) -> None:
    values = np.arange(2 * CHUNK + 5) % 16
    kept = respond(values, KRR(k=16, epsilon=40.0).channel(), rng)
    np.testing.assert_array_equal(kept, values)
    values[[CHUNK + 1, CHUNK + 2, CHUNK + 3, 2 * CHUNK]] = 16, -1, 99, 17
    with pytest.raises(DataError, match=f"4 of 262,149 are not, {CHUNK + 1}: 16, {CHUNK + 2}: -1, .*: 99, ...$"):
        respond(values, KRR(k=16, epsilon=40.0).channel(), rng)


def test_an_epsilon_off_by_a_tenth_is_caught(rng: Entropy) -> None:
    right, wrong = KRR(k=5, epsilon=3.0), KRR(k=5, epsilon=3.3)
    counts = np.bincount(wrong.randomize(np.full(100_000, 1), rng), minlength=5)
    expect_broken(counts, right.channel().matrix()[1])


def test_a_lie_that_may_be_the_truth_is_caught(rng: Entropy, monkeypatch: pytest.MonkeyPatch) -> None:
    table = offsets(KRR(k=5, epsilon=3.0).channel())
    monkeypatch.setattr(response, "offsets", lambda channel: np.where(table > 0, table - 1, table))
    counts = np.bincount(KRR(k=5, epsilon=3.0).randomize(np.full(100_000, 1), rng), minlength=5)
    expect_broken(counts, KRR(k=5, epsilon=3.0).channel().matrix()[1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, np.float32])
def test_every_number_type_gives_the_same_reports(dtype: Any) -> None:
    from dovetail.core.entropy import simulation

    values = np.arange(1000) % 5
    expected = KRR(k=5, epsilon=1.0).randomize(values, simulation(3))
    np.testing.assert_array_equal(KRR(k=5, epsilon=1.0).randomize(values.astype(dtype), simulation(3)), expected)


def test_a_report_takes_as_many_bits_as_its_values_need() -> None:
    assert [KRR(k=k, epsilon=1.0).report_bits for k in (2, 3, 4, 5, 256, 257)] == [1, 2, 2, 3, 8, 9]
