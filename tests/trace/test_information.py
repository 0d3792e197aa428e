"""J is the information of the release about the secret, for any noise; what follows from it is exact."""

from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from studies.trace_robust.run import mu_of_loss
from tests.trace.priors import KERNELS, STEPS, covariance, flat_mean, generator

from dovetail.core.certified import Bracket
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import RBF, Floats, Kernel, Matern32, Matern52, with_nugget
from dovetail.trace.loss import (
    Adversary,
    Information,
    adversaries,
    adversary_kernels,
    condition,
    delta_of,
    diagonal_bound,
    epsilon_of,
    information,
    losses,
    mu_of,
    posterior_odds,
    posterior_width,
    renyi_loss,
    sightings,
    with_sighting,
    worst_move,
)
from dovetail.trace.mechanisms import robust
from dovetail.trace.noise import Zone, zone_loss
from dovetail.trace.posterior_loss import PastRelease, Posterior, composed

each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def by_hand(prior: Floats, noise: Floats, secret: list[int]) -> Floats:
    """Posterior precision of the secret less its prior precision, from the joint covariance of secret and release."""
    cross = prior[secret]
    posterior = prior[np.ix_(secret, secret)] - cross @ np.linalg.solve(prior + noise, cross.T)
    return np.asarray(np.linalg.inv(posterior) - np.linalg.inv(prior[np.ix_(secret, secret)]))


@pytest.mark.parametrize("secret", [[3], [0, 5], [2, 3, 6]], ids=str)
def test_j_is_what_bayes_rule_adds_to_the_prior_precision(secret: list[int]) -> None:
    rng = generator(f"bayes {secret}")
    for _ in range(20):
        prior, noise = covariance(8, rng), covariance(8, rng)
        found = information(condition(prior, secret), noise)
        assert np.allclose(found.matrix, by_hand(prior, noise, secret), rtol=1e-8)
        posterior = found.posterior(prior[np.ix_(secret, secret)])
        assert np.allclose(np.linalg.inv(posterior), np.linalg.inv(prior[np.ix_(secret, secret)]) + found.matrix)


@pytest.mark.parametrize("secret", [[3], [2, 6]], ids=str)
def test_direct_and_inferential_loss_add_where_the_noise_at_the_secret_is_independent(secret: list[int]) -> None:
    rng = generator(f"lemma 8 {secret}")
    rest = [place for place in range(8) if place not in secret]
    prior, noise = covariance(8, rng), covariance(8, rng)
    noise[np.ix_(secret, rest)] = noise[np.ix_(rest, secret)] = 0.0
    direct = np.linalg.inv(noise[np.ix_(secret, secret)])
    weights = prior[np.ix_(rest, secret)] @ np.linalg.inv(prior[np.ix_(secret, secret)])
    left = prior[np.ix_(rest, rest)] - weights @ prior[np.ix_(secret, rest)]
    inferred = weights.T @ np.linalg.solve(left + noise[np.ix_(rest, rest)], weights)
    assert np.allclose(information(condition(prior, secret), noise).matrix, direct + inferred, rtol=1e-8)


def test_j_is_the_fisher_information_of_the_release_about_the_secret() -> None:
    rng = generator("fisher")
    prior, noise, secret = covariance(6, rng), covariance(6, rng), [1, 4]
    seen = condition(prior, secret)
    # the release given the secret, without the module's own identity: conditional moments of (X_U | X_S)
    others = [0, 2, 3, 5]
    regression = prior[np.ix_(others, secret)] @ np.linalg.inv(prior[np.ix_(secret, secret)])
    mean = np.zeros((6, 2))
    mean[secret], mean[others] = np.eye(2), regression
    spread = noise.copy()
    spread[np.ix_(others, others)] += prior[np.ix_(others, others)] - regression @ prior[np.ix_(secret, others)]
    assert np.allclose(information(seen, noise).matrix, mean.T @ np.linalg.solve(spread, mean), rtol=1e-9)


@pytest.mark.exhaust
def test_more_noise_tells_less_and_scaling_is_homogeneous() -> None:
    rng = generator("loewner")
    for _ in range(30):
        prior, noise, more = covariance(7, rng), covariance(7, rng), covariance(7, rng)
        seen = condition(prior, [2, 5])
        before, after = information(seen, noise).matrix, information(seen, noise + more).matrix
        assert np.linalg.eigvalsh(before - after)[0] >= -1e-9
        assert np.allclose(information(condition(3.0 * prior, [2, 5]), 3.0 * noise).matrix, before / 3.0)


def test_the_stated_error_covers_what_doubles_lose() -> None:
    from fractions import Fraction

    prior, noise = RBF(length=6.0).matrix(np.arange(8.0)), 1e-5 * np.eye(8)
    found = information(condition(prior, [3]), noise)

    def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
        rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
        for i in range(len(rows)):
            rows[i] = [each / rows[i][i] for each in rows[i]]
            for j in range(len(rows)):
                if j != i:
                    rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
        return [row[-1] for row in rows]

    exact = [[Fraction(float(each)) for each in row] for row in prior]
    with_noise = [
        [value + (Fraction(1e-5) if i == j else 0) for j, value in enumerate(row)] for i, row in enumerate(exact)
    ]
    posterior = exact[3][3] - sum(a * b for a, b in zip(exact[3], solve(with_noise, exact[3]), strict=True))
    assert found.largest.contains(float(1 / posterior - 1 / exact[3][3]))


def test_without_a_floor_a_smooth_prior_is_refused_and_not_guessed() -> None:
    prior = RBF(length=6.103).matrix(np.arange(50.0))
    with pytest.raises(UnsupportedError, match="white floor"):
        information(condition(prior, [24]), 1e-18 * np.eye(50))


@pytest.mark.parametrize(
    ("secret", "word"),
    [([], "at least one"), ([10], "inside the trace"), ([1, 1], "once"), ([-1], "inside the trace")],
)
def test_a_secret_outside_the_trace_is_refused(secret: list[int], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        condition(KERNELS[0].matrix(STEPS), secret)


def test_secret_times_that_the_kernel_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="nearly the same location"):
        condition(RBF(length=1e6).matrix(STEPS), [3, 4])


# --- the worst move -------------------------------------------------------------------------------------------------


@pytest.mark.exhaust
def test_the_diagonal_bound_lies_between_every_move_and_the_printed_bound() -> None:
    rng = generator("moves")
    for size in (2, 3, 5):
        for _ in range(10):
            matrices = [covariance(size, rng) for _ in range(2)]
            weights = diagonal_bound(matrices)
            assert all(np.linalg.eigvalsh(np.diag(weights) - one)[0] >= -1e-9 for one in matrices)
            assert weights.sum() <= size * max(np.linalg.eigvalsh(one)[-1] for one in matrices) * (1 + 1e-9)
            angles = rng.uniform(0, 2 * np.pi, (500, size))
            moves = np.cos(angles), np.sin(angles)  # every secret location moves by 1, in any direction
            values = sum(np.einsum("ti,ij,tj->t", m, one, m) for m, one in zip(moves, matrices, strict=True))
            assert values.max() <= weights.sum() * (1 + 1e-9)


def test_two_secret_times_in_one_coordinate_have_an_exact_bound() -> None:
    rng = generator("two times")
    for _ in range(20):
        matrix = covariance(2, rng)
        exact = worst_move([Information(matrix, 0.0)]).upper
        assert (
            diagonal_bound([matrix]).sum() == pytest.approx(exact, rel=1e-4)
            and diagonal_bound([matrix]).sum() >= exact
        )


@each_kernel
def test_a_basic_secret_costs_no_more_than_a_compound_one_that_holds_it(kernel: Kernel) -> None:
    rng, prior = generator("covers"), kernel.matrix(STEPS)
    for _ in range(10):
        noise = covariance(10, rng)
        compound = worst_move([information(condition(prior, [3, 6]), noise)])
        assert information(condition(prior, [3]), noise).largest.upper <= compound.upper * (1 + 1e-9)


def test_a_compound_secret_does_not_cover_a_basic_one_for_every_prior() -> None:
    # y = 10 u of the step before: the other secret coordinate says ten times as much as the location itself
    prior = np.array([[1.0, 10.0], [10.0, 100.5]])
    noise = np.diag([1.0, 100.0])
    basic = information(condition(prior, [0]), noise).largest.upper
    together = worst_move([information(condition(prior, [0, 1]), noise)]).lower
    assert basic > together  # |Sigma_js / Sigma_ss| = 10 moves the other location by more than the radius


# --- Gaussian differential privacy ----------------------------------------------------------------------------------


@pytest.mark.exhaust
@pytest.mark.parametrize("mu", [0.2, 1.0, 4.0])
def test_the_curve_is_the_integral_of_the_hockey_stick(mu: float) -> None:
    def stick_at(z: float, epsilon: float) -> float:
        return max(0.0, float(norm.pdf(z, mu) - np.exp(epsilon) * norm.pdf(z)))

    for epsilon in (0.0, 0.5, 2.0):
        stick = quad(stick_at, -12, 12 + mu, args=(epsilon,), limit=400)[0]
        assert delta_of(epsilon, mu=mu) == pytest.approx(stick, abs=1e-8)
    assert delta_of(epsilon_of(1e-6, mu=mu), mu=mu) <= 1e-6
    assert mu_of(epsilon_of(1e-6, mu=mu), delta=1e-6) == pytest.approx(mu, rel=1e-6)


@pytest.mark.parametrize(("order", "mu"), [(2.0, 0.5), (5.0, 0.2), (1.5, 2.0)])
def test_the_loss_of_an_order_is_the_renyi_divergence_of_shifted_gaussians(order: float, mu: float) -> None:
    def power(z: float) -> float:
        return float(np.exp(order * norm.logpdf(z, mu) + (1 - order) * norm.logpdf(z)))

    middle = order * mu  # where the integrand, a Gaussian of deviation 1, has its peak
    by_quadrature = np.log(quad(power, middle - 12, middle + 12)[0]) / (order - 1)
    assert renyi_loss(order, mu=mu) == pytest.approx(by_quadrature, rel=1e-8)
    assert renyi_loss(order, mu=mu_of_loss(0.1, order=order)) == pytest.approx(0.1, rel=1e-12)


def test_exact_posterior_odds_are_smaller_than_the_printed_ones() -> None:
    mu = mu_of_loss(0.1, order=5.0)
    assert round(posterior_odds(0.01, mu=mu), 3) == 1.678 and round(posterior_odds(0.1, mu=mu), 3) == 1.392
    # theorem 5.3.1 as printed: odds of e^eps' with probability delta = e^((1 - lambda)(eps' - eps)) ... 3.5 and 2
    printed = [np.exp(0.1 + np.log(1 / chance) / 4.0) for chance in (0.01, 0.1)]
    assert printed[0] == pytest.approx(3.495, abs=1e-3) and printed[1] == pytest.approx(1.965, abs=1e-3)


# --- adversaries and composition ------------------------------------------------------------------------------------


@each_kernel
def test_a_sighting_is_the_prior_given_that_location(kernel: Kernel) -> None:
    prior, noise = kernel.matrix(STEPS), covariance(10, generator("sighting"))
    for secret in ([4], [4, 7]):
        seen = condition(prior, secret)
        found = sightings(seen, prior, noise)
        for t in set(range(10)) - set(secret):
            known = prior - np.outer(prior[t], prior[t]) / prior[t, t]
            expected = np.linalg.eigvalsh(by_hand(known, noise, secret))[-1]
            assert found[t] == pytest.approx(expected, rel=1e-6)
            again = with_sighting(seen, prior, t)
            assert again is not None and information(again, noise).largest.upper == pytest.approx(expected, rel=1e-6)
        assert (found[secret] == 0.0).all()


def test_a_sighting_that_tells_the_secret_has_an_infinite_loss() -> None:
    prior = KERNELS[3].matrix(np.arange(10) * 7.3)  # one period apart: the same location
    assert np.isinf(sightings(condition(prior, [4]), prior, np.eye(10))[5])


@each_kernel
def test_an_unknown_mean_is_stated_in_the_limit_and_not_for_a_hundred_variances(kernel: Kernel) -> None:
    noise = 4.0 * covariance(10, generator("limit")) + 4.0 * np.ones((10, 10))
    for secret in ((4,), (2, 7)):
        exact = information(flat_mean(condition(kernel.matrix(STEPS), secret)), noise).largest
        (stated,) = (one for one in losses(adversaries(kernel, STEPS), secret, noise) if one.name == "unknown mean")
        zone = zone_loss(kernel, Zone(STEPS, (noise,), [secret], {}), np.ones(1)).moves["unknown mean"][0]
        assert exact.lower <= stated.loss.upper <= exact.upper + 0.02
        assert exact.lower <= zone <= len(secret) * (exact.upper + 0.02)


def test_those_who_believe_in_less_nugget_are_on_the_list() -> None:
    kernel, times = with_nugget(Matern32(4.0), 0.1), STEPS
    found = adversary_kernels(kernel)
    assert {"no nugget", "a tenth of the nugget"} <= set(found) and len(adversary_kernels(Matern32(4.0))) == 5
    assert found["no nugget"].correlation(np.array([0.0, 1.0])) == pytest.approx(
        Matern32(4.0).correlation(np.array([0.0, 1.0]))
    )
    tenth = found["a tenth of the nugget"].correlation(np.array([1e-9]))[0]
    assert tenth == pytest.approx(0.9 / 0.91)
    noise = 0.1 * np.eye(10)
    stated = zone_loss(kernel, Zone(times, (noise,), [(4,)], {}), np.ones(1)).moves
    smooth = condition(Matern32(4.0).matrix(times), [4])
    alone = information(smooth, noise).largest.upper
    assert stated["no nugget"][0] == pytest.approx(alone) and alone > 1.2 * stated["the kernel itself"][0]
    sighted = sightings(smooth, Matern32(4.0).matrix(times), noise).max()
    assert stated["one sighting, no nugget"][0] == pytest.approx(sighted, rel=1e-5)
    assert sighted > stated["one sighting"][0]


@pytest.mark.exhaust
def test_an_adversary_for_whom_secret_times_are_one_is_promised_nothing_and_stops_nobody() -> None:
    kernel, times = with_nugget(RBF(200.0), 0.05), STEPS
    zone = Zone(times, (0.1 * np.eye(10),), [(4, 5, 6)], {})
    stated = zone_loss(kernel, zone, np.ones(1)).moves
    assert np.isinf([stated["no nugget"][0], stated["one sighting, no nugget"][0]]).all()
    assert np.isfinite(stated["the kernel itself"]).all()
    made = robust(adversaries(kernel, times), [(4, 5, 6)], Budget(10, 0.1))
    assert np.trace(made.noise) == pytest.approx(1.0)


def test_the_numbers_of_the_second_reading_hold() -> None:
    kernel, n = RBF(length=6.103), 50
    known = adversaries(kernel, np.arange(float(n)))
    prior = known[0].prior
    scaled = information(condition(prior, [24]), 0.02 * prior + 1e-7 * np.eye(n)).largest.upper
    assert scaled == pytest.approx(50.0, rel=1e-2)  # J = 1 / o_t
    seen = condition(prior, [24])
    assert sightings(seen, prior, 0.02 * np.eye(n))[18] == pytest.approx(267, abs=0.5)
    assert [one.name for one in known][:1] == ["the kernel itself"] and known[-1].name == "unknown mean"


def test_releases_of_one_trace_are_one_release_with_the_parallel_sum_of_their_noise() -> None:
    rng, kernel = generator("composition"), RBF(length=2.0)
    noises = [covariance(10, rng) for _ in range(2)]
    together = composed(kernel, STEPS, noises[0], [4], [PastRelease(STEPS, noises[1])])
    parallel = np.linalg.inv(sum(np.linalg.inv(one) for one in noises))
    alone = information(condition(kernel.matrix(STEPS), [4]), parallel)
    assert together.largest.upper == pytest.approx(alone.largest.upper, rel=1e-6)


def test_a_trace_far_away_in_time_adds_nothing_and_one_independent_given_the_secret_adds_its_own() -> None:
    rng, kernel = generator("far"), RBF(length=2.0)
    noise = covariance(10, rng)
    alone = information(condition(kernel.matrix(STEPS), [4]), noise).largest.upper
    far = composed(kernel, STEPS, noise, [4], [PastRelease(STEPS + 1e4, noise)])
    assert far.largest.upper == pytest.approx(alone, rel=1e-9)
    # x_1, x_2 independent given x_0: a star with the secret in the middle
    star = np.array([[1.0, 0.8, 0.6], [0.8, 1.0, 0.48], [0.6, 0.48, 1.0]])
    parts = [
        information(condition(star[np.ix_([0, i], [0, i])], [0]), np.diag([1e9, 0.5])).matrix[0, 0] for i in (1, 2)
    ]
    both = information(condition(star, [0]), np.diag([1e9, 0.5, 0.5])).matrix[0, 0]
    assert both == pytest.approx(sum(parts), rel=1e-6)


def test_two_releases_may_tell_more_than_the_sum_of_their_losses() -> None:
    # x_0 the secret, x_1 = x_0 + v, x_2 = v: one release shows x_1, the other x_2; alone each says little
    prior = np.array([[1.0, 1.0, 0.0], [1.0, 101.0, 100.0], [0.0, 100.0, 100.0]])
    first, second = np.diag([1e6, 0.01, 1e6]), np.diag([1e6, 1e6, 0.01])
    seen = condition(prior, [0])
    parts = [information(seen, one).matrix[0, 0] for one in (first, second)]
    both = information(seen, np.linalg.inv(np.linalg.inv(first) + np.linalg.inv(second))).matrix[0, 0]
    assert both > 100.0 * sum(parts)


def test_the_width_is_twice_the_smallest_standard_deviation() -> None:
    assert posterior_width(np.diag([4.0, 0.25])) == 1.0


Exact = list[list[Decimal]]


def downdated(matrix: Exact, place: int, white: Decimal = Decimal(0)) -> Exact:
    """What is left of a covariance when the location at `place`, with this much noise, is known."""
    column, pivot = [row[place] for row in matrix], matrix[place][place] + white
    return [[matrix[i][j] - column[i] * column[j] / pivot for j in range(len(matrix))] for i in range(len(matrix))]


def rbf_of_many_digits(length: Decimal, gap: int) -> Decimal:
    return (-(Decimal(gap) ** 2) / (2 * length**2)).exp()


def matern52_of_many_digits(length: Decimal, gap: int) -> Decimal:
    u = Decimal(5).sqrt() * gap / length
    return (1 + u + u * u / 3) * (-u).exp()


@pytest.mark.parametrize(
    ("kernel", "law", "n", "places", "white"),
    [
        (RBF(300.0), rbf_of_many_digits, 5, (2, 3), 0.01),
        (Matern52(1.83e4), matern52_of_many_digits, 6, (1, 2), 0.01),
        (Matern52(1.83e4), matern52_of_many_digits, 6, (1, 2), 1e-6),
        (RBF(60.0), rbf_of_many_digits, 12, (5, 6), 1e-4),
    ],
    ids=["rbf", "matern", "matern, little noise", "twelve"],
)
def test_a_bracket_holds_the_loss_of_a_hundred_digits(
    kernel: Kernel, law: Callable[[Decimal, int], Decimal], n: int, places: tuple[int, int], white: float
) -> None:
    with localcontext() as context:
        context.prec = 100
        length = Decimal(kernel.parameters[0])
        prior = [[law(length, abs(i - j)) for j in range(n)] for i in range(n)]
        matrix, noise = kernel.matrix(np.arange(float(n))), white * np.eye(n)
        seen = Posterior.of(matrix, noise)
        for known in (None, 0):
            rest = prior if known is None else downdated(prior, known)
            after = rest
            for i in range(n):
                after = downdated(after, i, Decimal(white))
            for place in places:
                # J of one place: 1 / posterior variance - 1 / prior variance, by knowing each release in turn
                exact = float(1 / after[place][place] - 1 / rest[place][place])
                held = condition(matrix, [place])
                if known is None:
                    assert information(held, noise).largest.contains(exact)
                    (found,) = seen.losses([place])
                    assert found.contains(exact) and found.gap < 1e-4
                else:
                    assert sightings(held, matrix, noise)[known] >= exact
                    assert seen.sightings([place])[0, known] >= exact


@pytest.mark.parametrize(
    ("kernel", "law", "n", "places"),
    [(RBF(30.0), rbf_of_many_digits, 5, (2, 3)), (Matern52(1.83e3), matern52_of_many_digits, 6, (1, 2))],
    ids=["rbf", "matern"],
)
def test_a_bracket_holds_the_worst_move_of_two_neighbours(
    kernel: Kernel, law: Callable[[Decimal, int], Decimal], n: int, places: tuple[int, int]
) -> None:
    with localcontext() as context:
        context.prec = 100
        length = Decimal(kernel.parameters[0])
        prior = [[law(length, abs(i - j)) for j in range(n)] for i in range(n)]
        after = prior
        for i in range(n):
            after = downdated(after, i, Decimal("0.0078125"))  # exactly a double
        moves = []
        for sign in (1, -1):  # of the second place: e' C^-1 e of a matrix of two rows
            each = []
            for one in (after, prior):
                (a, b), (_, c) = ([one[i][j] for j in places] for i in places)
                each.append((c - 2 * sign * b + a) / (a * c - b * b))
            moves.append(float(each[0] - each[1]))
        told = information(condition(kernel.matrix(np.arange(float(n))), places), 0.0078125 * np.eye(n))
        assert worst_move([told]).contains(max(moves))


def test_the_worst_sighting_is_no_better_than_any_and_leaves_a_place_to_be_seen_at() -> None:
    rng, secret = generator("sighting"), [2, 3, 5]
    prior, noise = covariance(7, rng), covariance(7, rng)
    found, _seen = losses([Adversary("kernel", prior)], secret, noise)[-1], condition(prior, secret)
    told = [
        information(one, noise) for t in (0, 1, 4, 6) if (one := with_sighting(condition(prior, secret), prior, t))
    ]
    assert found.loss.upper >= max(one.largest.lower for one in told) >= found.loss.lower
    assert found.move.upper >= max(worst_move([one]).lower for one in told) > found.loss.upper
    with pytest.raises(UnsupportedError, match="no other time to be seen at"):
        losses([Adversary("kernel", prior)], list(range(7)), noise)


def test_a_loss_that_doubles_do_not_know_is_refused() -> None:
    seen = condition(RBF(10.0).matrix(np.arange(20.0)), [10])
    assert information(seen, 1e-9 * np.eye(20)).error < 0.01
    with pytest.raises(UnsupportedError, match="of itself in doubles"):
        information(seen, 1e-12 * np.eye(20))


def test_the_worst_move_is_the_worst_of_all_coordinates_with_their_errors() -> None:
    alone = [Information(np.array([[value]]), 0.0) for value in (1.0, 4.0, 2.0)]
    assert worst_move(alone) == Bracket(4.0, 4.0)
    several = [Information(np.diag([value, 1.0]), error) for value, error in ((3.0, 0.1), (2.0, 0.3))]
    assert worst_move(several).upper >= 4.0 * 1.3 > 4.0 > worst_move(several).lower
