"""How far sums of shares lie off, against the laws of small batches written out."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from dovetail.account.gaussian_dummies import message_for
from dovetail.core.errors import UnsupportedError
from dovetail.core.estimate import sum_reach
from dovetail.core.noise import Noise, People
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.digits import DigitNoise
from dovetail.noise.local import Local
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.sparse import SparseNoise
from dovetail.noise.users import UserNoise
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.sampling.dummies import Dummies, SparseDummies, UserDummies

N, HELD, TAILS = 12, 5, (0.2, 0.025, 0.001)
WEIGHTS, SIZES = np.array([[0.75, -0.25]]), np.array([[2.0, 1.0]])
ANYBODY = People(N, pl.DataFrame())
DUMMIES = Dummies(3, 2.0, 1e-2)
SPARSE = SparseDummies(3, 2.0)


def of_dummies(scale: float) -> Iterator[tuple[float, float]]:
    law = DUMMIES.noise.weights
    for drawn in product(range(len(law)), repeat=3):
        z = np.array(drawn) - DUMMIES.reach
        yield scale * (0.75 * (z[0] + z[1]) - 0.25 * z[2]), float(np.prod([law[one] / sum(law) for one in drawn]))


def of_reports() -> Iterator[tuple[float, float]]:
    channel = KRR(3, 1.5).channel()
    outside, inside = 2 * channel.s, 2 * channel.s + channel.contrast
    for far, near in product(range(N - HELD + 1), range(HELD + 1)):
        mass = binom.pmf(far, N - HELD, outside) * binom.pmf(near, HELD, inside)
        yield (far + near - (N - HELD) * outside - HELD * inside) / channel.contrast / N, float(mass)


def of_people() -> Iterator[tuple[float, float]]:
    rate = 0.5
    for two in range(N + 1):
        for one in range(N + 1 - two):
            mass = binom.pmf(two, N, 2 * rate / 3) * binom.pmf(one, N - two, (rate / 3) / (1 - 2 * rate / 3))
            yield (0.75 * (two - N * 2 * rate / 3) - 0.25 * (one - N * rate / 3)) / N, float(mass)


def of_kept() -> Iterator[tuple[float, float]]:
    """Reports kept by chance, and geometric dummies of three answers, two of which are in the first class."""
    kept, more = (float(one) for one in (SPARSE.kept, SPARSE.more))
    two = [(a + 1) * (1.0 - more) ** 2 * more**a for a in range(40)]  # of two answers together
    one = [(1.0 - more) * more**a for a in range(40)]
    for near, far, a, b in product(range(HELD + 1), range(N - HELD + 1), range(40), range(40)):
        mass = binom.pmf(near, HELD, kept) * binom.pmf(far, N - HELD, kept) * two[a] * one[b]
        first, others = near - HELD * kept + a - 2 * SPARSE.mean, far - (N - HELD) * kept + b - SPARSE.mean
        yield (0.75 * first - 0.25 * others) / kept / N, float(mass)


def of_both() -> Iterator[tuple[float, float]]:
    scale = 1.0 / KRR(3, 1.5).channel().contrast / N
    listed = list(of_reports())
    for x, mass in of_dummies(scale):
        yield from ((x + y, mass * more) for y, more in listed)


CASES: list[tuple[Noise, list[tuple[float, float]]]] = [
    (ShufflerNoise(DUMMIES, OpenAnswers(3)), list(of_dummies(1.0 / N))),
    (Local(KRR(3, 1.5)), list(of_reports())),
    (UserNoise(UserDummies(3, 0.5), OpenAnswers(3)), list(of_people())),
    (ShufflerNoise(DUMMIES, KRR(3, 1.5)), list(of_both())),
    (SparseNoise(SPARSE, OpenAnswers(3)), list(of_kept())),
]


@pytest.mark.parametrize(("noise", "law"), CASES, ids=["dummies", "krr", "people", "krr and dummies", "sparse"])
def test_errors_lie_within_their_reach_and_not_far_within(noise: Noise, law: list[tuple[float, float]]) -> None:
    places, masses = np.array(law).T
    assert masses.sum() == pytest.approx(1.0) and places @ masses == pytest.approx(0.0, abs=1e-9)
    sigma = np.sqrt(places**2 @ masses)
    said = float(noise.deviation(WEIGHTS, SIZES, ANYBODY)[0])
    assert sigma <= said * (1.0 + 1e-9)
    for tail in TAILS:
        below, above = (
            float(np.ravel(one)[0]) for one in noise.reach(WEIGHTS, SIZES, np.array([HELD]), ANYBODY, tail=tail)
        )
        for side, reach in ((-places, below), (places, above)):
            assert masses[side > reach].sum() <= tail
            near = reach - 0.11 * said  # twice what smoothing adds, and a step of the grid
            assert masses[side > near].sum() >= tail * 0.9 or near < 0.0


def test_sums_of_one_law_share_it() -> None:
    """Rows that are mirrored, or ordered otherwise, are worked out once and get the same."""
    noise = CASES[0][0]
    weights = np.array([[0.75, -0.25], [0.25, -0.75], [-0.25, 0.75], [0.5, -0.5]])
    sizes = np.array([[2.0, 1.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
    below, above = noise.reach(weights, sizes, np.array([0]), ANYBODY, tail=0.1)
    assert below[0] == below[1] == below[2] == above[0] and below[3] != below[0]
    for row in range(4):
        alone = noise.reach(weights[row : row + 1], sizes[row : row + 1], np.array([0]), ANYBODY, tail=0.1)
        assert alone[0][0] == below[row]


def test_the_characteristic_function_of_a_dummy_is_that_of_its_law() -> None:
    places, masses = DUMMIES.noise.error_law(1.0)
    angles = np.linspace(-9.0, 9.0, 41)
    np.testing.assert_allclose(
        DUMMIES.noise.characteristic(angles), np.cos(np.outer(angles, places)) @ masses, atol=1e-13
    )


def test_both_sides_of_a_skew_error_are_told() -> None:
    below, above = sum_reach(
        lambda t: np.exp(-1j * t) / (1 - 1j * t), np.ones(1), 0.025
    )  # exponential, less its mean
    assert 0.9746 <= below[0] < 0.9746 + 0.06 and 2.6888 <= above[0] < 2.6888 + 0.06


# Of people with different epsilons it is not known who of them answers with what: the reach holds whoever does.


@pytest.mark.parametrize("careful", [3, pytest.param(5, marks=pytest.mark.exhaust)])
@pytest.mark.parametrize("k", [2, pytest.param(5, marks=pytest.mark.exhaust)])
def test_counts_of_mixed_epsilons_lie_within_their_reach_whoever_answers_with_what(careful: int, k: int) -> None:
    """Every number of people of each class who answer with one of the first d answers, and every count of reports."""
    sizes, found = (careful, 7 - careful), []
    people = People(7, counted={"a": sizes[0], "b": sizes[1]})
    noise = EpsilonClasses(k, "class", {"a": 0.4}, 2.5)
    channels = [KRR(k, epsilon).channel() for epsilon in (0.4, 2.5)]
    truthful = sum(n * one.contrast for n, one in zip(sizes, channels, strict=True))
    for d, *held in product(range(1, k), *(range(n + 1) for n in sizes)):
        law, mean = np.ones(1), 0.0
        for n, own, one in zip(sizes, held, channels, strict=True):
            for people_there, chance in ((own, d * one.s + one.contrast), (n - own, d * one.s)):
                law = np.convolve(law, binom.pmf(np.arange(people_there + 1), people_there, chance))
                mean += people_there * chance
        share = sum(m * one.contrast for m, one in zip(held, channels, strict=True)) / truthful
        off = (np.arange(8) - mean) / truthful
        weights, kinds = np.array([[1.0 - d / k, -d / k]]), np.array([[float(d), k - float(d)]])
        assert off**2 @ law <= float(noise.deviation(weights, kinds, people)[0]) ** 2 * (1.0 + 1e-9)
        asked = np.clip([np.floor(7 * share + 1e-9), np.ceil(7 * share - 1e-9)], 0, 7).astype(np.int64)
        for tail in TAILS:
            below, above = (one[:, 0] for one in noise.reach(weights, kinds, asked, people, tail=tail))
            # a test of at least ceil(q n), or of at most ceil(q n) - 1 people, is of all shares that lead to it
            assert law[share + off < asked[1] / 7 - below[1] - 1e-9].sum() <= tail
            assert law[share + off > asked[0] / 7 + above[0] + 1e-9].sum() <= tail
            found.append(law[share + off < asked[1] / 7 - 0.5 * below[1]].sum() / tail)
    assert max(found) > 1.0  # half the reach is too short


def test_counts_of_a_sample_of_mixed_epsilons_lie_within_their_reach() -> None:
    """Every sample of four of seven people, whoever answers with the first answer, and every count of reports."""
    people = People(4, counted={"a": 3, "b": 4}, drawn=True)
    noise = EpsilonClasses(2, "class", {"a": 0.4}, 2.5)
    channels = [KRR(2, epsilon).channel() for epsilon in (0.4,) * 3 + (2.5,) * 4]
    weights, kinds, found = np.array([[0.5, -0.5]]), np.ones((1, 2)), []
    truthful = 4 / 7 * sum(one.contrast for one in channels)
    for own in product(range(4), range(5)):
        holds = [i < own[0] for i in range(3)] + [i < own[1] for i in range(4)]
        chances = [one.s + one.contrast * held for one, held in zip(channels, holds, strict=True)]
        law = np.zeros(5)
        for some in combinations(chances, 4):
            one = np.ones(1)
            for chance in some:
                one = np.convolve(one, [1.0 - chance, chance])
            law += one / 35
        share = sum(one.contrast for one, held in zip(channels, holds, strict=True) if held) * 4 / 7 / truthful
        off = (np.arange(5) - 4 / 7 * sum(chances)) / truthful
        assert off**2 @ law <= float(noise.deviation(weights, kinds, people)[0]) ** 2 * (1.0 + 1e-9)
        asked = np.clip([np.floor(4 * share + 1e-9), np.ceil(4 * share - 1e-9)], 0, 4).astype(np.int64)
        for tail in TAILS:
            below, above = (one[:, 0] for one in noise.reach(weights, kinds, asked, people, tail=tail))
            assert law[share + off < asked[1] / 4 - below[1] - 1e-9].sum() <= tail
            assert law[share + off > asked[0] / 4 + above[0] + 1e-9].sum() <= tail
            found.append(law[share + off < asked[1] / 4 - 0.5 * below[1]].sum() / tail)
    assert max(found) > 1.0  # half the reach is too short


def test_nothing_is_said_of_counts_where_reports_of_unknown_classes_are_missing() -> None:
    noise, people = EpsilonClasses(2, "class", {"a": 0.4}, 2.5), People(6, counted={"a": 3, "b": 4})
    with pytest.raises(UnsupportedError, match="1 of 7 reports are missing, and nobody knows of which class"):
        noise.reach(np.array([[0.5, -0.5]]), np.ones((1, 2)), np.array([1]), people, tail=0.1)


def test_a_binomial_law_has_the_longest_tails_of_all_with_its_mean() -> None:
    """Hoeffding's theorem, on which the reach stands, for sums of trials drawn at random."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        chances = rng.beta(*rng.uniform(0.2, 2.0, 2), rng.integers(2, 12))
        law = np.ones(1)
        for one in chances:
            law = np.convolve(law, [1.0 - one, one])
        n, mean = chances.size, float(chances.sum())
        for k in range(n + 1):
            if k <= mean - 1:
                assert law[: k + 1].sum() <= binom.cdf(k, n, mean / n) * (1.0 + 1e-9)
            if k >= mean + 1:
                assert law[k:].sum() <= binom.sf(k - 1, n, mean / n) * (1.0 + 1e-9)


def test_digits_of_a_number_say_that_they_count_no_answers() -> None:
    with pytest.raises(UnsupportedError, match="counts no answers"):
        DigitNoise(message_for(weights=(1,), epsilon=2.0, delta=1e-2), OpenNumbers(0.0, 1.0, 3)).reach(
            WEIGHTS, SIZES, np.array([1]), ANYBODY, tail=0.1
        )
