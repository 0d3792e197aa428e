"""Each mechanism's law: what it is as data, how laws are ordered, and what is refused."""

import math
from itertools import combinations_with_replacement, pairwise, permutations

import numpy as np
import pytest
from scipy import stats
from tests.tiers import one_in, tiered

from dovetail.account.amplify import amplify
from dovetail.account.attack_lower_bound import ERROR, MixedAttack, attack_lower, mixed_laws
from dovetail.account.binary import FAR, BinaryExact, MixtureCover, most_exact
from dovetail.account.clones import LEAST, ClonePair
from dovetail.account.finite_channel import MOST_PAIRS, FiniteChannelLaw
from dovetail.account.mechanism_law import declared_laws, law_bounds, mechanism_attack, mechanism_law
from dovetail.account.mechanisms.hadamard import hadamard_law
from dovetail.account.mechanisms.krr import krr_law, krr_third_law
from dovetail.account.mechanisms.laplace import grid_laplace_dataset, grid_laplace_law
from dovetail.account.mechanisms.local_hashing import hashing_law
from dovetail.account.mechanisms.unary import unary_law
from dovetail.account.privacy_blanket import BlanketLaw, ShuffledLaw
from dovetail.core import stages as registries
from dovetail.core.channel import Channel, DenseChannel, HadamardChannel, KRRChannel
from dovetail.core.checks import MOST_PEOPLE
from dovetail.core.errors import DataError, ParameterError
from dovetail.core.special import Reals
from dovetail.core.stages import NumericRandomizer, Randomizer
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary

RANDOMIZERS = [
    one
    for kind in (*registries.RANDOMIZERS,)
    if not any(one.required for one in kind.settings())
    for one in kind.examples()
    if one.guarantee.epsilon <= 4
]
LIARS = [KRRChannel(4, 1, 3), HadamardChannel(3, 1, 4, 1, 2), HadamardChannel(4, 2, 4, 1, 3)]
MECHANISMS: list[Randomizer | Channel] = [*RANDOMIZERS, *LIARS, DenseChannel([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])]


def local(mechanism: Randomizer | Channel) -> float:
    return mechanism.guarantee.epsilon if isinstance(mechanism, Randomizer) else mechanism.epsilon


def laws(mechanism: Randomizer | Channel) -> tuple[BlanketLaw, ...]:
    law = mechanism_law(mechanism, n=5)[1]
    if isinstance(law, FiniteChannelLaw):
        return tuple(pair.law for pair in law.pairs)
    return (law.law,) if isinstance(law, ShuffledLaw) else ()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_law_is_as_private_as_its_mechanism(mechanism: Randomizer | Channel) -> None:
    for law in laws(mechanism):  # masses and means are checked when the law is made
        assert law.epsilon0 <= local(mechanism) * (1.0 + 1e-12)
    if laws(mechanism):
        assert max(law.epsilon0 for law in laws(mechanism)) == pytest.approx(local(mechanism), rel=1e-9)


@pytest.mark.parametrize("mechanism", one_in(4, MECHANISMS), ids=repr)
@pytest.mark.parametrize("n", [1, 300])
def test_the_attack_is_below_the_bound_and_the_bound_below_stronger_clones(
    mechanism: Randomizer | Channel, n: int
) -> None:
    attack = mechanism_attack(mechanism, n=n, delta=1e-5)
    [bound] = law_bounds(mechanism, n=n, delta=1e-5)
    clones = ClonePair(local(mechanism), n).epsilon(1e-5).upper
    assert 0.0 < attack <= clones * (1.0 + 1e-9)
    if bound.epsilon is not None:
        assert attack <= bound.epsilon <= clones * (1.0 + 1e-4)
        assert bound.lower is not None
        assert 0.0 < bound.lower <= bound.epsilon <= local(mechanism)


@pytest.mark.parametrize("k", [3, 10_000])
@pytest.mark.parametrize("epsilon0", [0.5, 4.0])
@pytest.mark.parametrize("n", [10_000, 10**6, 10**9])
def test_shuffled_k_ary_response_is_known_to_four_digits(k: int, epsilon0: float, n: int) -> None:
    [bound] = law_bounds(KRR(k, epsilon0), n=n, delta=1e-6)
    attack = mechanism_attack(KRR(k, epsilon0), n=n, delta=1e-6)
    assert bound.epsilon is not None and bound.lower is not None
    assert bound.epsilon <= 1.0001 * bound.lower
    assert bound.epsilon <= 1.0002 * attack


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("n", [50, 400])
def test_order_of_the_laws(n: int, epsilon: float) -> None:
    p, b = math.e, 1.0 / (math.e + 5.0)
    t = (1.0 - b - p * b) / (1.0 - 2.0 * b)
    channel = KRR(6, 1.0).channel()
    lumped = ShuffledLaw(BlanketLaw([p, 1.0, t], [1.0, p, t], [b, b, 1.0 - 2.0 * b]), n)
    rising = [
        lumped.delta(epsilon),
        ShuffledLaw(krr_third_law(channel), n).delta(epsilon),
        ShuffledLaw(krr_law(channel), n).delta(epsilon),
        ClonePair(1.0, n).delta(epsilon, resolution=1e-6),
        ClonePair(1.0, n, "clones").delta(epsilon, resolution=1e-6),
    ]
    assert all(below.lower < above.upper for below, above in pairwise(rising))
    assert rising[0].upper < rising[2].lower  # strictly, although lumping is sometimes called an upper bound


def test_two_blocks_of_hadamard_response_expose_more_than_one_with_the_same_masses() -> None:
    p = math.e
    b = 1.0 / (p + 3.0)
    same = BlanketLaw([p, p, 1.0, 1.0], [p, 1.0, p, 1.0], [0.5 * b] * 3 + [(4.0 - 1.5) * b])  # two blocks, one shared
    different = hadamard_law(HadamardChannel(4, 2, 4, 2718281828459045, 10**15))
    for epsilon in (0.1, 0.4, 0.8):
        assert ShuffledLaw(same, 20).delta(epsilon).upper < ShuffledLaw(different, 20).delta(epsilon).lower


def test_all_others_alike_is_not_always_the_worst_case_of_binary_response() -> None:
    ends = BinaryExact(math.log(3.0), 5).delta(math.log(1.25))
    assert ends.contains(81 / 512)
    assert ends.lower > 1.1 * 567 / 4096  # everybody else alike


@pytest.mark.parametrize("n", [1, 2, 17, 300])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 6.0])
def test_binary_response_lies_between_the_general_attack_and_stronger_clones(n: int, epsilon0: float) -> None:
    ends = BinaryExact(epsilon0, n).epsilon(1e-6)
    assert ends.upper <= ClonePair(epsilon0, n).epsilon(1e-6).upper * (1.0 + 1e-6)
    assert ends.gap < 1e-5
    assert BinaryExact(epsilon0, n).delta(ends.upper).upper <= 1e-6
    if n > 64:  # below, the general attack is this one
        assert ends.upper >= 0.7 * attack_lower(epsilon0, n, 1e-6)


def test_binary_response_says_nothing_for_large_collections_but_is_still_attacked() -> None:
    [bound] = law_bounds(KRR(2, 1.0), n=FAR * most_exact(1.0) + 1, delta=1e-6)
    assert bound.epsilon is None
    assert "among everybody" in bound.reason
    assert mechanism_attack(KRR(2, 1.0), n=10**6, delta=1e-6) > 0.002


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("epsilon0", "delta"), tiered([(0.05, 1e-6), (1.0, 1e-6), (8.0, 1e-2)], lambda case: case[0] == 8.0)
)
def test_more_people_never_raise_the_bound_of_binary_response(epsilon0: float, delta: float) -> None:
    most = most_exact(epsilon0)
    sizes = (most, most + 1, FAR * most, FAR * most + 1)
    bounds = [amplify(KRR(2, epsilon0), n=n, delta=delta).epsilon for n in sizes]
    assert all(more <= fewer * (1.0 + 1e-6) for fewer, more in pairwise(bounds))


def test_the_bound_of_binary_response_says_how_many_people_it_was_computed_for() -> None:
    most = most_exact(1.0)
    sources = {n: law_bounds(KRR(2, 1.0), n=n, delta=1e-6)[0].source for n in (most, FAR * most)}
    assert "of 2,543 people" in sources[FAR * most]
    assert "people" not in sources[most]


def test_finer_grids_lower_the_law_of_laplace() -> None:
    steps = [
        ShuffledLaw(grid_laplace_law(Laplace(0.0, 1.0, 2.0, grid=1 / m)), 500).delta(0.3) for m in (1, 3, 16, 200)
    ]
    assert all(one.lower > other.upper for one, other in pairwise(steps))


@pytest.mark.parametrize("beta", [0.05, 0.5])
def test_budget_aware_noise_is_as_private_as_its_noise_clamped_or_not(beta: float) -> None:
    device = BudgetLaplace(lower=3.9, upper=178.3, epsilon=1.0, beta=beta, rho=0.9, precision="published")
    assert law_bounds(device, n=50, delta=1e-6) == law_bounds(device.noise, n=50, delta=1e-6)
    assert mechanism_attack(device, n=50, delta=1e-6) == mechanism_attack(device.noise, n=50, delta=1e-6) > 0.0


@pytest.mark.parametrize("tilt", [1e-15, 1e-13, 1e-11, 1e-9])
def test_rows_that_hardly_differ_are_still_told_apart(tilt: float) -> None:
    rows = np.array([[0.5 + tilt, 0.5 - tilt], [0.5 - tilt, 0.5 + tilt]])
    [bound] = law_bounds(DenseChannel(rows), n=1, delta=1e-3 * tilt)
    assert bound.epsilon is not None
    assert np.maximum(rows[0] - math.exp(bound.epsilon) * rows[1], 0.0).sum() <= 1e-3 * tilt
    assert bound.epsilon > 0.0


def test_a_pair_of_rows_that_looks_like_another_is_judged_by_itself() -> None:
    rows = np.array([[0.3, 0.3, 0.4], [0.3, 0.3 - 1e-12, 0.4 + 1e-12], [0.3, 0.3 - 3e-12, 0.4 + 3e-12]])
    law = FiniteChannelLaw.of(rows, n=1)
    differences = [np.maximum(rows[one] - rows[two], 0.0).sum() for one in range(3) for two in range(3)]
    assert law.delta(0.0).upper >= max(differences)
    assert len(law.pairs) == 3


def test_permuted_rows_are_one_law() -> None:
    p = KRRChannel(60, 30, 1).matrix()
    assert len(FiniteChannelLaw.of(p, n=5).pairs) == 1
    circulant = np.array([np.roll([0.1, 0.2, 0.3, 0.4], turn) for turn in range(4)])
    assert len(FiniteChannelLaw.of(circulant, n=5).pairs) == 2  # by one turn or by two


@pytest.mark.exhaust
@pytest.mark.parametrize("m", [7, 40, 41])
def test_gathering_grid_points_raises_the_law_and_lowers_the_attack(m: int) -> None:
    laplace = Laplace(0.0, 1.0, 3.0, grid=1 / m)
    for epsilon in (0.2, 1.0):
        whole, coarse = (ShuffledLaw(grid_laplace_law(laplace, cells=c), 30).delta(epsilon) for c in (100, 2))
        assert coarse.upper >= whole.lower
        whole, coarse = (ShuffledLaw(grid_laplace_dataset(laplace, cells=c), 30).delta(epsilon) for c in (100, 2))
        assert coarse.lower <= whole.upper


def test_the_ends_of_the_grid_are_the_worst_pair_of_laplace() -> None:
    laplace = Laplace(0.0, 1.0, 1.5, grid=0.25)
    points, rate = np.arange(5), float(laplace.rate)
    away = np.abs(points[:, None] - points)
    rows = np.tanh(0.5 * rate) * np.exp(-rate * away)
    rows[:, [0, -1]] = np.exp(-rate * away[:, [0, -1]]) / (1.0 + np.exp(-rate))
    own, every = ShuffledLaw(grid_laplace_law(laplace), 25), FiniteChannelLaw.of(rows, n=25)
    for epsilon in (0.05, 0.3, 1.0):
        assert own.delta(epsilon).upper == pytest.approx(every.delta(epsilon).upper, rel=1e-6)


def test_values_that_are_rounded_at_random_expose_no_more_than_grid_points() -> None:
    """Three people on two steps, every collection with values at half steps, by all multisets of clamped reports."""
    laplace, n = Laplace(0.0, 2.0, 1.5, grid=1.0), 3
    values, reports = np.arange(0.0, 2.1, 0.5), np.arange(-60, 63)
    laws = [np.exp(laplace.log_density(reports, value)) for value in values]
    rows = [np.bincount(np.clip(reports, 0, 2), law) for law in laws]
    sorted_ = np.sort(np.stack(np.unravel_index(np.arange(27), (3, 3, 3))), axis=0)
    kinds = np.ravel_multi_index(tuple(sorted_), (3, 3, 3))

    def shuffled(*people: int) -> Reals:
        a, b, c = (rows[i] for i in people)
        return np.bincount(kinds, np.einsum("i,j,k->ijk", a, b, c).ravel(), minlength=27)

    own = ShuffledLaw(grid_laplace_law(laplace), n)
    for epsilon in (0.1, 0.5, 1.0):
        found = {
            (x, y, *others): np.maximum(shuffled(x, *others) - math.exp(epsilon) * shuffled(y, *others), 0.0).sum()
            for x, y in permutations(range(5), 2)
            for others in combinations_with_replacement(range(5), n - 1)
        }
        on_grid = max(delta for people, delta in found.items() if not any(i % 2 for i in people))
        between = max(delta for people, delta in found.items() if all(i % 2 for i in people))
        assert between < 0.9 * on_grid and max(found.values()) == on_grid <= own.delta(epsilon).upper


def test_the_largest_grid_is_gathered_into_few_cells() -> None:
    law = grid_laplace_law(Laplace(0.0, 1.0, 1.0, grid=2.0**-31))
    assert law.z0.size < 1200
    assert law.remainder == pytest.approx(1.0 - math.exp(-0.5), abs=1e-8)


def test_own_laws_agree_with_the_matrix_of_the_channel() -> None:
    pairs: list[tuple[BlanketLaw, Channel]] = [
        (krr_law(KRR(4, 1.0).channel()), DenseChannel(KRR(4, 1.0).channel().matrix())),
        (unary_law(Unary(2, 1.0)), Unary(2, 1.0).channel()),
        (hadamard_law(HadamardChannel(2, 2, 4, 3, 1)), DenseChannel(HadamardChannel(2, 2, 4, 3, 1).matrix())),
    ]
    for law, channel in pairs:
        dense = FiniteChannelLaw.of(channel.matrix(), n=10).delta(0.2)
        assert ShuffledLaw(law, 10).delta(0.2).upper >= dense.lower * (1.0 - 1e-9)


def test_a_broken_law_of_local_hashing_would_be_seen() -> None:
    randomizer = LocalHashing(5, 1.0)
    every = ShuffledLaw(krr_law(randomizer.hash_channel()), 50).delta(0.2)  # no collisions
    assert ShuffledLaw(hashing_law(randomizer), 50).delta(0.2).upper < every.lower


def test_a_zero_that_another_row_fills_is_named() -> None:
    with pytest.raises(DataError, match=r"entry \(1, 2\) is 0 where row 0 has 0\.2"):
        law_bounds(DenseChannel([[0.5, 0.3, 0.2], [0.4, 0.6, 0.0]]), n=10, delta=1e-6)
    unused = DenseChannel([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0]])
    assert law_bounds(unused, n=10, delta=1e-6)[0].epsilon is not None


def test_too_many_pairs_give_a_reason_and_not_a_long_wait() -> None:
    rng = np.random.default_rng(5)
    size = math.isqrt(2 * MOST_PAIRS) + 2
    for inputs in (size, 40):
        rows = 1.0 + rng.random((inputs, 30))
        [bound] = law_bounds(DenseChannel(rows / rows.sum(axis=1, keepdims=True)), n=100, delta=1e-6)
        assert bound.epsilon is None
        assert "stronger clones" in bound.reason


def test_a_randomizer_without_a_law_is_neither_bounded_nor_attacked() -> None:
    class Unknown(Laplace.__mro__[1]):  # type: ignore[misc,name-defined]
        name = "unknown"
        guarantee = decode = log_density = noise_variance = rounding = _randomize = examples = None
        disagreement = str  # nothing to compare

    assert issubclass(Unknown, NumericRandomizer)
    assert law_bounds(Unknown(), n=10, delta=1e-6)[0].epsilon is None
    assert mechanism_attack(Unknown(), n=10, delta=1e-6) == 0.0


@pytest.mark.parametrize("mechanism", [Laplace(0.0, 1.0, 300.0), KRRChannel(3, 10**60, 1)], ids=repr)
def test_ratios_that_leave_the_range_of_doubles_are_not_summed(mechanism: Randomizer) -> None:
    assert "stronger clones" in law_bounds(mechanism, n=10, delta=1e-6)[0].reason
    assert mechanism_attack(mechanism, n=10, delta=1e-6) == 0.0


@pytest.mark.parametrize("epsilon0", one_in(3, [25.0, 36.0, 44.0]))
@pytest.mark.parametrize(("k", "n"), [(3, 2), (5, 1000)])
def test_a_batch_too_small_to_hide_anybody_is_known_to_expose_everybody(epsilon0: float, k: int, n: int) -> None:
    [bound] = law_bounds(KRR(k, epsilon0), n=n, delta=1e-6)
    attack = mechanism_attack(KRR(k, epsilon0), n=n, delta=1e-6)
    assert bound.epsilon is not None and bound.lower is not None
    assert bound.epsilon <= 1.0001 * bound.lower
    assert bound.epsilon <= 1.03 * attack


@pytest.mark.parametrize("epsilon0", [LEAST, 1e-200, 1e-30, 300.0, 700.0])
@pytest.mark.parametrize("n", [1, 10, MOST_PEOPLE])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5])
def test_every_epsilon0_that_is_admitted_is_computed(epsilon0: float, n: int, delta: float) -> None:
    ends, attack = ClonePair(epsilon0, n).epsilon(delta), attack_lower(epsilon0, n, delta)
    assert 0.0 <= attack <= epsilon0
    assert 0.0 <= ends.lower <= ends.upper <= epsilon0
    assert attack <= ends.upper * (1.0 + 1e-9)


@pytest.mark.exhaust
@pytest.mark.parametrize("mechanism", [KRR(10, 20.0), KRR(10, 0.001), KRR(5, 1.0), Laplace(0.0, 1.0, 60.0)], ids=repr)
@pytest.mark.parametrize(
    ("n", "delta"), one_in(4, [(1, 1e-6), (10**6, 1e-18), (10**6, 1e-100), (10**4, 0.0), (50, 0.5)])
)
def test_extreme_questions_have_an_answer(mechanism: Randomizer, n: int, delta: float) -> None:
    [bound] = law_bounds(mechanism, n=n, delta=delta)
    attack = mechanism_attack(mechanism, n=n, delta=delta)
    assert bound.epsilon is not None
    assert attack <= bound.epsilon <= local(mechanism)
    assert bound.epsilon <= ClonePair(local(mechanism), n).epsilon(delta).upper * (1.0 + 1e-3)


@pytest.mark.parametrize("bad", [True, float("nan"), "x", -0.1, 1.0, np.float64("inf")])
def test_delta_outside_its_range_is_refused(bad: object) -> None:
    for mechanism in (KRR(2, 1.0), KRR(4, 1.0), DenseChannel([[0.6, 0.4], [0.4, 0.6]])):
        with pytest.raises(ParameterError, match="`delta`"):
            law_bounds(mechanism, n=10, delta=bad)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="`delta`"):
            mechanism_attack(mechanism, n=10, delta=bad)  # type: ignore[arg-type]


def test_every_mechanism_with_a_law_has_a_dataset_too() -> None:
    assert {type(one) for one in RANDOMIZERS} <= {*declared_laws(), KRR, Hadamard}


@pytest.mark.parametrize(
    ("epsilon0", "n"), [(0.2, 1), (1.0, 2), (0.5, 3), (3.0, 40), (1.0, 150), (0.1, 150), (8.0, 120)]
)
def test_intervals_of_mixtures_give_the_maximum_over_all_of_them(epsilon0: float, n: int) -> None:
    every = MixedAttack(epsilon0, mixed_laws(epsilon0, n))
    for share in (0.0, 0.1, 0.3, 0.6, 0.9):  # in one order, and at the end again: laws are kept
        ends = BinaryExact(epsilon0, n).delta(share * epsilon0)
        low, high = every.delta(share * epsilon0), every.delta(share * epsilon0, error=ERROR)
        assert low * (1.0 - 1e-11) <= ends.upper <= high * (1.0 + 1.1e-5) + 1e-299
        assert ends.lower <= high * (1.0 + 1e-11)
    assert BinaryExact(epsilon0, n).delta(0.1 * epsilon0).lower >= every.delta(0.1 * epsilon0) * (1.0 - 1e-11)


@pytest.mark.parametrize(("epsilon0", "n"), [(0.3, 40), (1.0, 300), (4.0, 300), (9.0, 700)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_a_search_for_one_delta_ends_where_the_whole_law_does(epsilon0: float, n: int, delta: float) -> None:
    law = BinaryExact(epsilon0, n)
    ends = law.epsilon(delta)
    assert law.delta(ends.upper).lower <= delta * (1.0 + 1e-9)
    assert law.delta(ends.upper * (1.0 - 3e-6)).upper >= delta * (1.0 - 1e-9) or ends.upper >= epsilon0
    for share in (0.5, 0.9, 1.1):
        whole, near = law.delta(share * ends.upper), law.delta_near(share * ends.upper, delta)
        assert near.lower <= whole.upper
        assert whole.lower <= near.upper


@pytest.mark.parametrize(("epsilon0", "n"), [(4.0, 20_000), (8.0, 40_000), (12.0, 50_000_000), (15.0, 10**9)])
def test_no_mixture_of_many_people_exposes_more_than_their_maximum(epsilon0: float, n: int) -> None:
    lie = 1.0 / (math.exp(epsilon0) + 1.0)
    ends = BinaryExact(epsilon0, n).epsilon(1e-6)

    def lies(m: int) -> Reals:
        mean, far = m * lie, 12.0 * math.sqrt(m * lie) + 40.0
        return stats.binom.pmf(np.arange(max(0, int(mean - far)), min(m, int(mean + far)) + 1), m, lie)

    def reached(epsilon: float) -> float:
        gain, loss = 1.0 - lie - math.exp(epsilon) * lie, math.expm1(epsilon)
        ones = {round((n - 1) * part / 64) for part in range(65)}
        return max(_worst(np.convolve(lies(n - 1 - k), lies(k)[::-1]), gain, loss) for k in ones)

    assert reached(ends.upper) <= 1e-6 * (1.0 + 1e-9)
    assert reached(ends.lower) >= 0.98e-6  # among 65 of the mixtures


def test_intervals_of_mixtures_enclose_every_mixture_before_they_are_split() -> None:
    cover = MixtureCover(1.0, 60, 700.0)
    [(ends, laws, _)] = cover.parts
    assert sorted(k for a, b in ends.tolist() for k in range(a, b + 1)) == list(range(60))
    every = mixed_laws(1.0, 60)
    for e in (0.05, 0.3):
        gain, loss = (math.e - math.exp(e)) / (math.e + 1.0), math.expm1(e)
        for (a, b), law in zip(ends.tolist(), laws, strict=True):
            for k in range(a, b + 1):
                assert _worst(law, gain, loss) >= _worst(every[k], gain, loss) * (1.0 - 1e-11)


def _worst(law: Reals, gain: float, loss: float) -> float:
    return float((gain * law - loss * (law.sum() - np.cumsum(law))).max())
