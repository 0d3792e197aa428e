"""A randomizer of another distribution may promise less than it keeps, never more; and tallies may count anything."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from importlib.metadata import EntryPoint
from math import exp
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
import pytest
from tests.extension.tiny import Rotated

import dovetail as dt
from dovetail.core import registry
from dovetail.core.channel import DenseChannel
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import RANDOMIZERS, SHUFFLERS
from dovetail.job.plan_file import plan_toml
from dovetail.plan.planner import plan_collection
from dovetail.randomize.laplace import Laplace
from dovetail.report.number_format import label_of


class Loose(Rotated):  # type: ignore[misc]
    """Its guarantee is a quarter larger than what a report loses."""

    name: ClassVar[str] = "loose"

    @property
    def guarantee(self) -> dt.LocalDP:
        return dt.LocalDP(1.25 * self.epsilon, source="a bound by hand")


class Lie(Rotated):  # type: ignore[misc]
    """Its guarantee is half of what a report loses."""

    name: ClassVar[str] = "lie"

    @property
    def guarantee(self) -> dt.LocalDP:
        return dt.LocalDP(0.5 * self.epsilon, source="a mistake")


class Sometimes(Rotated):  # type: ignore[misc]
    """A lie that no example shows: only where reports are rotated by three places."""

    name: ClassVar[str] = "sometimes"

    @property
    def guarantee(self) -> dt.LocalDP:
        return dt.LocalDP(self.epsilon / (2.0 if self.shift == 3 else 1.0), source="a mistake in one case")


class Approximate(Rotated):  # type: ignore[misc]
    """Half of epsilon, but for a delta: (e^2 - e) / (e^2 + 2) = 0.4975 is the least that holds of three symbols."""

    name: ClassVar[str] = "approximate"
    label: ClassVar[str] = "approximate response"
    missed: ClassVar[float] = 0.0

    @property
    def guarantee(self) -> dt.LocalDP:
        half = exp(self.epsilon / 2)
        return dt.LocalDP(
            self.epsilon / 2, (half**2 - half) / (half**2 + self.k - 1) * (1.0 - self.missed), source="its channel"
        )


class Short(Approximate):  # type: ignore[misc]
    """Its delta is a millionth too small."""

    name: ClassVar[str] = "short"
    missed: ClassVar[float] = 1e-6


class Half(Laplace):  # type: ignore[misc]
    """Laplace noise that promises half of what its law has."""

    name: ClassVar[str] = "half"

    @property
    def guarantee(self) -> dt.LocalDP:
        return dt.LocalDP(0.5 * self.epsilon, source="a mistake")


class Silent(dt.FrequencyRandomizer):
    """Half of the reports of randomized response are the last symbol k, which supports no value; k + 1 counts."""

    name: ClassVar[str] = "silent"
    label: ClassVar[str] = "silent response"
    k, epsilon = 3, 1.0
    guarantee = dt.LocalDP(1.0, source="half of the reports say nothing")
    ratio, report_bits = dt.KRR(k=3, epsilon=1.0).ratio, 2

    def channel(self) -> DenseChannel:
        law = dt.KRR(k=3, epsilon=1.0).channel().matrix()
        return DenseChannel(np.column_stack([law / 2, np.full(3, 0.5)]))

    def _randomize(self, values: Any, rng: dt.Entropy) -> Any:
        raise NotImplementedError

    def check_reports(self, reports: Any) -> Any:
        return np.asarray(reports)

    def tally(self, reports: Any) -> Any:
        return np.bincount((np.asarray(reports) + 1) % 4, minlength=4)  # the silent ones first

    def invert(self, counts: Any, n: Any) -> Any:
        rest = 1.0 / (exp(1.0) + 2.0) / 2
        return (np.asarray(counts)[..., 1:] / np.asarray(n)[..., None] - rest) / (rest * (exp(1.0) - 1.0))

    def variance(self, shares: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)


class Generous(Silent):
    """The last symbol k counts for every value, and none tells it from a report that counts for none."""

    name: ClassVar[str] = "generous"

    def tally(self, reports: Any) -> Any:
        counts = np.bincount(np.asarray(reports), minlength=4)
        return counts[:3] + counts[3]

    def invert(self, counts: Any, n: Any) -> Any:
        rest = 1.0 / (exp(1.0) + 2.0) / 2
        return (np.asarray(counts) / np.asarray(n)[..., None] - 0.5 - rest) / (rest * (exp(1.0) - 1.0))


def rehearsed(randomizer: Any) -> Any:
    table = pl.DataFrame({"answer": ["a", "b", "c"] * 50})
    asked = dt.Collection.of(
        table, private="answer", categories=["a", "b", "c"], randomizer=randomizer, rng=dt.simulation(1)
    )
    return dt.rehearse(asked, seed=2)


@pytest.mark.exhaust
def test_a_safe_but_loose_guarantee_is_admitted_and_the_report_says_so() -> None:
    report = rehearsed(Loose(k=3, epsilon=2.0))
    assert report.evaluation.local.epsilon == 2.5
    (line,) = [one for one in report.assumptions if "safe but loose" in one]
    assert "epsilon 2.5, and a report of this channel has 2" in line
    assert not any("loose" in one for one in rehearsed(dt.KRR(k=3, epsilon=2.0)).assumptions)


def test_a_law_that_loses_more_than_the_guarantee_is_refused_before_it_is_built_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By name, by its examples; as an object when it is made."""
    kinds = (Lie, Loose, Sometimes, Approximate, Short, Half)
    points = [EntryPoint(one.name, f"{__name__}:{one.__name__}", "dovetail.randomizers") for one in kinds]
    monkeypatch.setattr(registry, "_points", lambda group, path: tuple(points))
    for name, said in {
        "lie": "promises epsilon .*, but a report of its channel has",
        "short": "promises epsilon 0.5 and delta .*, but its law has delta .* at this epsilon",
        "half": "promises epsilon 1, but a report has 2 by its law",
    }.items():
        with pytest.raises(UnsupportedError, match=f"is refused: randomizer '{name}' {said}"):
            RANDOMIZERS[name]
    assert [RANDOMIZERS[one.name] for one in (Loose, Sometimes, Approximate)] == [Loose, Sometimes, Approximate]
    with pytest.raises(UnsupportedError, match="'sometimes' promises epsilon 1, but a report of its channel has 2"):
        Sometimes(k=5, epsilon=2.0, shift=3)
    with pytest.raises(UnsupportedError, match="'half' promises epsilon 1, but a report has 2 by its law"):
        Half(lower=0.0, upper=1.0, epsilon=2.0, grid=0.125)
    assert Sometimes(k=5, epsilon=2.0, shift=2).guarantee.epsilon == 2.0


def test_a_plan_asks_a_loose_randomizer_for_the_promise_and_not_for_its_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = EntryPoint("loose", f"{__name__}:Loose", "dovetail.randomizers")
    monkeypatch.setattr(registry, "_points", lambda group, path: (point,) if group == point.group else ())
    asked: dict[str, Any] = {"question": "frequency", "n": 10_000, "k": 4, "delta": 1e-6, "randomizer": "loose"}
    given = plan_collection(epsilon0=1.5, **asked)
    assert 1.5 * (1.0 - 1e-9) <= given.epsilon0 == given.randomizer.guarantee.epsilon <= 1.5
    written = tomllib.loads(plan_toml(given))["randomize"]
    assert Loose(k=4, epsilon=written["epsilon"]).guarantee.epsilon == given.epsilon0
    assert plan_collection(error=given.error95, **asked).epsilon0 == pytest.approx(1.5, rel=1e-5)
    same = plan_collection(epsilon0=written["epsilon"], **{**asked, "randomizer": "krr"})
    assert given.error95 == pytest.approx(same.error95, rel=1e-9)
    assert given.epsilon == pytest.approx(same.epsilon, rel=1e-3)


def test_sentences_say_the_label_of_a_mechanism_and_words_where_it_is_not_installed() -> None:
    assert label_of(SHUFFLERS, "within_groups") == "uniform shuffle inside each group"
    assert label_of(SHUFFLERS, "of_somebody_else") == "of somebody else"


@pytest.mark.parametrize("kind", [Silent, Generous])
def test_indicators_are_unbiased_whatever_a_tally_counts(kind: Any) -> None:
    silent = kind()
    assert silent.support(np.arange(4)).sum(axis=1).tolist() == [1, 1, 1, 0]
    found = silent.indicators(np.array([3, 0, 1, 2, 3]))
    np.testing.assert_array_equal(found[0], found[4])
    np.testing.assert_allclose(silent.channel().matrix() @ silent.indicators(np.arange(4)), np.eye(3), atol=1e-12)
    assert silent.slack == pytest.approx(0.0, abs=1e-12) and silent.ratio < Fraction(272, 100)
