"""Long traces: every secret at once, windows beside each other, and one secret in a hundred thousand points."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import block_diag
from tests.trace.priors import KERNELS, covariance, flat_mean, generator

from dovetail.core.errors import UnsupportedError
from dovetail.trace.closed_form import from_prior
from dovetail.trace.descent import Budget
from dovetail.trace.kernels import RBF, Floats, Kernel, Matern32, Matern52, Periodic
from dovetail.trace.loss import SIGHTING, condition, information, sightings
from dovetail.trace.noise import UNKNOWN, LongDesign, TraceDesign, WindowedDesign, cut, design_trace
from dovetail.trace.plan import TracePlan, TracePrior
from dovetail.trace.posterior_loss import (
    Elsewhere,
    Posterior,
    added,
    added_beside_sighting,
    crowd_of,
    far_told,
    sighting_beyond,
    unknown_mean_added,
)
from dovetail.trace.regular import RegularPrior, design_regular, regular_sighting
from dovetail.trace.release_design import design_release, error_for, plan_for_error
from dovetail.trace.trace import SecretTimes

FADING: list[Kernel] = [RBF(length=2.0), Matern32(length=4.0), Matern52(length=3.0)]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
each_fading = pytest.mark.parametrize("kernel", FADING, ids=repr)


@each_kernel
def test_all_losses_at_once_are_those_of_each_secret(kernel: Kernel) -> None:
    prior = kernel.matrix(np.array([0.0, 0.7, 1.0, 2.5, 4.0, 4.1, 9.0, 9.5]))
    noise = covariance(8, generator("at once"))
    seen = Posterior.of(prior, noise)
    for place, loss in enumerate(seen.losses(range(8))):
        exact = information(condition(prior, [place]), noise).largest
        assert loss.lower <= exact.upper and exact.lower <= loss.upper and loss.gap < 1e-9
    each = [sightings(condition(prior, [place]), prior, noise) for place in range(8)]
    assert np.allclose(seen.sightings(range(8)), each, rtol=1e-6)


def test_a_posterior_that_doubles_do_not_know_is_refused_and_a_telling_sighting_is_infinite() -> None:
    prior = RBF(6.103).matrix(np.arange(50.0))
    with pytest.raises(UnsupportedError, match="ask for a white floor"):
        Posterior.of(prior, 1e-12 * np.eye(50)).losses([3])
    near = Matern32(1e7).matrix(np.array([0.0, 1e-3, 1.0]))
    assert np.isinf(Posterior.of(near, 0.1 * np.eye(3)).sightings([0])[0, 1])


class Cut:
    """Nine windows of twelve points at uneven times, noise from the prior in each; home is the fifth."""

    def __init__(self, kernel: Kernel, factor: float, computed: int) -> None:
        rng, size = generator("cut"), 12
        self.times = np.cumsum(rng.uniform(0.5, 1.5, 9 * size))
        parts = [self.times[i * size : (i + 1) * size] for i in range(9)]
        blocks = [from_prior(kernel.matrix(part), Budget(size, 0.05)).noise for part in parts]
        self.noise, self.prior = block_diag(*blocks), kernel.stretched(factor).matrix(self.times)
        self.start, self.end = 3 * size, 6 * size
        self.near = np.s_[self.start : self.end, self.start : self.end]
        others = [*range(3 - computed, 3), *range(6, 6 + computed)]
        first, last = (3 - computed) * size, (6 + computed) * size
        gap = min(
            self.times[self.start] - self.times[first - 1], self.times[min(last, 107)] - self.times[self.end - 1]
        )
        rest = 9 * size - (last - first)
        self.seen = Posterior.of(self.prior[self.near], self.noise[self.near])
        crowd = crowd_of(kernel.stretched(factor), self.times)
        elsewhere = Elsewhere([(parts[j], blocks[j]) for j in others], rest, float(gap), 0.0005, crowd)
        model, times = kernel.stretched(factor), self.times[self.start : self.end]
        self.told = far_told(model, times, self.noise[self.near], self.seen, elsewhere)

    def bound(self, places: list[int]) -> tuple[Floats, float]:
        """Upper bounds on J (S, S), and on maxeig J with one sighting."""
        rows = [place - self.start for place in places]
        own = information(condition(self.prior[self.near], rows), self.noise[self.near])
        near = sightings(condition(self.prior[self.near], rows), self.prior[self.near], self.noise[self.near])
        near = near + added_beside_sighting(self.seen, self.told, rows)
        whole = own.matrix * (1.0 + own.error) + added(self.seen, self.told, rows)
        far = sighting_beyond(self.seen, self.told, rows, own.largest.upper)
        return whole, max(float(near.max()), far)


@pytest.mark.exhaust
@each_fading
@pytest.mark.parametrize("computed", [0, 1, 3])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_what_other_windows_tell_is_bounded_from_above(kernel: Kernel, computed: int, factor: float) -> None:
    made = Cut(kernel, factor, computed)
    for places in ([54], [53, 54], [48]):
        seen = condition(made.prior, places)
        exact = information(seen, made.noise)
        bound, sighted = made.bound(places)
        assert np.linalg.eigvalsh(bound - exact.matrix)[0] >= -1e-6 * np.trace(exact.matrix)
        assert sightings(seen, made.prior, made.noise).max() <= sighted * (1 + 1e-5)


def test_what_other_windows_tell_is_not_nothing_and_the_bound_is_near_it_where_windows_are_computed() -> None:
    made = Cut(Matern32(4.0), 1.0, 3)
    home = condition(made.prior[made.near], [18])
    alone = information(home, made.noise[made.near]).largest.upper
    exact = information(condition(made.prior, [54]), made.noise).largest
    assert alone < exact.lower <= float(made.bound([54])[0][0, 0]) <= exact.upper * (1 + 1e-5)


@each_kernel
def test_an_unknown_mean_adds_at_most_what_telling_it_would(kernel: Kernel) -> None:
    prior, noise = kernel.matrix(np.arange(10.0)), covariance(10, generator("unknown mean"))
    for places in ([3], [3, 7]):
        own = information(condition(prior, places), noise).matrix
        exact = information(flat_mean(condition(prior, places)), noise).matrix
        bound = own + unknown_mean_added(prior, places)
        assert np.linalg.eigvalsh(bound - exact)[0] >= -1e-9


@each_fading
def test_the_crowd_bounds_the_sum_of_correlations(kernel: Kernel) -> None:
    times = np.cumsum(generator("crowd").exponential(1.0, 400))
    sums = np.abs(kernel.matrix(times)).sum(axis=1).max()
    assert sums <= crowd_of(kernel, times) <= 400.0


def test_windows_cover_a_trace_and_hold_each_secret() -> None:
    rng = generator("windows")
    for _ in range(300):
        n, most = int(rng.integers(2, 400)), int(rng.integers(10, 60))
        starts = rng.integers(0, n, int(rng.integers(0, 5)))
        secrets = [tuple(range(a, min(n, a + int(rng.integers(1, most // 2))))) for a in starts]
        try:
            windows = cut(n, secrets, most)
        except UnsupportedError:
            continue  # a chain of overlapping secrets
        assert windows[0][0] == 0 and windows[-1][1] == n
        assert all(a[1] == b[0] for a, b in pairwise(windows))
        assert all(min(2, n) <= end - start <= most + 2 for start, end in windows)
        assert all(any(a <= one[0] and one[-1] < b for a, b in windows) for one in secrets)
    with pytest.raises(UnsupportedError, match="fit into a window of 10 points"):
        cut(100, [tuple(range(11))], 10)
    assert all(end - start <= 10 for start, end in cut(100, [tuple(range(10))], 10))


# --- plans ----------------------------------------------------------------------------------------------------------

PRIOR = TracePrior(Matern32(30.0), np.array([[900.0, 200.0], [200.0, 400.0]]))
PLAN = TracePlan(PRIOR, SecretTimes(((600.0, 605.0),)), radius=20.0, error=20.0, noise="mixed")
UNEVEN = np.cumsum(generator("uneven times").uniform(2.0, 8.0, 240))


@pytest.mark.exhaust
def test_a_windowed_plan_states_at_least_the_loss_of_the_whole_trace() -> None:
    plan = replace(PLAN, window=30)
    for times in (UNEVEN, np.arange(240.0) * 5.0):
        design = design_release(plan, times)
        assert isinstance(design, WindowedDesign) and len(design.windows) >= 8
        whole = PRIOR.kernel.matrix(times - times[0])
        for one in design.guarantee.secrets:
            exact = max(
                information(condition(whole, one.places), design.axis_noise(k)).largest.upper / design.variances[k]
                for k in (0, 1)
            )
            assert plan.radius * np.sqrt(exact) <= one.mu <= plan.radius * np.sqrt(exact) * 1.02
        assert "windows of independent noise" in design.guarantee.caveats[0]
        budget = sum(float(design.axis_variances(k).sum()) * design.variances[k] for k in (0, 1))
        assert budget == pytest.approx(len(times) * plan.error**2)


@pytest.mark.exhaust
def test_every_time_of_a_windowed_trace_is_stated_and_alike_windows_are_computed_once() -> None:
    plan = replace(PLAN, window=20, noise="", secrets=SecretTimes())
    design = design_release(plan, np.arange(200.0) * 5.0)
    assert [one.places[0] for one in design.guarantee.secrets] == list(range(200))
    assert design.guarantee.noise == "all" and len({round(one.mu, 9) for one in design.guarantee.secrets}) < 120
    assert np.isfinite(list(design.guarantee.by_adversary.values())).all()


def test_a_kernel_that_does_not_fade_cannot_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.trace.release_design.MOST_COMPUTED", 40)
    prior = replace(PRIOR, kernel=Periodic(1.0, 60.0))
    with pytest.raises(UnsupportedError, match="has not faded"):
        design_release(replace(PLAN, prior=prior, window=20), UNEVEN)


@pytest.mark.exhaust
def test_one_secret_in_a_long_even_trace_is_stated_like_in_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(PLAN, secrets=SecretTimes(((300.0, 300.0),)))
    times = np.arange(200.0) * 5.0
    dense = design_trace(plan, times)
    monkeypatch.setattr("dovetail.trace.release_design.MOST_POINTS", 100)
    long = design_release(replace(plan, floor=0.01), times)
    assert isinstance(dense, TraceDesign) and isinstance(long, LongDesign)
    # the axes share the budget by 300 points around the secret, here all of them
    assert long.guarantee.mu == pytest.approx(dense.guarantee.mu, rel=1e-3)
    assert long.guarantee.by_adversary[SIGHTING] == pytest.approx(dense.guarantee.by_adversary[SIGHTING], rel=1e-4)
    assert long.guarantee.by_adversary[UNKNOWN] >= dense.guarantee.by_adversary[UNKNOWN]
    assert long.guarantee.by_adversary["length x 3"] == pytest.approx(
        dense.guarantee.by_adversary["length x 3"], rel=1e-3
    )
    assert long.worst_error() == pytest.approx(dense.worst_error(), rel=1e-4)


@pytest.mark.exhaust
@pytest.mark.parametrize("kernel", [RBF(6.103), Matern32(20.0)], ids=repr)
@pytest.mark.parametrize("name", ["full", "mixed"])
def test_the_worst_sighting_of_a_long_trace_is_that_of_its_matrix(kernel: Kernel, name: str) -> None:
    noise = design_regular(RegularPrior.of(kernel, 90), 30, Budget(90, 0.02), name=name).noise
    exact = Posterior.of(kernel.matrix(np.arange(90.0)), noise.matrix()).sightings([30]).max()
    assert regular_sighting(noise) == pytest.approx(exact, rel=1e-4)


@pytest.mark.exhaust
def test_a_hundred_thousand_points_are_planned_with_every_adversary() -> None:
    times, prior = np.arange(100_000.0) * 15.0, TracePrior(Matern32(200.0), np.diag([2.2e6, 4.8e6]))
    plan = plan_for_error(TracePlan(prior, SecretTimes(((750_000.0, 750_000.0),)), 100.0, 20.0), times)
    guarantee = design_release(plan, times).guarantee
    assert guarantee.noise == "mixed" and 0.0 < guarantee.mu < guarantee.by_adversary[SIGHTING] < np.inf


@pytest.mark.exhaust
def test_the_step_of_a_long_trace_is_fine_enough_for_its_guarantee() -> None:
    times = np.arange(210.0) * 5.0
    secret = SecretTimes(((600.0, 600.0),))
    made = error_for(0.05, PRIOR, secret, times, radius=20.0, noise="all")
    assert design_release(made, times).guarantee.mu <= 0.05 and made.step < replace(made, step=0.0).grid
    kept = plan_for_error(replace(PLAN, step=2.0**-12), times)
    assert kept.step == 2.0**-12 and plan_for_error(PLAN, times[:150]) is PLAN
