"""Streaming releases the same law as shuffling at once, with little memory and without knowing the end."""

import math
import tracemalloc

import numpy as np
import pytest
from studies.mallows_shape.moments import inversion_variance, mean_inversions
from tests.shuffle.symmetric import everything, index, naive_inversions
from tests.statistics import FALSE_ALARM, expect_broken, expect_law, rng_of
from tests.tiers import tiered

from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.shuffle.sampling import mallows as module
from dovetail.shuffle.sampling.mallows import inversions, shuffle_out_of_core


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("n", "theta"), tiered([(4, 1.0), (4, 2.5), (5, 5.0), (5, 0.9)], first=lambda case: case == (4, 1.0))
)
def test_the_law_is_that_of_a_known_length(
    n: int, theta: float, rng: Entropy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With batches of one report (four for theta near 1) the end comes in every state."""
    monkeypatch.setattr(module, "_BATCH", 1)
    counts, draws = np.zeros(math.factorial(n), dtype=np.int64), 8000
    for _ in range(draws):
        released = np.concatenate(list(shuffle_out_of_core(iter(np.arange(n)[:, None]), theta, rng)))
        counts[index(released)] += 1
    weights = np.exp(-theta * np.array([naive_inversions(pi) for pi in everything(n)]))
    expect_law(counts, weights / weights.sum())
    wrong = weights[::-1] / weights.sum()
    expect_broken(counts, wrong)


@pytest.mark.parametrize("theta", [1e-4, 0.003, 0.5])
def test_long_streams_have_the_right_number_of_inversions(theta: float) -> None:
    n, rng = 300_000, rng_of(f"long streams {theta}")
    released = np.concatenate(list(shuffle_out_of_core(np.array_split(np.arange(n), 17), theta, rng)))
    assert (np.bincount(released, minlength=n) == 1).all()
    score = (inversions(released) - mean_inversions(n, theta)) / math.sqrt(inversion_variance(n, theta))
    assert abs(score) < 6.8  # normal to 1e-11 with slack for the third moment; false alarm below the stated one
    assert math.erfc(6.8 / math.sqrt(2)) / 2 < FALSE_ALARM


def test_memory_does_not_grow_with_the_stream() -> None:
    def batches():  # type: ignore[no-untyped-def]
        for start in range(0, 3_000_000, 50_000):
            yield np.arange(start, start + 50_000)

    sum(len(part) for part in shuffle_out_of_core([np.arange(200_000)], 0.01, simulation(2)))  # compile
    tracemalloc.start()
    total = sum(int(part.sum()) for part in shuffle_out_of_core(batches(), 0.01, simulation(1)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 3_000_000 * 2_999_999 // 2
    assert peak < 20e6  # the records alone are 24 MB


def test_reports_of_several_columns_stay_together() -> None:
    rows = np.arange(2000).reshape(1000, 2)
    released = np.concatenate(list(shuffle_out_of_core([rows[:10], rows[10:]], 0.3, simulation(1))))
    np.testing.assert_array_equal(released[:, 0] + 1, released[:, 1])
    assert released.shape == rows.shape and not (released == rows).all()


@pytest.mark.parametrize("sizes", [[], [0], [1], [0, 3, 0, 2]])
def test_short_streams_come_out_whole(sizes: list[int]) -> None:
    batches = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]) if sizes else []
    for theta in (0.5, math.inf):
        released = [value for part in shuffle_out_of_core(batches, theta, simulation(1)) for value in part.tolist()]
        assert sorted(released) == list(range(sum(sizes)))
        assert theta < math.inf or released == sorted(released)


@pytest.mark.parametrize("theta", [0.0, -1.0, math.nan, 2000.0, "1"])
def test_a_theta_that_cannot_stream_is_refused_before_anything_is_read(theta: float) -> None:
    with pytest.raises(ParameterError, match="`theta`"):
        shuffle_out_of_core([np.arange(3)], theta, simulation(1))


def test_a_single_value_is_no_batch() -> None:
    with pytest.raises(DataError, match="`batches`"):
        list(shuffle_out_of_core([np.int64(3)], 1.0, simulation(1)))
