"""Traces of many people: whole traces are mixed, names are dropped, and mu is what it was."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare, multivariate_normal
from tests.statistics import FALSE_ALARM, rng_of
from tests.trace.test_files import PLAN, PRIOR, TIMES, document, refused, walks

from dovetail.core.entropy import simulation, system_entropy
from dovetail.trace.kernels import Floats
from dovetail.trace.ledger import TraceLedger
from dovetail.trace.loss import condition
from dovetail.trace.noise import design_trace
from dovetail.trace.protect import ProtectedTrace, Protection, design_all, shuffle_traces
from dovetail.trace.trace import SecretTimes, Trace


def some(count: int, *, start: float = 0.0) -> list[Trace]:
    """Traces of as many people, all with the same gaps."""
    rng = np.random.default_rng(5)
    walk = [np.cumsum(rng.normal(0, 20, (10, 2)), axis=0) for _ in range(count)]
    return [Trace.of(f"t{i}", TIMES + start * i, points) for i, points in enumerate(walk)]


@pytest.mark.exhaust
def test_whole_traces_are_mixed_in_a_uniform_order() -> None:
    traces, rng = some(3), rng_of("uniform order of traces")
    released = Protection(PLAN, rng, None).protect(traces, ["a", "b", "c"])
    orders = dict.fromkeys([(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)], 0)
    for _ in range(3000):
        mixed = shuffle_traces(traces, ["a", "b", "c"], released, relative=False, rng=rng)
        orders[tuple(next(i for i, one in enumerate(released) if one.points is x) for x in mixed.points)] += 1
    counts = np.array(list(orders.values()))
    assert chisquare(counts).pvalue > FALSE_ALARM
    kept = 0.9 * counts + [300.0, 0, 0, 0, 0, 0]  # a shuffler that leaves one batch in ten as it came
    assert chisquare(kept).pvalue < FALSE_ALARM


def test_time_stamps_tell_traces_apart_unless_they_are_relative() -> None:
    traces, people = some(4, start=1000.0), ["a", "b", "b", None]
    released = Protection(PLAN, simulation(1), None).protect(traces, people)
    clock = shuffle_traces(traces, people, released, relative=False, rng=simulation(1)).central
    steps = shuffle_traces(traces, people, released, relative=True, rng=simulation(1)).central
    assert (clock.people, clock.traces, clock.crowd, clock.alike) == (3, 4, 1, 0)
    assert (steps.crowd, steps.alike) == (4, 4) and steps.mu == clock.mu == released[0].guarantee.mu
    assert "protects nobody" in steps.caveats[0]
    assert "adds nothing to mu" in steps.lines()[1] and "remains" in steps.lines()[2]


def log_density(released: Floats, secret: float, centre: float, noise: Floats) -> float:
    """Of a release about one coordinate, given the secret location and the mean of the trace, which are known."""
    prior = 900.0 * PRIOR.kernel.matrix(TIMES)
    seen = condition(prior, [4])
    mean = centre + seen.weights[:, 0] * (secret - centre)
    return float(multivariate_normal(mean, seen.residual + 900.0 * noise).logpdf(released))


def test_shuffling_adds_nothing_where_traces_name_their_owners() -> None:
    # two people far apart: the shuffled pair has the same likelihood ratio as the named one, so mu is what it was
    noise = design_trace(replace(PLAN, noise="uniform"), TIMES).noises[0]
    rng = np.random.default_rng(9)
    for apart, same in ((1e5, True), (0.0, False)):
        centres = (0.0, apart)
        released = [centre + rng.normal(0, 30, 10) for centre in centres]

        def density(
            secret: float, centres: tuple[float, float] = centres, released: list[Floats] = released
        ) -> float:
            ways = [
                log_density(released[i], secret, centres[0], noise)
                + log_density(released[j], centres[1], centres[1], noise)
                for i, j in ((0, 1), (1, 0))
            ]
            return float(logsumexp(ways))

        shuffled = density(25.0) - density(-25.0)
        named = log_density(released[0], 25.0, 0.0, noise) - log_density(released[0], -25.0, 0.0, noise)
        assert (abs(shuffled - named) < 1e-6) == same


@pytest.mark.exhaust
def test_many_patterns_are_designed_in_processes_and_give_the_same_noise() -> None:
    rng = np.random.default_rng(3)
    traces = [Trace.of(str(i), np.cumsum(rng.uniform(5, 25, 8)), np.zeros((8, 2))) for i in range(3)]
    plan = replace(PLAN, secrets=SecretTimes(((0.0, 0.0),)))
    steps: list[tuple[str, int, int]] = []
    apart = design_all(plan, traces, jobs=2, progress=lambda *step: steps.append(step))
    for one, other in zip(apart, design_all(plan, traces, jobs=1), strict=True):
        assert np.allclose(one.axis_noise(0), other.axis_noise(0)) and one.guarantee.mu == other.guarantee.mu
    assert steps[-1] == ("designing noise", 3, 3)


def test_the_ledger_is_read_once_for_many_traces(tmp_path: Path) -> None:
    ledger, traces = TraceLedger(tmp_path / "private"), some(5)
    people: list[str | None] = ["a", "b", "c", "a", None]
    done: list[ProtectedTrace] = Protection(PLAN, system_entropy(), ledger).protect(traces, people)
    assert [one.guarantee.releases for one in done] == [2, 1, 1, 2, 1]
    assert ledger.linked(traces, people) == [[3], [], [], [0], []]
    found = ledger.earlier_of_all(traces, people)
    assert [[one.entry.number for one in each] for each in found] == [[1, 4], [2], [3], [1, 4], [5]]


def test_many_people_are_collected_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    walks(4, 2).write_csv("public.csv")
    walks(3, 3).write_csv("many.csv")
    document(capsys, "fit", "public.csv", "--out", "prior.json")
    secret = ("--secret", "150..150", "--radius", "100", "--noise", "mixed", "--error", "60")
    document(capsys, "plan", "prior.json", *secret, "--times", "many.csv", "--out", "plan.json")
    found = document(capsys, "collect", "many.csv", "--plan", "plan.json", "--relative", "--out", "out.csv")
    table = pl.read_csv("out.csv")
    assert table.columns == ["trace", "time", "latitude", "longitude"] and found["smallest_crowd"] == 3
    assert table["trace"].unique(maintain_order=True).to_list() == [1, 2, 3]
    assert table.filter(pl.col("trace") == 2)["time"].to_list() == [15.0 * i for i in range(30)]
    assert found["people"] == 3 and len(found["central"]) == 3 and json.loads(Path("plan.json").read_text())
    for arguments, word in (
        (("collect", "many.csv", "--plan", "plan.json", "--out", "out.gpx"), "are written as"),
        (("collect", "many.csv", "--plan", "plan.json", "--out", "out.csv"), "exists already"),
    ):
        assert word in refused(capsys, *arguments)
