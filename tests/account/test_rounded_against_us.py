"""Certified ends lie on their sides of the exact value: Arb sees a relative slip of a part in a billion.

The law of the number of clones is made by hand, so that what lies outside the window and where a block's mass lies is
known exactly; an end that forgets a cut or counts a block with its other end is on the wrong side.
"""

import math
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import flint
import numpy as np
import pytest

from dovetail.account.amplify import amplify
from dovetail.account.clones import ClonePair, TruncatedBinomial, weighted_positive_part, without_compiled_loops
from dovetail.account.compose import compose, composed_delta, local_guarantee
from dovetail.account.finite_channel import FiniteChannelLaw
from dovetail.account.privacy_loss import ComposedPLD
from dovetail.account.questions import JointReport
from dovetail.account.renyi import basic
from dovetail.account.rounds import ShuffledRound, local_total
from dovetail.core.certified import Bracket
from dovetail.randomize.krr import KRR

PAIR = ClonePair(2.0, 11)
EPSILONS = [0.0, 0.1, 0.7, 1.5, 1.9]


def positive_part(trials: int, epsilon: float, epsilon0: float) -> flint.arb:
    """E[(A/C - beta)_+] for A ~ Bin(C, 1/2), summed as it is written."""
    tanh = [(flint.arb(x) / 2).tanh() for x in (epsilon, epsilon0)]
    beta = flint.arb("0.5") + tanh[0] / (2 * tanh[1])
    gains = [flint.arb(flint.fmpq(a, trials)) - beta for a in range(trials + 1)]
    return sum((comb(trials, a) * gain for a, gain in enumerate(gains) if gain > 0), flint.arb(0)) / 2**trials


def delta(law: dict[int, float], epsilon: float, epsilon0: float) -> flint.arb:
    """The pair's exact delta where C' has this law."""
    scale = 2 * (flint.arb(epsilon0) / 2).tanh() * (1 + flint.arb(epsilon).exp())
    return scale * sum(
        (flint.arb(mass) * positive_part(c + 1, epsilon, epsilon0) for c, mass in law.items()), flint.arb(0)
    )


@pytest.fixture(autouse=True)
def precision() -> object:
    before, flint.ctx.prec = flint.ctx.prec, 300
    yield
    flint.ctx.prec = before


def window(edges: list[int], masses: list[float], *, left: float = 0.0, right: float = 0.0) -> TruncatedBinomial:
    return TruncatedBinomial(np.array(edges, dtype=float), np.array(masses), left, right, 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_single_counts_enclose_the_exact_delta_within_their_stated_error(epsilon: float) -> None:
    law = {c: comb(10, c) / 1024 for c in range(11)}
    blocks = window([*range(12)], list(law.values()))
    exact = delta(law, epsilon, 2.0)
    low, high = PAIR.lower(epsilon, blocks), PAIR.upper(epsilon, blocks)
    assert low < exact < high
    assert high < exact * (1 + flint.arb("3e-9")) and low > exact * (1 - flint.arb("3e-9"))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_cut_off_on_either_side_is_charged(epsilon: float) -> None:
    for law, blocks in (
        ({0: 0.5, 5: 0.5}, window([5, 6], [0.5], left=0.5)),  # half of the time nobody hides the victim
        ({5: 0.5, 9: 0.5}, window([5, 6], [0.5], right=0.5)),
    ):
        exact = delta(law, epsilon, 2.0)
        assert PAIR.lower(epsilon, blocks) < exact < PAIR.upper(epsilon, blocks)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_block_counts_with_the_end_that_is_worse_for_us(epsilon: float) -> None:
    blocks = window([4, 8], [1.0])
    first, last = delta({4: 1.0}, epsilon, 2.0), delta({7: 1.0}, epsilon, 2.0)
    assert last < first < PAIR.upper(epsilon, blocks), "all of the mass may lie at the first count"
    assert PAIR.lower(epsilon, blocks) < last, "or at the last one"


@pytest.mark.parametrize("trials", [1, 2, 3, 10, 101, 400])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.9])
def test_measured_errors_are_charged_to_the_end_that_they_could_hurt(trials: int, epsilon: float) -> None:
    exact = positive_part(trials, epsilon, 2.0)
    for loops in (nullcontext, without_compiled_loops):
        with loops():
            low, high = weighted_positive_part(np.array([float(trials)]), np.ones(1), epsilon, 2.0)
        assert low < exact < high and high < exact * (1 + flint.arb("1e-9"))


@pytest.mark.parametrize(("epsilon0", "n", "wanted"), [(1.0, 40, 1e-3), (3.0, 25, 1e-2), (0.3, 100, 1e-6)])
def test_the_quoted_epsilon_keeps_delta_in_exact_arithmetic_and_the_lower_end_does_not(
    epsilon0: float, n: int, wanted: float
) -> None:
    tiny = (-flint.arb(epsilon0)).exp()
    for kind, q in (("clones", tiny), ("stronger clones", 2 * tiny / (1 + tiny))):
        ends = ClonePair(epsilon0, n, kind).epsilon(wanted)  # type: ignore[arg-type]

        def exact(epsilon: float, q: flint.arb = q) -> flint.arb:
            scale = 2 * (flint.arb(epsilon0) / 2).tanh() * (1 + flint.arb(epsilon).exp())
            chances = (comb(n - 1, c) * q**c * (1 - q) ** (n - 1 - c) for c in range(n))
            return scale * sum(
                (chance * positive_part(c + 1, epsilon, epsilon0) for c, chance in enumerate(chances)), flint.arb(0)
            )

        assert 0.0 < ends.lower < ends.upper < epsilon0
        assert exact(ends.upper) <= wanted < exact(ends.lower)


@dataclass(frozen=True)
class FakePair:
    """A pair of rows whose ends are given."""

    at: Bracket  # of delta, whatever epsilon is
    ends: Bracket  # of epsilon

    def delta(self, epsilon: float) -> Bracket:
        return self.at

    def epsilon(self, delta: float) -> Bracket:
        return self.ends

    def tilted_bound(self, epsilon: float) -> float:
        return math.inf


def test_a_pair_of_rows_is_left_out_only_where_its_upper_end_keeps_delta() -> None:
    first = FakePair(Bracket(0.9e-6, 1e-6), Bracket(1.0, 1.2))
    doubtful = FakePair(Bracket(0.9e-6, 1.1e-6), Bracket(1.1, 1.3))  # perhaps above delta at 1.2: nobody knows
    harmless = FakePair(Bracket(0.8e-6, 1e-6), Bracket(5.0, 6.0))  # never asked
    law = FiniteChannelLaw((first, doubtful, harmless))  # type: ignore[arg-type]
    assert law.epsilon(1e-6) == Bracket(1.1, 1.3)
    assert law.delta(0.5) == Bracket(0.9e-6, 1.1e-6)


def test_what_lies_at_infinity_and_what_rounding_may_hide_is_charged_to_the_sum() -> None:
    """Losses 0 and 1 with masses 1/4 and 1/2, the rest at infinity; at epsilon 1/2 only the loss 1 counts."""
    total = ComposedPLD(0.0, 0.0, 0.0, 1.0, np.array([0.25, 0.5]), noise=0.01, infinity=0.25, error=0.1)
    weight = -math.expm1(-0.5)
    assert total.upper(0.5) == pytest.approx((0.5 * weight + 0.01 * weight) * 1.1 + 0.25, rel=1e-9)
    assert total.lower(0.5) == pytest.approx((0.5 * weight - 0.01 * weight) * 0.9, rel=1e-9)


@pytest.mark.exhaust
def test_beyond_the_sum_of_local_epsilons_rounds_fail_as_often_as_their_reports_together() -> None:
    rounds = [ShuffledRound(1.0, 100, times=3, delta0=2.0**-10), ShuffledRound(0.5, 100, times=2, delta0=2.0**-12)]
    together = 3 * 2.0**-10 + 2 * 2.0**-12
    assert composed_delta(rounds, epsilon=4.0) == Bracket(0.0, together)
    assert compose(rounds, delta=together).epsilon == 4.0
    assert compose(rounds, delta=together * (1 - 1e-9)).epsilon is None, "nothing is promised below what may fail"


@pytest.mark.exhaust
def test_simple_composition_gives_every_round_its_share_of_delta() -> None:
    rounds = [ShuffledRound(1.0, 1000, times=4), ShuffledRound(0.5, 2000)]
    found = compose(rounds, delta=1e-6)
    fifth, tenth = (
        [float(amplify(one.epsilon0, n=one.n, delta=share).epsilon or np.nan) for one in rounds]
        for share in (2e-7, 1e-7)
    )
    assert found.basic.epsilon == pytest.approx(4 * fifth[0] + fifth[1], rel=1e-9)
    mean = sum(times * e * math.tanh(e / 2) for times, e in zip((4, 1), tenth, strict=True))
    square = sum(times * e * e for times, e in zip((4, 1), tenth, strict=True))
    wanted = mean + math.sqrt(2 * math.log(2e6) * square)
    assert found.advanced.epsilon == pytest.approx(wanted, rel=1e-9)
    approximate = compose([ShuffledRound(1.0, 1000, delta0=1e-12)], delta=1e-6)
    assert approximate.renyi.epsilon is None, "Renyi divergences are those of pure pairs"


def test_promises_that_add_are_never_below_their_exact_sum() -> None:
    """The nearest double is below it for half of all sums: 20 of each kind."""
    rng, below = np.random.default_rng(5), 0
    for _ in range(20):
        epsilons, times = rng.uniform(0.1, 2.0, 5).tolist(), int(rng.integers(3, 100))
        parts = [KRR(k=2, epsilon=epsilon) for epsilon in epsilons]
        exact = sum(map(Fraction, epsilons))
        below += Fraction(math.fsum(epsilons)) < exact
        assert exact <= Fraction(JointReport(tuple(parts)).epsilon) <= exact * (1 + Fraction(2) ** -52)
        for ask in ("all", "joint"):
            assert local_guarantee(parts, ask=ask).epsilon == JointReport(tuple(parts)).epsilon  # type: ignore[arg-type]
        rounds = [ShuffledRound(epsilon, 1, times=times, delta0=1e-9 * epsilon) for epsilon in epsilons]
        assert exact * times <= Fraction(local_total(rounds)[0]) <= exact * times * (1 + Fraction(2) ** -52)
        assert sum(Fraction(one.delta0) for one in rounds) * times <= Fraction(local_total(rounds)[1])
        alone = [ShuffledRound(epsilon, 1, times=times) for epsilon in epsilons]  # nobody hides anybody
        assert exact * times <= Fraction(basic(alone, 0.0).epsilon or 0)
    assert below > 4, "sums that a nearest double understates are among them"
