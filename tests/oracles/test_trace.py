"""What chapter 5 prints, and what its published code makes of it, beside what is right."""

import numpy as np
import pytest
from scipy.stats import norm
from tests.trace.priors import covariance, generator

from dovetail.trace.closed_form import block, concentrated, full, published_sdp_a, uniform
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import RBF, Floats, Matern32
from dovetail.trace.loss import Information, condition, delta_of, information, posterior_odds, worst_move

TIMES, SECRET, L = np.arange(50.0), 24, 6.103
PRIOR = RBF(L).matrix(TIMES)


def width(prior: Floats, noise: Floats) -> float:
    """Exact posterior width of the secret, prior variance 1."""
    return float(2.0 / np.sqrt(1.0 + information(condition(prior, [SECRET]), noise).largest.upper))


def jittered_width(prior: Floats, noise: Floats) -> float:
    """The width as the authors' code computes it: pseudo-inverses of matrices with jitter on their diagonals."""
    n = len(prior)
    precision = np.linalg.pinv(prior + 1e-6 * np.eye(n))
    precision += np.linalg.pinv(noise + 1e-6 * np.mean(np.diag(noise)) * np.eye(n))
    return float(2.0 * np.sqrt(np.linalg.inv(precision)[SECRET, SECRET]))


def test_a_circle_of_radius_r_holds_pairs_of_four_times_the_loss() -> None:
    told = information(condition(PRIOR, [SECRET]), uniform(Budget(50, 0.02)).noise).matrix[0, 0]
    pairs_at_most_r, ends_of_a_diameter = 1.0**2 * told, 2.0**2 * told
    assert ends_of_a_diameter == 4.0 * pairs_at_most_r  # (5.5) holds for the first, a circle of radius r has both


def test_the_printed_mean_squared_error_is_zero_for_any_noise() -> None:
    rng = np.random.default_rng(1)
    design = full(PRIOR, SECRET, Budget(50, 0.02)).noise
    draws = rng.multivariate_normal(np.zeros(50), design, size=4000)
    printed, right = draws.mean(axis=0).sum(), (draws**2).mean(axis=0).sum()
    assert abs(printed) < 6 * np.sqrt(design.sum() / 4000)  # the sum of E[Z - X]
    assert right == pytest.approx(np.trace(design), rel=0.2)


def test_independent_noise_at_the_secret_costs_up_to_twice_the_optimum() -> None:
    # nothing is left open by the secret: D = 0, J_block / J_full = (1 + |A|)^2 / (1 + |A|^2)
    weights = np.array([0.5, 1.0, 0.8, 0.9])
    prior, budget = np.outer(weights, weights), Budget(4, 0.1, 0.0)
    seen = condition(prior, [1])
    norm = np.linalg.norm(weights[[0, 2, 3]])
    whole, split = full(prior, 1, budget).optimum, block(seen, budget).optimum
    assert whole is not None and split is not None
    assert split.upper / whole.upper == pytest.approx((1 + norm) ** 2 / (1 + norm**2), rel=1e-6)
    assert split.upper / whole.upper > 1.96


def test_unequal_variances_are_better_where_the_inferential_loss_is_uneven() -> None:
    inferred, total = np.diag([3.0, 0.0]), 2.0

    def worst(first: float) -> float:
        return float(np.linalg.eigvalsh(np.diag([1 / first, 1 / (total - first)]) + inferred)[-1])

    assert min(worst(first) for first in np.linspace(0.1, 1.9, 181)) < 0.95 * worst(1.0)


def test_corollary_e_1_0_1_is_loose_for_the_disc_and_invalid_for_its_square() -> None:
    s2, x, y = 0.5, 1.5, 0.7
    printed = 1 / s2 + x + y
    told = [Information(np.array([[1 / s2 + a]]), 0.0) for a in (x, y)]
    assert worst_move(told).upper == 1 / s2 + max(x, y) < printed
    corner = (1 / s2 + x) + (1 / s2 + y)
    assert corner > printed


def test_theorem_5_3_1_is_loose_and_its_event_has_two_sides() -> None:
    loss, order = 0.1, 5.0
    mu = np.sqrt(2 * loss / order)
    printed = {chance: np.exp(loss + np.log(1 / chance) / (order - 1)) for chance in (0.01, 0.1)}
    assert [round(printed[c], 3) for c in (0.01, 0.1)] == [3.495, 1.965] or round(printed[0.1], 2) == 1.97
    assert [round(posterior_odds(c, mu=mu), 3) for c in (0.01, 0.1)] == [1.678, 1.392]
    # 2.6 with a chance of 1 % where two outcomes are all there is, at the same loss in both directions
    here, there = np.array([0.01, 0.99]), np.array([0.01 / 2.6, 1 - 0.01 / 2.6])
    for p, q in ((here, there), (there, here)):
        assert np.log(np.sum(p**order * q ** (1 - order))) / (order - 1) < loss
    assert here[0] / there[0] == pytest.approx(2.6) and 1.678 < 2.6 < printed[0.01]
    # L ~ N(mu^2/2, mu^2): Pr[L < -eps'] is the other side, which the printed delta leaves out
    rng = np.random.default_rng(2)
    losses = rng.normal(2.0**2 / 2, 2.0, 400_000)
    both, one = np.mean(np.abs(losses) > 1.0), np.mean(losses > 1.0)
    assert both > one * 1.05 and delta_of(1.0, mu=2.0) < one


def test_theorem_5_3_2_says_nothing_about_a_wrong_length_scale() -> None:
    # the divergence of order 2 of two centred Gaussians is finite only if 2 D' - D is positive definite

    def least(first: float, second: float) -> float:
        left, right = (condition(RBF(length).matrix(TIMES), [SECRET]).residual for length in (first, second))
        return float(np.linalg.eigvalsh(2 * right - left)[0])

    found = [least(1.0, 2.0), least(2.0, 3.0), least(3.05, L), least(L, 9.15)]
    assert np.allclose(found, [-0.84, -0.69, -2.47, -1.72], atol=0.006)


def test_figure_5_2_concentrated_is_an_artefact_of_jitter() -> None:
    noise = concentrated((SECRET,), Budget(50, 0.02, 0.0)).noise
    assert round(jittered_width(PRIOR, noise), 4) == 0.0024
    widths = [width(PRIOR, noise + floor * np.eye(50)) for floor in (1e-4, 1e-6, 1e-8)]
    assert widths[2] < 0.0024 and widths[2] < widths[1] / 3 < widths[0] / 9  # it tends to 0


def test_figure_5_2_d_rests_on_jitter_too() -> None:
    longer, seen = RBF(1.5 * L).matrix(TIMES), condition(PRIOR, [SECRET])
    bare = published_sdp_a(seen, Budget(50, 0.02, 0.0), stab=10.0).noise
    assert round(jittered_width(longer, bare), 3) == 0.393
    assert round(width(longer, published_sdp_a(seen, Budget(50, 0.02)).noise), 3) == 0.403  # with a floor of 1 %


def test_a_block_diagonal_sdp_a_would_put_no_noise_on_the_secret() -> None:
    # printed objective beta <= At+ diag(s^2, B) At+': linear, so all budget goes to the larger coefficient
    seen = condition(RBF(6.103).matrix(np.arange(12.0)), [5])
    a = seen.weights[:, 0]
    others = np.delete(a, 5)
    assert others @ others > 1.0
    direct, rest = 1.0 / (a @ a) ** 2, (others @ others) / (a @ a) ** 2  # gain of beta for a unit of trace
    assert rest > direct  # s^2 = 0 is the optimum: infinite direct loss


def test_the_trace_of_the_augmented_matrix_is_no_budget_and_that_of_its_inverse_is() -> None:
    seen, noise = condition(PRIOR, [SECRET]), full(PRIOR, SECRET, Budget(50, 0.02)).noise
    rest = np.arange(50) != SECRET
    left, own = seen.residual[np.ix_(rest, rest)], noise[SECRET, SECRET]
    inverse = left + noise[np.ix_(rest, rest)]  # B^-1, which includes the noise on the rest
    budget = own + np.trace(inverse) - np.trace(left)
    assert budget == pytest.approx(np.trace(noise), rel=1e-9) and budget == pytest.approx(50 * 0.02, rel=1e-6)
    printed = 1 / own + np.trace(np.linalg.inv(inverse)) - np.trace(left)
    assert printed > 10 * budget  # it would forbid this noise, which keeps the budget


def test_correlation_above_point_eight_reaches_two_thirds_of_a_length_scale() -> None:
    reach = np.sqrt(-2 * np.log(0.8))
    assert float(RBF(1.0).correlation(np.array(1.0))) == pytest.approx(0.607, abs=5e-4)
    assert round(float(reach), 2) == 0.67


def test_more_noise_is_more_private_without_the_conditions_of_corollary_e_1_0_2() -> None:
    rng = generator("psd")
    prior = Matern32(3.0).matrix(np.arange(8.0))
    for _ in range(30):
        less = covariance(8, rng)  # cross blocks, unequal variances at the secret
        more = less + covariance(8, rng)
        found = [information(condition(prior, [2, 5]), noise).matrix for noise in (less, more)]
        assert np.linalg.eigvalsh(found[0] - found[1])[0] >= -1e-9


def test_a_mixture_of_priors_loses_no_more_than_its_worst_part_and_unequal_weights_cost_their_ratio() -> None:
    prior = [RBF(length).matrix(np.arange(4.0)) for length in (0.7, 2.5)]
    noise, secret, move = 0.4 * np.eye(4), [1], 1.0
    z = np.linspace(-30.0, 30.0, 60_001)  # the release along the line on which the two laws of each part differ most
    curves, mus = [], []
    for each in prior:
        seen = condition(each, secret)
        mus.append(float(np.sqrt(information(seen, noise).largest.upper)) * move)
        curves.append((norm.pdf(z), norm.pdf(z, mus[-1])))
    for epsilon in (0.0, 0.5, 1.5):
        for weights in ((0.5, 0.5), (0.9, 0.1)):
            # told apart by a label that both laws share: the worst case of joint convexity
            apart = sum(w * np.trapezoid(np.maximum(q - np.exp(epsilon) * p, 0.0), z)
                        for w, (p, q) in zip(weights, curves, strict=True))  # fmt: skip
            mixed = np.trapezoid(
                np.maximum(
                    sum(w * (q - np.exp(epsilon) * p) for w, (p, q) in zip(weights, curves, strict=True)), 0.0
                ),
                z,
            )
            stated = sum(w * delta_of(epsilon, mu=mu) for w, mu in zip(weights, mus, strict=True))
            assert mixed <= apart + 1e-9 and apart == pytest.approx(stated, abs=1e-7)
            assert apart <= max(delta_of(epsilon, mu=mu) for mu in mus) + 1e-7
        kappa, one, other = 0.32, np.array([0.6, 0.4]), np.array([0.45, 0.55])  # weights that tell about the secret
        assert np.abs(np.log(one / other)).max() <= kappa
        moved = np.trapezoid(
            np.maximum(
                sum(w * q - np.exp(epsilon + kappa) * v * p
                    for w, v, (p, q) in zip(one, other, curves, strict=True)), 0.0
            ),
            z,
        )  # fmt: skip
        assert moved <= sum(w * delta_of(epsilon, mu=mu) for w, mu in zip(one, mus, strict=True)) + 1e-9


def test_no_noise_covers_a_prior_in_which_another_place_names_the_secret() -> None:
    noise = np.diag([1.0, 1.0])
    for far in (10.0, 1000.0):
        prior = np.array([[1.0, far], [far, far**2 + 1e-6]])  # the other location is `far` times the secret
        assert np.sqrt(information(condition(prior, [0]), noise).largest.lower) >= 0.99 * far
