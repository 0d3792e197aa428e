"""Different epsilons behind one shuffle: the promise of each class, against every collection of a few people."""

from dataclasses import replace
from itertools import combinations, product
from math import comb, exp, floor, log, sqrt

import numpy as np
import pytest
from tests.statistics import expect_caught, expect_mean

from dovetail.account.amplify import amplify
from dovetail.account.mixture import Draws, MixtureLaw, amplify_mixture, worst_others
from dovetail.account.rounds import MixtureRounds
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.estimate.classes import estimate_mixture, estimate_mixture_counts
from dovetail.randomize.krr import KRR

HALF = [(50_000, 1.0), (50_000, 4.0)]


def histograms(rows: list[np.ndarray]) -> dict[tuple[int, ...], float]:
    """The law of the histogram of reports with these laws."""
    found = {(0,) * rows[0].size: 1.0}
    for row in rows:
        grown: dict[tuple[int, ...], float] = {}
        for key, mass in found.items():
            for report, more in enumerate(row):
                one = (*key[:report], key[report] + 1, *key[report + 1 :])
                grown[one] = grown.get(one, 0.0) + mass * float(more)
        found = grown
    return found


def one_line_delta(law: MixtureLaw, epsilon: float, *, tail: float) -> float:
    """A simpler upper bound: with probability `tail` the number of uniform reports is below Chernoff's."""
    factor, mean = exp(epsilon), law.mean
    low = max(0, floor(mean - sqrt(2.0 * mean * log(1.0 / tail))))
    [gain] = Draws.among(law.own.k, [low + 1]).gains(law.ratio, factor)
    return law.uniform * (tail * (law.ratio - factor) / law.own.k + float(gain))


@pytest.mark.parametrize(("k", "epsilons"), [(2, (1.0, 3.0, 0.5, 2.0)), (3, (2.0, 0.4, 4.0)), (4, (3.0, 1.0, 1.0))])
def test_no_collection_exceeds_the_promise_of_any_class_and_one_reaches_it(
    k: int, epsilons: tuple[float, ...]
) -> None:
    for victim in range(len(epsilons)):
        own = KRR(k, epsilons[victim])
        others = [KRR(k, e) for place, e in enumerate(epsilons) if place != victim]
        law = MixtureLaw(own, tuple((1, one) for one in others))
        for epsilon in (0.0, 0.3 * own.epsilon, 0.7 * own.epsilon, 0.95 * own.epsilon):
            bound, worst = law.delta(epsilon), 0.0
            for held in product(range(k), repeat=len(others)):
                laws = [one.channel().matrix()[x] for one, x in zip(others, held, strict=True)]
                p, q = (histograms([own.channel().matrix()[x], *laws]) for x in (0, 1))
                for one, two in ((p, q), (q, p)):
                    worst = max(worst, sum(max(0.0, m - exp(epsilon) * two[key]) for key, m in one.items()))
            assert worst <= bound
            assert law.delta_lower(epsilon) <= bound
            assert worst <= replace(law, least=1e-60).delta(epsilon) <= bound * (1.0 + 1e-9)
            assert bound <= one_line_delta(law, epsilon, tail=1e-3)
            assert worst > (0.5 if k == 2 else 0.2) * bound  # others that are truthful hide a little too


@pytest.mark.parametrize("k", [2, 3])
def test_the_bound_is_that_of_the_theorem_far_out_in_the_tails(k: int) -> None:
    own, few, many = KRR(k, 2.0), KRR(k, 0.5), KRR(k, 1.0)
    law, p = MixtureLaw(own, ((12, few), (16, many))), exp(2.0)  # as many numbers as there are blocks
    uniform = [law.uniform, *(k / (exp(one.epsilon) + k - 1) for one in (few, many))]

    def masses(n: int, q: float) -> list[float]:
        return [comb(n, x) * q**x * (1.0 - q) ** (n - x) for x in range(n + 1)]

    def h(m: int, factor: float) -> float:
        first = masses(m, 1.0 / k)
        return sum(
            first[b] * mass * max(0.0, (p - 1.0) * (a - factor * b) / m - (factor - 1.0))
            for b in range(m + 1)
            for a, mass in enumerate(masses(m - b, 1.0 / (k - 1)) if k > 2 else [0.0] * (m - b) + [1.0])
        )

    count = np.convolve(masses(12, uniform[1]), masses(16, uniform[2]))
    for epsilon in (0.5, 1.2, 1.9):
        exact = uniform[0] * sum(float(mass) * h(m + 1, exp(epsilon)) for m, mass in enumerate(count))
        assert law.delta_lower(epsilon) <= exact <= law.delta(epsilon) <= (1.0 + 1e-4) * exact
    assert exact < (1e-5 if k == 2 else 1e-8)


@pytest.mark.exhaust
def test_a_small_delta_is_promised_to_many_people_and_over_many_rounds() -> None:
    law = MixtureLaw(KRR(4, 4.0), ((10**5, KRR(4, 1.0)), (10**5, KRR(4, 4.0))))
    assert law.epsilon(1e-12) < 2.0 * law.epsilon(1e-6) < 0.1
    assert MixtureRounds(law, 50).epsilon(1e-10)[0] < 0.5


@pytest.mark.parametrize("delta", [1e-16, 1e-25, 1e-70])
def test_a_delta_below_what_is_usually_left_out_is_promised_no_less_exactly(delta: float) -> None:
    for part in amplify_mixture(4, [(20_000, 1.0), (30_000, 4.0)], delta=delta):
        assert part.epsilon <= 1.001 * part.numeric.lower < 0.5


@pytest.mark.exhaust
def test_equal_classes_are_one_mechanism() -> None:
    [alone] = amplify_mixture(4, [(100_000, 4.0)], delta=1e-6)
    split = amplify_mixture(4, [(40_000, 4.0), (60_000, 4.0)], delta=1e-6)
    one = amplify(KRR(4, 4.0), n=100_000, delta=1e-6).epsilon
    assert alone.numeric.lower <= one <= alone.epsilon <= 1.003 * one
    assert [part.epsilon for part in split] == pytest.approx([alone.epsilon] * 2, rel=1e-3)


@pytest.mark.exhaust
def test_mixed_promises_are_those_of_the_theory() -> None:
    careful, open_ = amplify_mixture(4, HALF, delta=1e-6)
    assert (careful.epsilon, open_.epsilon) == pytest.approx((0.0136, 0.0463), rel=5e-3)
    assert (careful.colluding, open_.colluding) == (1.0, 4.0)
    assert amplify(KRR(4, 4.0), n=50_000, delta=1e-6).epsilon > 3 * open_.epsilon
    law = MixtureLaw(KRR(4, 4.0), ((50_000, KRR(4, 1.0)), (49_999, KRR(4, 4.0))))
    assert one_line_delta(law, 0.0471, tail=1e-8) <= 1e-6 < one_line_delta(law, 0.0468, tail=1e-8)
    assert law.delta(0.0463) <= 1e-6


def exact_delta(k: int, epsilons: list[float], epsilon: float) -> float:
    """Of the first person among the others, for the worst values of everybody, in both directions."""
    own, worst = KRR(k, epsilons[0]), 0.0
    others = [KRR(k, each) for each in epsilons[1:]]
    for held in product(range(k), repeat=len(others)):
        laws = [one.channel().matrix()[x] for one, x in zip(others, held, strict=True)]
        p, q = (histograms([own.channel().matrix()[x], *laws]) for x in (0, 1))
        for one, two in ((p, q), (q, p)):
            worst = max(worst, sum(max(0.0, m - exp(epsilon) * two[key]) for key, m in one.items()))
    return worst


@pytest.mark.exhaust
@pytest.mark.parametrize("k", [2, 3])
def test_whoever_is_not_honest_no_class_loses_more_than_it_is_promised(k: int) -> None:
    epsilons, counts = [0.5, 1.5, 3.0], (2, 1, 2)
    everybody = [place for place, count in enumerate(counts) for _ in range(count)]
    for own, honest in product(range(3), (1, 2, 3, 4)):
        at_worst = worst_others(counts, epsilons, own=own, honest=honest)
        assert sum(at_worst) == honest - 1
        law = MixtureLaw(
            KRR(k, epsilons[own]), tuple((n, KRR(k, e)) for n, e in zip(at_worst, epsilons, strict=True))
        )
        rest = everybody.copy()
        rest.remove(own)
        for epsilon in (0.0, 0.6 * epsilons[own]):
            bound = law.delta(epsilon)
            found = [
                exact_delta(k, [epsilons[own], *(epsilons[c] for c in some)], epsilon)
                for some in set(combinations(rest, honest - 1))
            ]
            assert max(found) <= bound <= (2.0 if k == 2 else 5.0) * max(found)  # the worst choice is among them


@pytest.mark.exhaust
def test_a_number_of_honest_people_is_of_all_classes_at_worst() -> None:
    careful, open_ = amplify_mixture(4, [(40, 1.0), (40, 4.0)], delta=1e-2, honest=50)
    one = amplify_mixture(4, [(40, 1.0), (40, 4.0)], delta=1e-2, honest=[11, 40])[0]
    assert careful.honest >= one.honest and careful.honest_n == open_.honest_n == 50 and open_.n == 80
    alone = amplify_mixture(4, [(5, 1.0), (40, 4.0)], delta=1e-2, honest=40)[1]
    assert alone.honest == amplify_mixture(4, [(40, 4.0)], delta=1e-2)[0].honest  # nobody careful is counted on


def test_several_rounds_of_a_mixture_lose_no_more_than_one_person_can_in_each() -> None:
    k, epsilons, rounds, delta = 2, [2.0, 0.5, 2.0], 2, 0.05
    law = MixtureLaw(KRR(k, 2.0), ((1, KRR(k, 0.5)), (1, KRR(k, 2.0))))
    bound = MixtureRounds(law, rounds).epsilon(delta)[0]
    matrices = [KRR(k, e).channel().matrix() for e in epsilons]
    worst = 0.0
    for held in product(range(k), repeat=2):
        p, q = (
            histograms([matrices[0][x], *(m[y] for m, y in zip(matrices[1:], held, strict=True))]) for x in (0, 1)
        )
        for one, two in ((p, q), (q, p)):
            both = [(one[a] * one[b], two[a] * two[b]) for a, b in product(one, repeat=rounds)]
            worst = max(worst, sum(max(0.0, m - exp(bound) * n) for m, n in both))
    assert 0.2 * delta < worst <= delta
    single = MixtureRounds(law, 1).epsilon(delta)[0]
    assert single < bound < min(2 * law.epsilon(delta / 2), 4.0)


@pytest.mark.exhaust
def test_another_person_and_an_honest_one_lower_delta() -> None:
    def delta(*others: tuple[int, float]) -> float:
        return MixtureLaw(KRR(4, 3.0), tuple((n, KRR(4, e)) for n, e in others)).delta(0.5)

    assert delta((200, 1.0), (50, 3.0)) < delta((199, 1.0), (50, 3.0)) < delta((199, 1.1), (50, 3.0))
    few = amplify_mixture(4, [(200, 1.0), (200, 4.0)], delta=1e-3, honest=[50, 200])
    assert all(one.honest > one.all and one.honest_n == 250 for one in few)


@pytest.mark.exhaust
def test_the_weighted_shares_are_unbiased_and_the_error_is_an_upper_bound(rng: Entropy) -> None:
    classes = [(300, KRR(3, 1.5)), (200, KRR(3, 6.0))]
    held = [np.zeros(300, dtype=np.int64), 1 + np.arange(200) % 2]  # class and value are related
    gamma = [one.channel().contrast for _, one in classes]
    counts = np.array([np.bincount(values, minlength=3) for values in held])
    weighted = gamma @ counts / (300 * gamma[0] + 200 * gamma[1])
    found = [
        estimate_mixture(
            classes, np.concatenate([one.randomize(v, rng) for (_, one), v in zip(classes, held, strict=True)])
        )
        for _ in range(1000)
    ]
    values = np.array([one.value for one in found])
    expect_mean(values, weighted)
    plain = np.array([300, 100, 100]) / 500  # what these are not, where class and value are related
    expect_caught(expect_mean, values, plain)
    spread = np.std([one.value for one in found], axis=0)
    assert np.all(spread <= 1.06 * found[0].standard_error)
    assert np.all(found[0].standard_error <= 1.3 * spread)


def test_where_reports_are_missing_every_class_of_theirs_is_within_the_bias_bound() -> None:
    sizes, epsilons, counts = (6, 3, 5), (0.5, 1.5, 4.0), np.array([6, 3, 2])
    classes = [(size, KRR(3, e)) for size, e in zip(sizes, epsilons, strict=True)]
    found = estimate_mixture_counts(classes, counts)
    b = [one.channel().s for _, one in classes]
    off, errors = [], []
    for lost in product(*(range(size + 1) for size in sizes)):
        if sum(lost) == 3:
            kept = [size - some for size, some in zip(sizes, lost, strict=True)]
            uniform = sum(n * each for n, each in zip(kept, b, strict=True))
            off.append(np.abs((counts - uniform) / (11 - 3 * uniform) - found.value).max())
            left = [(n, one) for n, (_, one) in zip(kept, classes, strict=True)]
            errors.append(estimate_mixture_counts(left, counts).standard_error.max())
    assert max(off) == pytest.approx(found.bias_bound, rel=1e-12) and found.n == 11
    assert max(errors) <= 1.05 * found.standard_error.max()
    assert estimate_mixture_counts([(6, classes[0][1]), (5, classes[2][1])], counts).bias_bound == 0.0
    with pytest.raises(DataError, match="1 to 14 reports"):
        estimate_mixture_counts(classes, np.array([9, 9, 9]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mixture": [(1, 1.0)]}, "one person"),
        ({"mixture": []}, "`mixture` must be 1 to 100"),
        ({"mixture": [3]}, "`mixture` must be pairs"),
        ({"mixture": [(0, 1.0)]}, "`mixture` must be"),
        ({"mixture": [(10, 50.0)]}, "`epsilon0` must be at most 40"),
        ({"mixture": [(10, -1.0)]}, "`epsilon` must be"),
        ({"delta": 0.0}, "`delta` must be above 0"),
        ({"honest": [1]}, "`honest` must be one number, or one for each"),
        ({"honest": 0}, "`honest` must be"),
        ({"honest": 100_001}, "`honest` must be"),
        ({"honest": [60_000, 1]}, "`honest` must be"),
    ],
)
def test_bad_mixtures_are_refused_in_one_line(arguments: dict[str, object], message: str) -> None:
    with pytest.raises((ParameterError, UnsupportedError), match=message) as refused:
        amplify_mixture(4, **{"mixture": HALF, "delta": 1e-6, **arguments})  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)


def test_batches_of_other_people_are_refused() -> None:
    with pytest.raises(DataError, match="of all classes"):
        estimate_mixture([(3, KRR(2, 1.0))], np.array([0, 1]))
    with pytest.raises(ParameterError, match="of one k"):
        estimate_mixture([(1, KRR(2, 1.0)), (1, KRR(3, 1.0))], np.array([0, 1]))
