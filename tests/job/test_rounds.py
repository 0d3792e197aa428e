"""A stream of rounds: windows are means of rounds, budgets hold, and what does not fit is refused in time."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.collect.device.made import campaign
from tests.job.fleets import OWN, ROSTER, VALUES, Truth, exact, fleet_run, long
from tests.statistics import LONG, SHORT, expect_caught, expect_mean, expect_standard_error

from dovetail.account.amplify import amplify
from dovetail.account.compose import compose
from dovetail.account.rounds import ShuffledRound
from dovetail.core.entropy import simulation, system_entropy
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.missing import Missing
from dovetail.core.stages import NumericRandomizer
from dovetail.job.fleet import Fleet, FleetRound, FleetRun, time_window
from dovetail.job.stream import Batches
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.laplace import Laplace
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.rase import RASE
from dovetail.shuffle.uniform import Uniform
from dovetail_protocol.exact_thresholds import as_written


@pytest.mark.parametrize(
    "shuffler",
    [RASE.fit(OWN), Mallows.fit(OWN, alpha=2.0), RASE.fit(OWN, k=2, alpha=1.0, refine="blocks")],
    ids=lambda shuffler: shuffler.name,
)
@pytest.mark.parametrize("noiseless", [True, False], ids=["identity", "epsilon of 700"])
def test_without_noise_every_window_is_the_mean_of_the_true_values(shuffler: RASE | Mallows, noiseless: bool) -> None:
    """Algorithm 3 from end to end. On 8 steps an epsilon of 700 adds noise with probability e^-87 per report."""
    truth = np.arange(64.0).reshape(16, 4) % 8 * 4
    loud = Fleet(ROSTER, Laplace(lower=0.0, upper=32.0, epsilon=700.0, grid=4.0), shuffler, math.inf)
    run = FleetRun(Fleet(ROSTER, Truth(), shuffler, math.inf, exact) if noiseless else loud)
    assert len(run.submit_table(long(truth), rng=system_entropy())) == 16
    for t in range(1, 17):
        for width in (1, 2, 4, 8, 16):
            if width <= t:
                answer = run.time_window(t, width=width)
                assert float(answer.estimate.value) == truth[t - width : t].mean()
                rounding = 0.0 if noiseless else 4.0 / 2 / math.sqrt(4 * width)  # at most, of values anywhere
                assert float(answer.estimate.standard_error) == pytest.approx(rounding) and answer.missing == ()
                assert answer.estimate.n == 4 * width


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "randomizer",
    [
        Laplace(lower=0.0, upper=100.0, epsilon=1.0, grid=1.0),
        BudgetLaplace(lower=4.0, upper=104.0, epsilon=0.5, beta=0.5, rho=0.9, grid=1.0),
    ],
    ids=lambda randomizer: str(randomizer.name),
)
def test_windows_are_unbiased_with_the_stated_error(randomizer: NumericRandomizer) -> None:
    """Values on the grid; squared errors are unbiased for squared standard errors."""
    width, ends = 2, range(2, 2401, 2)
    truth = np.random.default_rng(1).integers(4, 100, (2400, 4)).astype(float)
    run = FleetRun(Fleet(ROSTER, randomizer, RASE.fit(OWN), math.inf))
    run.submit_table(long(truth), rng=simulation(1))
    answers = [run.time_window(t, width=width).estimate for t in ends]
    means = [truth[t - width : t].mean() for t in ends]
    errors = np.array([float(answer.value) for answer in answers]) - means
    expect_mean(errors, 0.0)
    stated = np.array([float(answer.standard_error) for answer in answers])
    expect_standard_error(errors, stated)
    for factor in (SHORT, LONG):
        expect_caught(expect_standard_error, errors, factor * stated)


def test_a_window_says_which_rounds_are_missing() -> None:
    run = fleet_run()
    done = {t: run.submit(t, VALUES, rng=simulation(t)) for t in (1, 2, 5)}
    answer = run.time_window(5, width=4)
    assert answer.missing == (3, 4)
    held = [each for t in (2, 5) if (each := done[t].estimate) is not None]
    assert float(answer.estimate.value) == pytest.approx(np.mean([float(each.value) for each in held]))
    assert answer.estimate.n == 8
    errors = [float(each.standard_error) for each in held]
    assert float(answer.estimate.standard_error) == pytest.approx(math.hypot(*errors) / 2)


def test_only_the_devices_present_are_shuffled_and_counted() -> None:
    run = FleetRun(Fleet(ROSTER, Truth(), RASE.fit(OWN), math.inf, exact))
    done = run.submit(1, {"lamp": 8.0, "kettle": 16.0}, rng=system_entropy())
    assert done.estimate is not None and (float(done.estimate.value), done.estimate.n) == (12.0, 2)
    assert (done.absent, done.held_back) == (2, 0)
    empty = run.submit(2, {}, rng=system_entropy())
    assert empty.estimate is None and empty.absent == 4
    assert run.time_window(2, width=2).missing == (2,)


def test_budgets_add_and_a_spent_device_stops() -> None:
    run = fleet_run(cap=2.5)
    for t in range(1, 5):
        done = run.submit(t, VALUES if t > 1 else {"oven": 1.0}, rng=simulation(t))
    assert run.spent == {"kettle": 2.0, "oven": 2.0, "lamp": 2.0, "fridge": 2.0}
    assert [each.held_back for each in run.rounds] == [0, 0, 1, 4]
    assert done.estimate is None and run.time_window(4, width=2).missing == (4,)
    assert run.guarantee.epsilon == 2.0 and "2 reports" in run.guarantee.source
    facts = run.summary()
    assert (facts["reports"], facts["held_back"], facts["devices_at_cap"], facts["largest_spent"]) == (8, 5, 4, 2.0)
    assert facts["alpha_of_all_rounds"] == 0.0


@pytest.mark.parametrize(("cap", "epsilon", "reports"), [(0.3, 0.1, 3), (1.0, 0.1, 10), (0.9, 0.7, 1)])
def test_the_cap_holds_in_exact_decimals_as_on_devices(cap: float, epsilon: float, reports: int) -> None:
    """Ten times .1 is 1, as people write it, although ten times its double is more than 1."""
    run = fleet_run(cap=cap, epsilon=epsilon)
    for t in range(1, 12):
        run.submit(t, VALUES, rng=simulation(t))
    sent = int(run.fleet.most_reports)
    assert sent == reports
    assert sent * as_written(epsilon) <= as_written(run.fleet.cap) < (sent + 1) * as_written(epsilon)
    assert run.summary()["reports"] == 4 * sent
    assert as_written(cap) >= as_written(run.summary()["largest_spent"]) >= sent * as_written(epsilon)
    assert Fraction(run.guarantee.epsilon) >= sent * as_written(epsilon)
    krr = f'name = "krr"\nk = 4\nepsilon = {epsilon}'
    assert campaign(randomizer=krr, budget=cap).affordable == reports


def test_the_estimates_are_a_table() -> None:
    run = FleetRun(Fleet(ROSTER, Truth(), RASE.fit(OWN), math.inf, exact))
    run.submit(2, VALUES, rng=system_entropy())
    run.submit(3, {}, rng=system_entropy())
    assert run.estimates().rows() == [(2, 25.0, 0.0, 4, 0, 0, 0), (3, None, None, 0, 4, 0, 0)]
    assert fleet_run().estimates().height == 0


def test_one_simulated_round_takes_the_promise_away() -> None:
    run = fleet_run()
    run.submit(1, VALUES, rng=system_entropy())
    assert not run.guarantee.caveats
    run.submit(2, VALUES, rng=simulation(1))
    assert "protects nobody" in str(run.guarantee.caveats)


def test_a_table_and_single_rounds_give_the_same_estimates() -> None:
    truth = np.random.default_rng(2).uniform(0, 100, (6, 4))
    by_table, by_hand = fleet_run(), fleet_run()
    seen: list[tuple[int, int]] = []
    rng = simulation(9)
    by_table.submit_table(long(truth), rng=simulation(9), progress=lambda done, total: seen.append((done, total)))
    for t, row in enumerate(truth, start=1):
        by_hand.submit(t, dict(reversed(list(zip(ROSTER, row.tolist(), strict=True)))), rng=rng)
    for one, other in zip(by_table.rounds, by_hand.rounds, strict=True):
        assert one.t == other.t and one.estimate is not None and other.estimate is not None
        assert float(one.estimate.value) == float(other.estimate.value)
    assert seen == [(done, 6) for done in range(1, 7)]


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy])
def test_any_arrow_table_is_a_stream(convert: Callable[[pl.DataFrame], Any]) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    run = fleet_run()
    run.submit_table(convert(long(np.full((3, 4), 50.0), first=7)), rng=simulation(1))
    assert [each.t for each in run.rounds] == [7, 8, 9] and run.last == 9


def test_rounds_without_an_estimate_are_missing() -> None:
    with pytest.raises(DataError, match="has an estimate"):
        time_window([FleetRound(1, None, 4, 0, False)], 1, width=1)


@pytest.mark.parametrize(("delta", "rounds", "total"), [(0.125, 3, 0.375), (0.5, 3, 1.0), (0.0, 3, 0.0)])
def test_a_device_fails_as_often_as_all_of_its_reports_together(delta: float, rounds: int, total: float) -> None:
    run = FleetRun(Fleet(ROSTER, Truth(claims=LocalDP(0.5, delta)), RASE.fit(OWN), math.inf, exact))
    for t in range(1, rounds + 1):
        run.submit(t, VALUES if t > 1 else {"kettle": 10.0, "oven": 60.0})
    assert (run.guarantee.epsilon, run.guarantee.delta) == (0.5 * rounds, total)


@pytest.mark.exhaust
def test_rounds_of_an_approximate_randomizer_are_not_promised_what_a_pure_one_keeps() -> None:
    sent = pl.DataFrame({"place": [*range(1000)] * 3, "time": [1] * 1000 + [2] * 1000 + [3] * 1000})
    batches = Batches.of(Uniform(1000), sent, honest=None)
    assert isinstance(batches, Batches)
    pure, approximate, hopeless = (
        batches.of_all_rounds(Truth(claims=LocalDP(1.0, delta)), most=3, delta=1e-6) for delta in (0.0, 1e-12, 1e-6)
    )
    assert isinstance(pure, CentralDP) and isinstance(approximate, CentralDP)
    assert pure.epsilon < approximate.epsilon and approximate.colluding == 3.0
    assert approximate.epsilon == compose([ShuffledRound(1.0, 512, times=3, delta0=1e-12)], delta=1e-6).epsilon
    assert isinstance(hopeless, Missing)


@pytest.mark.exhaust
def test_a_stream_is_charged_for_the_smallest_batches_of_any_device() -> None:
    sizes = pl.DataFrame({"group": [0, 0, 0, 1, 1, 1], "time": [1, 2, 3] * 2, "n": [900, 40, 300, 70, 500, 600]})
    batches = Batches(sizes, 1000, 1000)
    assert batches.smallest == 40
    randomizer = Truth(claims=LocalDP(1.0))
    for most, worst in ((1, [32]), (2, [32, 256]), (3, [32, 256, 512])):  # powers of two, rounded down
        exact = compose([ShuffledRound(1.0, n) for n in worst], delta=1e-6)
        found = batches.of_all_rounds(randomizer, most=most, delta=1e-6)
        assert isinstance(found, CentralDP) and found.colluding == most * 1.0
        assert exact.attack_lower <= found.epsilon <= exact.epsilon
    one = batches.of_a_round(randomizer, delta=1e-6)
    assert isinstance(one, CentralDP) and one.epsilon == amplify(randomizer, n=40, delta=1e-6).epsilon


@pytest.mark.exhaust
def test_people_who_are_not_honest_hide_nobody_in_any_round() -> None:
    sizes = pl.DataFrame({"group": [0, 0], "time": [1, 2], "n": [512, 512]})
    batches = Batches(sizes, 512, 500)
    randomizer = Truth(claims=LocalDP(1.0))
    found = batches.of_all_rounds(randomizer, most=2, delta=1e-6)
    assert isinstance(found, CentralDP) and (found.n, found.honest_n) == (512, 500)
    clones = [compose([ShuffledRound(1.0, n, times=2)], delta=1e-6) for n in (500, 512)]
    for promised, bound in zip((found.honest, found.all), clones, strict=True):
        assert bound.attack_lower <= promised <= bound.epsilon
    assert found.all < found.honest
    one = batches.of_a_round(randomizer, delta=1e-6)
    assert isinstance(one, CentralDP) and one.epsilon == amplify(randomizer, n=500, delta=1e-6).epsilon


def test_a_window_begins_with_the_round_that_its_width_says() -> None:
    rounds = [
        FleetRound(t, Estimate(np.array(float(t)), np.array(0.0), 10**t, np.array(0.0)), 0, 0, False)
        for t in (1, 2, 3)
    ]
    assert [time_window(rounds, 3, width=width).estimate.n for width in (1, 2, 3)] == [1000, 1100, 1110]
    assert float(time_window(rounds, 3, width=2).estimate.value) == 2.5
