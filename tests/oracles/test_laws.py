"""Mechanism laws against every collection: all values of all people, all histograms of reports."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.tiers import one_in

from dovetail.account.binary import BinaryExact
from dovetail.account.mechanism_law import declared_laws, mechanism_law
from dovetail.account.mechanisms.krr import krr_law, krr_third_law
from dovetail.account.privacy_blanket import BlanketLaw, ShuffledLaw
from dovetail.core.channel import Channel, DenseChannel, HadamardChannel, KRRChannel
from dovetail.core.stages import Randomizer
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.unary import Unary
from dovetail.randomize.window import Window
from dovetail_protocol.exact_thresholds import krr_masses

SHARES = np.array([-0.9, -0.5, -0.1, 0.0, 0.05, 0.1, 0.25, 0.4, 0.6, 0.8, 0.95])
EXACT = 1e-12  # relative error of an enumerated delta, and of e^epsilon

Rows = NDArray[np.float64]


class Enumerated:
    """The exact delta of every collection of n people who use a channel with few reports."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.others = lru_cache(maxsize=None)(self._others)

    def _others(self, values: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        """Law of the histogram of reports of people with these values."""
        if not values:
            return {(0,) * self.rows.shape[1]: 1.0}
        law: dict[tuple[int, ...], float] = {}
        for seen, chance in self.others(values[1:]).items():
            for report, more in enumerate(self.rows[values[0]]):
                key = (*seen[:report], seen[report] + 1, *seen[report + 1 :])
                law[key] = law.get(key, 0.0) + chance * more
        return law

    def delta(self, first: int, second: int, others: tuple[int, ...], epsilons: Rows) -> Rows:
        """Hockey-stick divergences (epsilons,) of two values of the victim."""
        one, two = (self.others((value, *others)) for value in (first, second))
        gap = np.array([list(one.values())]) - np.exp(epsilons)[:, None] * np.array([[two[key] for key in one]])
        return np.maximum(gap, 0.0).sum(axis=1)

    def collections(self, n: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        inputs = range(len(self.rows))
        for others in combinations_with_replacement(inputs, n - 1):
            yield from ((one, two, others) for one in inputs for two in inputs if one != two)

    def worst(self, n: int, epsilons: Rows) -> Rows:
        """The largest delta over all collections and both directions."""
        return np.max([self.delta(*case, epsilons) for case in self.collections(n)], axis=0)


def krr(k: int, epsilon: float) -> KRRChannel:
    return KRRChannel(k, *krr_masses(k, epsilon))


def random_rows(seed: int, *, corners: bool) -> Rows:
    """Three values, four reports, log ratios within 1.5 before the rows are scaled to sum 1."""
    rng = np.random.default_rng(seed)
    draw = rng.integers(0, 2, (3, 4)) if corners else rng.random((3, 4))
    rows = np.exp(1.5 * draw)
    return rows / rows.sum(axis=1, keepdims=True)


def clipped(laplace: Laplace) -> Rows:
    """The grid law with reports below 0 and above m counted at 0 and m, where ratios no longer change."""
    m, rate = laplace.steps, float(laplace.rate)
    away = np.abs(np.arange(m + 1)[:, None] - np.arange(m + 1))
    cells = np.tanh(0.5 * rate) * np.exp(-rate * away)
    cells[:, [0, -1]] = np.exp(-rate * away[:, [0, -1]]) / (1.0 + np.exp(-rate))
    return cells


def window_rows(window: Window) -> Rows:
    """The law of a report (values, outputs) of each grid point, and of one value between two of them."""
    points = [*np.linspace(window.lower, window.upper, window.steps + 1), window.lower + 0.3 * window.step]
    outputs = np.arange(window.outputs)
    return np.exp([window.log_density(outputs, np.full(outputs.size, point)) for point in points])


WINDOW = [
    Window(0.0, 1.0, 1.2, 2, grid=1 / 3),
    Window(0.0, 1.0, 2.5, 2, grid=0.25),
    Window(0.0, 1.0, 0.6, 2, grid=0.5),
]
HADAMARD = [HadamardChannel(3, 1, 4, 3, 1), HadamardChannel(4, 2, 4, 5, 2)]
LAPLACE = [Laplace(0.0, 1.0, 1.2, grid=1 / 3), Laplace(0.0, 1.0, 2.0, grid=0.25), Laplace(0.0, 1.0, 0.7, grid=0.5)]
CASES: list[tuple[Randomizer | Channel, Rows, int]] = [
    *((krr(k, e), krr(k, e).matrix(), n) for k, n in ((3, 7), (4, 5), (5, 4), (10, 3)) for e in (0.4, 2.0)),
    *((channel, channel.matrix(), 4) for channel in HADAMARD),
    *((laplace, clipped(laplace), 4) for laplace in LAPLACE),
    *((window, window_rows(window), 3) for window in WINDOW),
    *((unary, unary.channel().matrix(), 3) for unary in (Unary(3, 1.0), Unary(3, 2.0, "symmetric"))),
    *(
        (DenseChannel(rows), rows, 5)
        for rows in [random_rows(seed, corners=corners) for seed in range(3) for corners in (True, False)]
    ),
]


@pytest.mark.parametrize(
    ("mechanism", "rows", "most"),
    one_in(8, CASES),
    ids=lambda case: repr(case)[:50],
)
def test_no_collection_exceeds_the_law_of_its_mechanism(
    mechanism: Randomizer | Channel, rows: Rows, most: int
) -> None:
    enumerated = Enumerated(rows)
    epsilons = SHARES * DenseChannel(rows).epsilon
    for n in sorted({1, 2, most}):
        law = mechanism_law(mechanism, n=n)[1]
        uppers = np.array([law.delta(float(epsilon)).upper for epsilon in epsilons])
        assert np.all(uppers >= enumerated.worst(n, epsilons) * (1.0 - EXACT))


@pytest.mark.parametrize(
    ("mechanism", "rows", "most"),
    one_in(4, [case for case in CASES if type(case[0]) in declared_laws()]),
    ids=lambda case: repr(case)[:50],
)
def test_some_collection_exceeds_the_attack_on_its_mechanism(
    mechanism: Randomizer | Channel, rows: Rows, most: int
) -> None:
    dataset = declared_laws()[type(mechanism)].dataset(mechanism)
    epsilons = SHARES[3:] * DenseChannel(rows).epsilon
    lowers = np.array([ShuffledLaw(dataset, most).delta(float(epsilon)).lower for epsilon in epsilons])
    assert np.all(lowers <= Enumerated(rows).worst(most, epsilons) * (1.0 + EXACT))
    assert lowers[3] > 0.0


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_binary_response_is_the_maximum_over_all_values_of_the_others(epsilon0: float, n: int) -> None:
    epsilons = SHARES[3:] * epsilon0
    worst = Enumerated(krr(2, epsilon0).matrix()).worst(n, epsilons)
    brackets = [BinaryExact(krr(2, epsilon0).epsilon, n).delta(float(epsilon)) for epsilon in epsilons]
    assert [bracket.upper for bracket in brackets] == pytest.approx(worst, rel=1e-10, abs=1e-15)
    assert all(
        end.lower <= exact * (1.0 + EXACT) and exact * (1.0 - EXACT) <= end.upper
        for end, exact in zip(brackets, worst, strict=True)
    )


def test_all_others_on_the_third_symbol_have_the_published_delta() -> None:
    ends = ShuffledLaw(krr_third_law(krr(5, 1.0)), 7).delta(0.3)
    assert ends.contains(0.0425627819) or abs(ends.upper - 0.0425627819) < 5e-11
    exact = Enumerated(krr(5, 1.0).matrix()).delta(0, 1, (2,) * 6, np.array([0.3]))[0]
    assert ends.lower <= exact <= ends.upper
    assert exact == pytest.approx(0.0425627819, abs=5e-11)


def lumped(k: int, epsilon0: float) -> BlanketLaw:
    """Blanket and third symbols as one atom: the three-category formula."""
    p = np.exp(epsilon0)
    b = 1.0 / (p + k - 1.0)
    t = (1.0 - b - p * b) / (1.0 - 2.0 * b)
    return BlanketLaw([p, 1.0, t], [1.0, p, t], [b, b, 1.0 - 2.0 * b])


@pytest.mark.parametrize(
    ("k", "n", "epsilon", "missing"), [(4, 3, 0.5, 0.017), (5, 7, 0.3, 0.04)], ids=["k = 4", "k = 5"]
)
def test_a_formula_that_lumps_common_reports_is_caught_below_the_exact_delta(
    k: int, n: int, epsilon: float, missing: float
) -> None:
    rows = krr(k, 1.0).matrix()
    exact = Enumerated(rows).delta(0, 1, (2,) * (n - 1), np.array([epsilon]))[0]
    wrong = ShuffledLaw(lumped(k, 1.0), n).delta(epsilon).upper
    assert wrong == pytest.approx((1.0 - missing) * exact, rel=0.002)
    assert ShuffledLaw(krr_law(krr(k, 1.0)), n).delta(epsilon).upper >= exact
