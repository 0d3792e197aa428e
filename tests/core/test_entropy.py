"""Random words are independent and uniform, on the device and in a simulation; what is made from them is exact."""

import os
import pickle
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from tests.randomize.chosen import Chosen
from tests.statistics import expect_broken, expect_law

from dovetail.core.entropy import Entropy, simulation, system_entropy
from dovetail.core.errors import ParameterError

TOP = (1 << 64) - 1
SOURCES = [system_entropy(), simulation(5)]


@pytest.mark.parametrize("source", SOURCES, ids=repr)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_narrow_words_are_uniform(source: Entropy, dtype: type) -> None:
    words = source.narrow(200_001, dtype)
    assert words.dtype == dtype and words.size == 200_001
    bits = 8 * words.itemsize
    for shift in (0, bits - 8):
        expect_law(np.bincount(words >> shift & 0xFF, minlength=256), np.full(256, 1 / 256))


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_every_byte_of_a_word_is_uniform_and_neighbours_are_independent(source: Entropy) -> None:
    words = source.words(100_000)
    for byte in words.view(np.uint8).reshape(-1, 8).T:
        expect_law(np.bincount(byte, minlength=256), np.full(256, 1 / 256))
    top = (words >> np.uint64(60)).astype(np.int64)
    expect_law(np.bincount(top[:-1:2] * 16 + top[1::2], minlength=256), np.full(256, 1 / 256))
    expect_broken(np.bincount(top[::2] * 17, minlength=256), np.full(256, 1 / 256))  # every word twice


@pytest.mark.parametrize("count", [0, 1, 2, 3, 32767, 32768, 32769, 100_001])
def test_requests_of_every_size_are_filled_and_never_repeat(count: int) -> None:
    first, second = system_entropy().words(count), system_entropy().words(count)
    assert first.size == second.size == count
    assert np.unique(np.concatenate([first, second])).size == 2 * count  # a repeat has probability below 2^-28


def test_a_child_process_draws_other_words() -> None:
    source = system_entropy()
    source.words(1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, source.words(16).tobytes())
        os._exit(0)
    os.close(write)
    theirs = os.read(read, 128)
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert len(theirs) == 128
    assert not set(np.frombuffer(theirs, dtype=np.uint64)) & set(source.words(16))


def test_a_pickled_device_carries_no_state() -> None:
    source = pickle.loads(pickle.dumps(system_entropy()))
    assert source.provenance == "device" and not vars(source)


def test_simulations_repeat_and_say_so() -> None:
    np.testing.assert_array_equal(simulation(7).words(5), simulation(7).words(5))
    assert simulation(7).provenance == "simulation" and repr(simulation(7)) == "simulation(7)"
    assert not np.array_equal(simulation(7).words(5), simulation(8).words(5))
    for bad in (-1, 0.5, True):
        with pytest.raises(ParameterError, match="`seed`"):
            simulation(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 64, 100])
def test_below_is_uniform(bound: int, rng: Entropy) -> None:
    expect_law(np.bincount(rng.below(bound, 100_000), minlength=bound), np.full(bound, 1 / bound))


def test_below_stays_uniform_where_a_quarter_of_the_words_is_rejected(rng: Entropy) -> None:
    bound = 3 << 61
    drawn = rng.below(bound, 60_000) >> 61
    expect_law(np.bincount(drawn, minlength=3), np.full(3, 1 / 3))
    without = (rng.words(60_000) % np.uint64(bound)) >> np.uint64(61)  # nothing rejected
    expect_broken(np.bincount(without.astype(np.int64), minlength=3), np.full(3, 1 / 3))


def test_below_redraws_exactly_the_words_beyond_the_last_multiple() -> None:
    assert Chosen([TOP - 1]).below(3, 1).tolist() == [2]
    assert Chosen([TOP, 4, TOP, TOP, 8]).below(3, 2).tolist() == [2, 1]
    assert Chosen([TOP]).below(1 << 63, 1).tolist() == [(1 << 63) - 1]
    for bad in (0, -1, (1 << 63) + 1, 2.5):
        with pytest.raises(ParameterError, match="`bound`"):
            Chosen([1]).below(bad, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [2, 3, 4])
def test_permutations_are_uniform(n: int, rng: Entropy) -> None:
    seen = Counter(tuple(rng.permutation(n).tolist()) for _ in range(20_000))
    everything = list(permutations(range(n)))
    expect_law([seen[order] for order in everything], np.full(len(everything), 1 / len(everything)))


def test_permutations_skip_rejected_words_and_ask_again_when_they_run_out() -> None:
    spare = [0] * 70
    plain = Chosen([1, 0, *spare]).permutation(3)
    np.testing.assert_array_equal(Chosen([TOP, 1, 0, *spare]).permutation(3), plain)
    np.testing.assert_array_equal(Chosen([TOP] * 67 + [1, 0, *spare]).permutation(3), plain)
    assert plain.tolist() == [2, 0, 1]


@pytest.mark.parametrize("bad", [-1, 1.5, True])
def test_a_permutation_of_fewer_than_none_is_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="`n`"):
        system_entropy().permutation(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_permutations_hold_everybody_once(n: int) -> None:
    np.testing.assert_array_equal(np.sort(system_entropy().permutation(n)), np.arange(n))
