"""Closed forms: in regime above the pairs they come from, out of regime silent with a reason."""

from itertools import pairwise
from math import exp, expm1, inf, log, sqrt, tanh

import numpy as np
import pytest

from dovetail.account.clones import ClonePair
from dovetail.account.closed_forms import (
    ADAPTIVE,
    FIXED,
    ShuffleParameters,
    bennett,
    bennett_function,
    clones_focs,
    clones_workshop,
    closed_forms,
    erlingsson,
    hoeffding,
    krr_upper_law,
    random_check_ins,
    stronger_published,
    stronger_tight,
)
from dovetail.account.privacy_blanket import BlanketLaw
from dovetail.core.errors import ParameterError

FORMS = (*ADAPTIVE, *FIXED)
GRID = [
    (e0, n, d)
    for e0 in (0.01, 0.1, 0.5, 1.0, 3.0, 6.0)
    for n in (10, 10**3, 10**5, 10**8)
    for d in (1e-12, 1e-6, 0.01)
]


@pytest.mark.exhaust
@pytest.mark.parametrize("k", [2, 3, 50])
def test_every_closed_form_lies_above_stronger_clones_and_the_first_three_above_clones(k: int) -> None:
    spoken: dict[str, int] = {}
    for epsilon0, n, delta in GRID:
        floor, plain = (ClonePair(epsilon0, n, kind).epsilon(delta).lower for kind in ("stronger clones", "clones"))
        for bound in closed_forms(epsilon0, n=n, delta=delta):
            spoken[bound.name] = spoken.get(bound.name, 0) + (bound.epsilon is not None)
            assert (bound.epsilon is None) == bool(bound.reason)
            assert bound.epsilon is None or floor <= bound.epsilon < epsilon0, (epsilon0, n, delta, bound)
        for form in ADAPTIVE:
            value = form(epsilon0, n=n, delta=delta).epsilon
            assert value is None or value >= plain
        own = {bound.name: bound.epsilon for bound in closed_forms(epsilon0, n=n, delta=delta, k=k)[-2:]}
        assert set(own) == {"Hoeffding (k-RR)", "Bennett (k-RR)"}
    assert len(spoken) == len(FORMS)
    assert min(spoken.values()) > 0, spoken


def exact_sum(law: BlanketLaw, n: int, epsilon: float) -> float:
    """E(sum)_+ / n for a law of two atoms (a, b), (b, a) and (1, 1), by listing all counts."""
    from scipy.stats import multinomial

    masses = [*law.mass, law.remainder]
    values = [*(law.z0 - exp(epsilon) * law.z1), 0.0]
    counts = np.array([c for c in np.ndindex(*[n + 1] * len(masses)) if sum(c) == n])
    weights = multinomial(n, masses).pmf(counts)
    return float(weights @ np.maximum(counts @ np.array(values), 0.0)) / n


@pytest.mark.parametrize("form", [hoeffding, bennett])
@pytest.mark.parametrize("k", [2, 3, 20])
@pytest.mark.parametrize("n", [5, 12])
def test_at_the_returned_epsilon_the_law_itself_keeps_delta(n: int, k: int, form) -> None:  # type: ignore[no-untyped-def]
    law, answered = krr_upper_law(1.0, k), 0
    for delta in (0.02, 0.05, 0.1, 0.2, 0.4):
        epsilon = form(1.0, n=n, delta=delta, law=law).epsilon
        if epsilon is not None:
            answered += 1
            assert exact_sum(law, n, epsilon) <= delta
    assert answered > 0 or (n, k) == (5, 20)


def delta_of_laws(form, laws: tuple[BlanketLaw, ...], n: int, epsilon: float) -> float:  # type: ignore[no-untyped-def]
    """Hoeffding's or Bennett's display for v = Z_0 - E Z_1 on the support, each number the worst of all laws."""
    g, e = float(laws[0].mass.sum()), exp(epsilon)
    every = [(law.mass / g, law.z0 - e * law.z1) for law in laws]
    a, variance = expm1(epsilon) / g, max(float(share @ (v - share @ v) ** 2) for share, v in every)
    if form is hoeffding:
        square = max(float(np.ptp(v)) for _, v in every) ** 2
        return square / (4 * a * n) * (1 - g + g * exp(-2 * a * a / square)) ** n
    b = max(float(v.max()) for _, v in every) + a
    phi = float(bennett_function(np.array([a * b / variance]))[0])
    return b / (n * log(1 + a * b / variance)) * (1 - g + g * exp(-variance / b**2 * phi)) ** n


def published_bennett(epsilon: float, epsilon0: float, n: int) -> float:
    """Bennett with the generic parameters: Z in [1/p, p], mass 1/p, and mass 1 wherever more of it is worse."""
    p, e = exp(epsilon0), exp(epsilon)
    a, variance = p * (e - 1), p**3 * (e * e + 1) - 2 * e / p
    b = p * p - e + a
    u = a * b / variance
    exponent = variance / b**2 * ((1 + u) * log(1 + u) - u)
    return b / (n * log(1 + u)) * (1 - 1 / p + exp(-exponent) / p) ** n


def published_delta(epsilon: float, epsilon0: float, n: int) -> float:
    """Hoeffding with the generic parameters in the paper's own variables, L = gamma v."""
    p, e, gamma = exp(epsilon0), exp(epsilon), exp(-epsilon0)
    width = (e + 1) * (p - 1 / p)
    mixture = 1 - gamma + gamma * exp(-2 * (e - 1) ** 2 / width**2)
    return width**2 / (4 * n * gamma * (e - 1)) * mixture**n


def test_the_generic_bound_solves_the_formula_of_the_paper_and_stays_on_the_safe_side() -> None:
    for epsilon0, n, delta in ((0.1, 10**5, 1e-6), (0.5, 10**6, 1e-9), (1.0, 10**4, 1e-3)):
        epsilon = hoeffding(epsilon0, n=n, delta=delta).epsilon
        assert epsilon is not None
        assert published_delta(epsilon, epsilon0, n) <= delta
        assert published_delta(epsilon * (1 - 1e-5), epsilon0, n) > delta
        epsilon = bennett(epsilon0, n=n, delta=delta).epsilon
        assert epsilon is not None
        assert published_bennett(epsilon, epsilon0, n) <= delta * (1 + 1e-9)
        assert published_bennett(epsilon * (1 - 1e-5), epsilon0, n) > delta


def test_the_smallest_root_is_returned_although_the_formula_rises_again() -> None:
    grid = np.linspace(0.1, 3.99, 400)
    values = np.array([published_delta(e, 4.0, 10**6) for e in grid])
    bottom = int(values.argmin())
    delta = float(sqrt(values[bottom] * values[-1]))
    assert values[bottom] < delta < values[-1]
    epsilon = hoeffding(4.0, n=10**6, delta=delta).epsilon
    assert epsilon is not None and epsilon < grid[bottom]


def test_a_lopsided_law_gets_the_worse_of_its_two_directions() -> None:
    law = BlanketLaw([2.0, 0.5], [1.0, 1.0], [1 / 3, 2 / 3])
    mirrored = BlanketLaw(law.z1, law.z0, law.mass)
    for form in (hoeffding, bennett):
        both = [form(log(2.0), n=40, delta=0.05, law=way).epsilon for way in (law, mirrored)]
        assert both[0] == pytest.approx(both[1], rel=1e-12)
        assert delta_of_laws(form, (law, mirrored), 40, both[0]) <= 0.05
        for way in (law, mirrored):
            assert exact_sum(way, 40, both[0]) <= 0.05


def test_phi_is_smooth_where_the_series_ends_and_half_a_square_near_zero() -> None:
    u = np.array([1e-9, 1e-4, 0.01 * (1 - 1e-12), 0.01])
    assert bennett_function(u)[:2] == pytest.approx(0.5 * u[:2] ** 2 - u[:2] ** 3 / 6, rel=1e-8)
    assert bennett_function(u)[2] == pytest.approx(bennett_function(u)[3], rel=1e-11)
    assert bennett_function(u)[2] <= bennett_function(u)[3]


def test_what_a_short_formula_loses_to_rounding_is_added() -> None:
    assert (
        0.5 * (1 + 1e-15) < (ShuffleParameters(1.0, 10, 0.1).bound("", 0.5, source="").epsilon or 0.0) < 0.5 + 1e-12
    )


def test_formulas_equal_their_displays() -> None:
    e0, n, d = 0.4, 10**6, 1e-6
    p, root = exp(e0), sqrt(exp(e0) * log(4 / d) / n)
    assert erlingsson(e0, n=n, delta=d).epsilon == pytest.approx(12 * e0 * sqrt(log(1 / d) / n))
    workshop = log(1 + (1 - exp(-2 * e0)) * (8 * root + 8 * p / n))
    focs = log(1 + (p - 1) / (p + 1) * (8 * root + 8 * p / n))
    assert clones_workshop(e0, n=n, delta=d).epsilon == pytest.approx(workshop)
    assert clones_focs(e0, n=n, delta=d).epsilon == pytest.approx(focs)
    published = log(1 + (p - 1) * (4 * sqrt(2 * log(4 / d) / ((p + 1) * n)) + 4 / n))
    assert stronger_published(e0, n=n, delta=d).epsilon == pytest.approx(published)
    assert focs < workshop < 4 * focs
    for e0, n in ((1.0, 10**4), (3.0, 10**4)):  # every trial may be a clone by Hoeffding, or by Chernoff
        q, t, most = 2 / (exp(e0) + 1), tanh(e0 / 2), log(2 / d)
        sure = (n - 1) * q - sqrt(min(2 * q, 0.5) * (n - 1) * most)
        r = sqrt(2 * sure * most)
        tight = log(1 + 2 * t * (r + 1) / (sure - t * r))
        assert stronger_tight(e0, n=n, delta=d).epsilon == pytest.approx(tight, rel=1e-9)
    e0, n = 0.4, 10**6
    misplaced = log(1 + (p - 1) * (4 * sqrt(2 * log(4 / d)) / (sqrt(p + 1) * n) + 4 / n))  # n outside of the root
    assert misplaced < 0.1 * ClonePair(e0, n, "stronger clones").epsilon(d).lower
    assert -expm1(e0) < 0.0 < -expm1(-e0)  # the rate of clones as a README prints it, and as it is
    check_ins = exp(3 * e0) * expm1(e0) ** 2 / (2 * n) + exp(1.5 * e0) * expm1(e0) * sqrt(2 * log(1 / d) / n)
    assert random_check_ins(e0, n=n, delta=d) == pytest.approx(check_ins)


def test_the_recalled_curves_have_the_rates_that_the_paper_quotes_of_them() -> None:
    def rate(e0: float, of: float) -> float:
        found, most = random_check_ins(of * e0, n=10**12, delta=1e-6), 2 * log(1e6)
        root = sqrt(most + 2 * found) - sqrt(most)  # r of r^2/2 + r sqrt(2 log(1/delta))
        return (log(root * 1e6) - log(-expm1(-of * e0))) / e0  # but for the factor 1 - e^-epsilon0

    assert rate(3.0, 1.0) == pytest.approx(2.5, rel=1e-9)  # e^(2.5 epsilon0)
    assert rate(0.5, 8.0) == pytest.approx(20.0, rel=1e-9)  # e^(20 epsilon0) with 8 epsilon0 for epsilon0


def test_the_regime_ends_where_the_reason_says() -> None:
    for form, limit in ((clones_workshop, log(10**5 / (16 * log(4e6)))), (clones_focs, log(10**5 / (16 * log(4e6))))):
        assert form(limit * (1 - 1e-9), n=10**5, delta=1e-6).epsilon is not None
        out = form(limit * (1 + 1e-9), n=10**5, delta=1e-6)
        assert out.epsilon is None
        assert out.reason.startswith(f"needs epsilon0 <= log(n/(16 log(4/delta))) = {limit:.4g}, got")
    assert erlingsson(0.5, n=10**4, delta=0.01).epsilon is not None
    assert erlingsson(0.51, n=10**4, delta=0.01).reason == "needs epsilon0 <= 1/2 = 0.5, got 0.51"
    assert erlingsson(0.5, n=999, delta=0.01).reason == "needs n >= 1000 and delta <= 0.01, got 999 and 0.01"
    assert erlingsson(0.5, n=10**4, delta=0.011).reason == "needs n >= 1000 and delta <= 0.01, got 10000 and 0.011"
    assert "needs more clones than" in stronger_tight(3.0, n=50, delta=1e-6).reason
    assert "not informative" in bennett(4.0, n=10, delta=1e-6).reason


def test_recalled_formulas_say_so() -> None:
    bound = stronger_published(1.0, n=10**6, delta=1e-6)
    assert "recalled" in bound.name and "recalled" in bound.source
    assert "recalled" not in "".join(b.source + b.name for b in closed_forms(1.0, n=10**6, delta=1e-6) if b != bound)


def test_with_randomizers_chosen_on_the_way_only_three_forms_speak() -> None:
    fixed, adaptive = (closed_forms(0.3, n=10**6, delta=1e-6, k=4, adaptive=a) for a in (False, True))
    assert [b.name for b in fixed] == [b.name for b in adaptive]
    assert [b.epsilon is not None for b in adaptive] == [True] * 3 + [False] * 6
    assert all("one fixed randomizer" in b.reason for b in adaptive[3:])


@pytest.mark.parametrize("form", FORMS)
def test_every_closed_form_falls_with_people_and_delta_and_grows_with_local_epsilon(form) -> None:  # type: ignore[no-untyped-def]
    def value(epsilon0: float, n: int, delta: float) -> float:
        epsilon = form(epsilon0, n=n, delta=delta).epsilon
        return epsilon0 if epsilon is None else float(epsilon)

    for falling in (
        [value(0.4, n, 1e-6) for n in (10, 10**4, 10**6, 10**9, 10**12)],
        [value(0.4, 10**6, d) for d in (1e-300, 1e-18, 1e-9, 1e-3, 0.01)],
        [value(e0, 10**6, 1e-6) for e0 in (0.5, 0.3, 0.1, 1e-3, 1e-6)],
    ):
        assert all(a >= b for a, b in pairwise(falling)), falling


@pytest.mark.parametrize(("epsilon0", "n", "delta"), [(1e-300, 1, 0.5), (700.0, 10**12, 1e-300), (20.0, 2, 1 - 1e-9)])
def test_absurd_questions_get_a_bound_below_the_local_one_or_a_reason(epsilon0: float, n: int, delta: float) -> None:
    for bound in closed_forms(epsilon0, n=n, delta=delta, k=3):
        assert bound.reason if bound.epsilon is None else 0.0 <= bound.epsilon < epsilon0


@pytest.mark.parametrize("form", [hoeffding, bennett])
def test_a_formula_that_overflows_promises_nothing(form) -> None:  # type: ignore[no-untyped-def]
    for n in (2, 10**12):
        assert form(700.0, n=n, delta=1e-6).epsilon is None


def test_whatever_lies_outside_the_range_is_refused_by_name() -> None:
    for wrong in (0.0, inf, float("nan"), True, "1"):
        with pytest.raises(ParameterError, match="`epsilon0` must be"):
            closed_forms(wrong, n=10, delta=1e-6)  # type: ignore[arg-type]
    for delta in (0.0, 1.0, float("nan"), np.True_):
        with pytest.raises(ParameterError, match="`delta` must be"):
            closed_forms(1.0, n=10, delta=delta)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="`n` must be"):
        closed_forms(1.0, n=0, delta=1e-6)
    with pytest.raises(ParameterError, match="`k` must be"):
        closed_forms(1.0, n=10, delta=1e-6, k=1)
