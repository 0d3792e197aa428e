"""Estimates from counted batches: those of the library on the same reports, with intervals that cover."""

from typing import Any

import numpy as np
import pytest
from tests.collect.analyzer.world import KRR, LAPLACE, World, batch, campaign, reports_of, seal
from tests.statistics import rng_of

import dovetail as dt
from dovetail import estimate
from dovetail.collect.analyzer.answers import window_estimates
from dovetail.collect.analyzer.tallies import (
    add_tallies,
    estimator_tally,
    expand_tally,
    tallies_by_group,
    tally_reports,
)
from dovetail.collect.http import Refusal
from dovetail.randomize.sampling.open_reports import from_device
from dovetail_device.entropy import system_entropy

WINDOW = 'name = "window"\nlower = 0.0\nupper = 10.0\nepsilon = 4.0\ngrid = 0.5\nwindow = 3'
UNARY = 'name = "unary"\nk = 20\nepsilon = 2.0'
HADAMARD = 'name = "hadamard"\nk = 40\nepsilon = 2.0'
HASHING = 'name = "local_hashing"\nk = 40\nepsilon = 2.0'
FREQUENCIES = [KRR, UNARY, HADAMARD, HASHING]
CLAMPED = 'name = "budget_laplace"\nlower = 1.0\nupper = 9.0\nepsilon = 2.0\nbeta = 0.5\nrho = 0.9\ngrid = 0.125'
RASE = 'name = "budget_laplace"\nlower = 1.0\nupper = 11.0\nepsilon = 700.0\nbeta = 0.6\nrho = 0.9\ngrid = 1.0'
GROUPS = '[groups]\nnames = ["north", "south", "west"]'


def arrays(world: World, reports: list[Any]) -> Any:
    """Device reports as the library's functions take them."""
    if world.campaign.mechanism.name == "unary":
        return np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), -1)
    return np.array(reports, dtype=np.uint64 if world.campaign.mechanism.name == "local_hashing" else np.int64)


def same(found: dict[str, Any], wanted: dt.Estimate) -> None:
    """The document says exactly what the estimate does."""
    assert found["value"] == np.atleast_1d(wanted.value).tolist()
    assert found["standard_error"] == np.atleast_1d(wanted.standard_error).tolist()
    assert found["population_error"] == np.atleast_1d(wanted.population_error).tolist()
    assert found["bias_bound"] == wanted.bias_bound and found["n"] == wanted.n


@pytest.mark.parametrize("randomizer", FREQUENCIES)
def test_frequencies_are_those_of_the_library_exactly(randomizer: str) -> None:
    world = World((campaign(randomizer),))
    reports = arrays(world, world.run(1, [0] * 30 + [1] * 20 + [2] * 10))
    wanted = dt.estimate_frequencies(from_device(world.campaign.mechanism), reports)
    (found,) = world.answers.document(world.answers.latest())["groups"]
    same(found, wanted)
    low, high = wanted.interval()
    assert found["interval"] == [list(ends) for ends in zip(low.clip(0, 1), high.clip(0, 1), strict=True)]
    projected = world.answers.frequencies()["groups"][0]["projected"]
    assert np.allclose(projected, estimate.project_to_simplex(wanted).value, atol=1e-15)


@pytest.mark.parametrize("randomizer", [LAPLACE, CLAMPED])
def test_means_medians_and_quantiles_are_those_of_the_library_exactly(randomizer: str) -> None:
    world = World((campaign(randomizer),))
    reports = arrays(world, world.run(1, [2.0] * 30 + [8.0] * 50))
    analyst = from_device(world.campaign.mechanism)
    found = world.answers.document(world.answers.latest(), detail=True)
    same(found["groups"][0], dt.estimate_mean(analyst, reports))
    median = estimate.estimate_median(analyst, reports)
    assert found["median_of_reports"]["value"] == float(median.value)
    assert found["median_of_reports"]["bias_bound"] == float(median.bias_bound)
    assert found["best"]["name"] == estimate.best_mean(analyst, reports).name
    for each in found["quantiles"]:
        wanted = estimate.estimate_quantile(analyst, reports, share=each["share"])
        assert (each["value"], each["low"], each["high"]) == (wanted.value, wanted.low, wanted.high)
    assert [each["share"] for each in found["quantiles"]] == [0.1, 0.25, 0.5, 0.75, 0.9]


def test_means_of_windows_are_those_of_the_library_and_have_no_quantiles() -> None:
    world = World((campaign(WINDOW),))
    reports = arrays(world, world.run(1, [2.0] * 30 + [8.3] * 50))
    found = world.answers.document(world.answers.latest(), detail=True)
    same(found["groups"][0], dt.estimate_mean(from_device(world.campaign.mechanism), reports))
    assert "quantiles" not in found and "median_of_reports" not in found


@pytest.mark.parametrize("randomizer", [KRR, LAPLACE])
def test_public_groups_are_estimated_from_their_own_reports(randomizer: str) -> None:
    world = World((campaign(randomizer, more=GROUPS),))
    names = ["north", "south", "south"] * 20
    reports = np.array(world.run(1, [1, 2, 2] * 20, groups=names))
    analyst = from_device(world.campaign.mechanism)
    one = dt.estimate_frequencies if randomizer == KRR else dt.estimate_mean
    found = {each["group"]: each for each in world.answers.document(world.answers.latest())["groups"]}
    assert list(found) == [None, "north", "south"]  # nobody came from the west
    same(found[None], one(analyst, reports))
    for name in ("north", "south"):
        same(found[name], one(analyst, reports[np.array(names) == name]))


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", [*FREQUENCIES, LAPLACE])
def test_tallies_add_and_come_back(randomizer: str) -> None:
    world = World((campaign(randomizer),))
    reports = arrays(world, reports_of(world.campaign, [0, 1, 2, 3] * 10, randomizer))
    analyst: Any = from_device(world.campaign.mechanism)
    whole = tally_reports(analyst, reports, group="")
    parts = [
        tally_reports(analyst, part, group=name) for name, part in zip("ab", (reports[:7], reports[7:]), strict=True)
    ]
    assert add_tallies(parts) == whole == add_tallies([whole]) and tallies_by_group(parts) == {
        "a": parts[0],
        "b": parts[1],
    }
    if randomizer == LAPLACE:
        assert np.array_equal(expand_tally(whole), np.sort(np.clip(reports, 0, 100)))
    else:
        assert np.array_equal(estimator_tally(analyst, whole).counts, analyst.tally(reports))


@pytest.mark.exhaust
def test_intervals_of_windows_are_normal_ones_of_independent_rounds() -> None:
    """Those of rounds are the library's, exactly; see above."""
    world = World((campaign(LAPLACE),))
    for t in range(1, 11):
        world.run(t, [20.0] * 5 + [70.0] * 5)
    rounds = world.answers.rounds()
    errors = np.array([float(each.by_group[""].standard_error) for each in rounds])
    values = np.array([float(each.by_group[""].value) for each in rounds])
    for t, width in ((2, 2), (10, 2), (9, 5), (10, 10)):
        here = slice(t - width, t)
        found = window_estimates(rounds, t, width=width).by_group[""].estimate
        reach = 1.959963984540054 * np.sqrt((errors[here] ** 2).sum()) / width
        assert found.interval() == pytest.approx((values[here].mean() - reach, values[here].mean() + reach))


def test_a_window_is_the_mean_of_its_rounds_and_variances_add() -> None:
    world = World((campaign(),))
    for t in (1, 2, 3):
        world.run(t, [0, 1, 2, 3] * 10)
    rounds = [world.answers.at(t).by_group[""] for t in (2, 3)]
    found = world.answers.window(3, width=2)["groups"][0]
    assert np.allclose(found["value"], np.mean([each.value for each in rounds], axis=0), rtol=0, atol=1e-15)
    errors = np.array([each.standard_error for each in rounds])
    assert np.allclose(found["standard_error"], np.sqrt((errors**2).sum(axis=0)) / 2, rtol=1e-14)
    assert found["n"] == 80 and found["missing"] == []


@pytest.mark.exhaust
def test_a_window_names_the_rounds_that_are_missing() -> None:
    world = World((campaign(LAPLACE, small="merge"),))
    for rounds in ((1,), (2, 3), (6,)):
        sealed = seal(world.campaign, reports_of(world.campaign, [50.0] * 5, str(rounds)), round=1)
        world.analyzer.receive(batch(world.campaign, sealed, rounds=rounds))
    answers = world.answers
    assert answers.window(6, width=6)["groups"][0]["missing"] == [2, 4, 5]
    assert answers.window(4, width=2)["groups"][0]["missing"] == [4]
    for t, width in ((5, 2), (7, 1), (1, 2)):  # nothing there; not counted yet; begins before the first round
        with pytest.raises(Refusal):
            answers.window(t, width=width)
    with pytest.raises(Refusal, match="merged into the batch of round 3"):
        answers.at(2)


@pytest.mark.exhaust
def test_algorithm_3_reproduces_window_queries_exactly_without_noise() -> None:
    """One full round after the other: broadcast, BR on the device, shuffle, estimate, store, query."""
    asked = campaign(RASE, budget=1e6, more="[precision]\nbeta = 0.6\nrho = 0.9")
    world, rng, words = World((asked,)), rng_of("algorithm 3"), system_entropy()
    assert world.answers.requirement() == {"campaign": asked.id, "beta": 0.6, "rho": 0.9}
    means = []
    for t in range(1, 7):
        values = [float(1 + (3 * t + i) % 11) for i in range(13)]
        reports = [asked.mechanism.randomize(value, words) for value in values]
        shuffled = [seal(asked, reports, round=t)[i] for i in rng.permutation(13)]
        world.analyzer.receive(batch(asked, shuffled, rounds=(t,)))
        means.append(np.mean(values))
    for t in range(1, 7):
        assert world.answers.document(world.answers.at(t))["groups"][0]["value"] == pytest.approx(
            [means[t - 1]], 1e-14
        )
        for width in range(1, t + 1):
            found = world.answers.window(t, width=width)["groups"][0]
            assert found["value"] == pytest.approx([np.mean(means[t - width : t])], 1e-14)
            assert found["standard_error"][0] < 1e-14


def test_questions_that_do_not_fit_are_refused() -> None:
    world = World((campaign(LAPLACE),))
    for ask in (
        world.answers.latest,
        world.answers.frequencies,
        world.answers.requirement,
        lambda: world.answers.at(1),
    ):
        with pytest.raises(Refusal) as caught:
            ask()
        assert caught.value.kind == "not_found"
    world.run(1, [1.0, 2.0, 3.0])
    with pytest.raises(Refusal, match="asks for a number"):
        world.answers.frequencies()
