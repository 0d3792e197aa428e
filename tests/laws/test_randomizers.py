"""Every randomizer has its published law, keeps its guarantee and inverts without bias."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.randomize.chosen import FREQUENCY, KINDS, TABULATED, one_by_one
from tests.statistics import LONG, SHORT, expect_broken, expect_caught, expect_law, expect_mean, expect_standard_error

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.stages import RANDOMIZERS
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail_protocol.exact_thresholds import exp_bracket

DRAWS = 100_000
HASHING = list(LocalHashing.examples())
LAPLACE = list(Laplace.examples())
EXTREMES = [1e-6, 0.1, 1.0, 10.5, 44.0, 100.0, 700.0]


@pytest.mark.parametrize("randomizer", TABULATED, ids=repr)
def test_reports_have_the_law_of_the_channel(randomizer: Any, rng: Entropy) -> None:
    law = randomizer.channel().matrix()
    for x in {0, 1, randomizer.k - 1}:
        reports = randomizer.randomize(np.full(DRAWS, x), rng)
        counts = np.bincount(randomizer.columns(reports), minlength=law.shape[1])
        expect_law(counts, law[x])
        expect_broken(counts, law[x - 1])  # what is sent for another value


@pytest.mark.parametrize("randomizer", HASHING, ids=repr)
def test_local_hashing_randomizes_the_hash_by_its_hash_channel(randomizer: LocalHashing, rng: Entropy) -> None:
    values = np.arange(DRAWS) % randomizer.k
    reports = randomizer.randomize(values, rng)
    offsets = (reports[:, 2].astype(np.int64) - randomizer.hash(values, reports[:, :2])) % randomizer.g
    expect_law(np.bincount(offsets, minlength=randomizer.g), randomizer.hash_channel().matrix()[0])


@pytest.mark.parametrize("randomizer", HASHING, ids=repr)
def test_hashes_of_two_symbols_are_independent_and_uniform(randomizer: LocalHashing, rng: Entropy) -> None:
    seeds, g = rng.words(2 * DRAWS).reshape(-1, 2), randomizer.g
    first, last = (randomizer.hash(np.full(DRAWS, x), seeds) for x in (0, randomizer.k - 1))
    expect_law(np.bincount(first * g + last, minlength=g * g), np.full(g * g, 1.0 / g**2))


@pytest.mark.parametrize("randomizer", LAPLACE, ids=repr)
def test_numeric_reports_have_the_law_of_the_log_density(randomizer: Laplace, rng: Entropy) -> None:
    for value in (randomizer.lower, randomizer.lower + 0.7 * (randomizer.upper - randomizer.lower), randomizer.upper):
        centre = round((value - randomizer.lower) / randomizer.step)
        cells = centre + np.arange(-12, 13)
        law = np.exp(randomizer.log_density(cells, value))
        reports = randomizer.randomize(np.full(DRAWS, value), rng)
        seen = [np.count_nonzero(reports == cell) for cell in cells]
        below, above = np.count_nonzero(reports < cells[0]), np.count_nonzero(reports > cells[-1])
        beyond = np.arange(13, 3000)
        tails = [np.exp(randomizer.log_density(centre + sign * beyond, value)).sum() for sign in (-1, 1)]
        expect_law([below, *seen, above], [tails[0], *law, tails[1]])


@pytest.mark.parametrize("randomizer", LAPLACE, ids=repr)
def test_numeric_laws_sum_to_one_and_decode_without_bias(randomizer: Laplace) -> None:
    reports = np.arange(-3000, 3000)
    for point in np.arange(0.0, randomizer.steps + 0.5, 0.5):
        value = randomizer.lower + point * randomizer.step
        law = np.exp(randomizer.log_density(reports, value))
        around = randomizer.decode(reports) - value
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        assert law @ around == pytest.approx(0.0, abs=1e-9)
        rounding = randomizer.step**2 / 4 if point % 1 else 0.0  # half way between two grid points, the most
        assert law @ around**2 == pytest.approx(randomizer.geometric_variance + rounding, rel=1e-9)
    assert randomizer.noise_variance == randomizer.geometric_variance + randomizer.step**2 / 4


@pytest.mark.parametrize("randomizer", LAPLACE, ids=repr)
def test_numeric_guarantees_are_pure_and_exact(randomizer: Laplace) -> None:
    assert randomizer.rate * randomizer.steps == Fraction(randomizer.guarantee.epsilon)
    reports = np.arange(-50, 80)
    gap = randomizer.log_density(reports, randomizer.lower) - randomizer.log_density(reports, randomizer.upper)
    assert np.abs(gap).max() == pytest.approx(randomizer.guarantee.epsilon, rel=1e-12)


@pytest.mark.parametrize("randomizer", FREQUENCY, ids=repr)
def test_realized_probability_ratios_stay_below_e_to_the_epsilon(randomizer: Any) -> None:
    local = randomizer.guarantee
    assert local.delta == 0.0 and local.source
    assert randomizer.ratio <= exp_bracket(Fraction(local.epsilon), digits=100)[0]
    assert randomizer.slack == pytest.approx(local.epsilon - np.log(float(randomizer.ratio)), abs=1e-9)
    if type(randomizer).__module__.startswith("dovetail."):  # others may be safe but loose, and say so
        assert local.epsilon == randomizer.epsilon
        assert randomizer.ratio >= exp_bracket(Fraction(local.epsilon))[1] * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize("epsilon", EXTREMES)
@pytest.mark.parametrize("k", [2, 1000, 1 << 31])
@pytest.mark.parametrize("kind", KINDS)
def test_ratios_stay_below_e_to_the_epsilon_at_extremes(kind: Any, k: int, epsilon: float) -> None:
    too_fine = kind is KRR and k == 1 << 31 and epsilon < 1  # lies of 2^33 cannot be made unequal enough in 2^64
    if epsilon > kind.largest_epsilon or k > kind.largest_k or too_fine:
        with pytest.raises(ParameterError):
            kind(k=k, epsilon=epsilon)
        return
    realized = kind(k=k, epsilon=epsilon).ratio
    assert 1 < realized <= exp_bracket(Fraction(epsilon), digits=100)[0]


@pytest.mark.parametrize("randomizer", TABULATED, ids=repr)
def test_published_channels_keep_the_guarantee(randomizer: Any) -> None:
    law = randomizer.channel().matrix()
    assert np.log(law.max(axis=0) / law.min(axis=0)).max() <= randomizer.guarantee.epsilon + 1e-12
    assert randomizer.channel().epsilon <= randomizer.guarantee.epsilon + 1e-12


@pytest.mark.parametrize("randomizer", TABULATED, ids=repr)
def test_inversion_is_exactly_unbiased(randomizer: Any) -> None:
    law = randomizer.channel().matrix()
    expectation = law @ one_by_one(randomizer, randomizer.all_reports())
    np.testing.assert_allclose(expectation, np.eye(randomizer.k), atol=1e-10)


@pytest.mark.parametrize("randomizer", TABULATED, ids=repr)
def test_variance_equals_enumeration(randomizer: Any) -> None:
    law = randomizer.channel().matrix()
    single = one_by_one(randomizer, randomizer.all_reports())
    per_value = law @ single**2 - (law @ single) ** 2  # (k, k): people with fixed values
    corner = np.eye(randomizer.k)
    for shares in (*corner, corner.mean(axis=0), np.arange(randomizer.k) * 2.0 / (randomizer.k * (randomizer.k - 1))):
        np.testing.assert_allclose(randomizer.variance(shares), shares @ per_value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(randomizer.variance(corner), per_value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("randomizer", HASHING, ids=repr)
def test_local_hashing_is_unbiased_with_the_published_variance(randomizer: LocalHashing, rng: Entropy) -> None:
    values, trials = np.arange(40) % max(2, randomizer.k // 2), 1500
    shares = np.bincount(values, minlength=randomizer.k) / values.size
    reports = randomizer.randomize(np.tile(values, trials), rng).reshape(trials, values.size, 3)
    estimates = np.array([randomizer.invert(randomizer.tally(batch), values.size) for batch in reports])
    expect_mean(estimates, shares)
    stated = np.sqrt(randomizer.variance(shares) / values.size)
    expect_standard_error(estimates - shares, stated)
    expect_caught(expect_mean, estimates, shares + estimates.std(axis=0) / 2)
    for factor in (SHORT, LONG):
        expect_caught(expect_standard_error, estimates - shares, factor * stated)


@pytest.mark.parametrize("randomizer", FREQUENCY, ids=repr)
def test_tallies_ignore_order_and_add(randomizer: Any, rng: Entropy) -> None:
    reports = randomizer.randomize(np.arange(1000) % randomizer.k, rng)
    whole = randomizer.tally(reports)
    np.testing.assert_array_equal(whole, randomizer.tally(reports[rng.permutation(1000)]))
    np.testing.assert_array_equal(whole, randomizer.tally(reports[:321]) + randomizer.tally(reports[321:]))
    parts = np.stack([randomizer.tally(reports[:500]), randomizer.tally(reports[500:])])
    stacked = randomizer.invert(parts, np.array([500, 500]))
    np.testing.assert_allclose(stacked.mean(axis=0), randomizer.invert(whole, 1000), atol=1e-12)


@pytest.mark.parametrize("randomizer", FREQUENCY, ids=repr)
def test_values_of_any_whole_type_are_accepted_and_others_refused(randomizer: Any, rng: Entropy) -> None:
    k = randomizer.k
    for values in ([0, 1], np.array([0, 1], dtype=np.uint8), np.array([1.0, 0.0]), range(2)):
        assert len(randomizer.randomize(values, rng)) == 2
    assert len(randomizer.check_reports(randomizer.randomize([], rng))) == 0
    for bad in (
        [0, k],
        [-1],
        [0.5],
        [float("nan")],
        [[0, 1]],
        1,
        ["a"],
        [None],
        np.array([1 << 63], dtype=np.uint64),
    ):
        with pytest.raises(DataError, match="`values` must be"):
            randomizer.randomize(bad, rng)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), float("nan"), 1e-300, 1e300, True, "1"])
def test_budgets_outside_the_range_are_refused(kind: Any, epsilon: Any) -> None:
    with pytest.raises(ParameterError, match="`epsilon`"):
        kind(k=4, epsilon=epsilon)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 0, -3, 2.5, (1 << 31) + 1, True, "3"])
def test_domain_sizes_outside_the_range_are_refused(kind: Any, k: Any) -> None:
    with pytest.raises(ParameterError, match="`k` must be"):
        kind(k=k, epsilon=1.0)


@pytest.mark.parametrize("kind", list(RANDOMIZERS), ids=lambda kind: kind.name)
def test_examples_and_names_are_complete(kind: Any) -> None:
    assert len(kind.examples()) >= 3 and isinstance(kind.name, str)
    assert len(set(kind.examples())) == len(kind.examples())


@pytest.mark.parametrize("randomizer", FREQUENCY, ids=repr)
def test_reports_that_no_device_sends_are_refused(randomizer: Any) -> None:
    for bad in ([[-1]], [-1], [10**9], [[0, 1]], ["a"]):
        with pytest.raises(DataError, match="`reports` must be"):
            randomizer.check_reports(np.array(bad))


@pytest.mark.parametrize("randomizer", FREQUENCY, ids=repr)
def test_a_symbol_s_variance_depends_on_its_own_share_alone_where_that_is_said(randomizer: Any) -> None:
    shares = np.linspace(1.0, 2.0, randomizer.k) / randomizer.k / 1.5
    if randomizer.variance_by_symbol:
        np.testing.assert_array_equal(randomizer.variance(shares)[:2], randomizer.variance(shares[:2]))


@pytest.mark.parametrize("randomizer", FREQUENCY, ids=repr)
def test_a_few_symbols_show_the_largest_variance_where_everybody_holds_one(randomizer: Any) -> None:
    every = randomizer.variance(np.eye(1, randomizer.k)[0])
    predicted = predict_accuracy(randomizer, n=100).standard_error
    assert predicted == pytest.approx(np.sqrt(every.max() / 100), rel=1e-12)
