"""A randomizer of another distribution may promise less than it keeps, never more; and tallies may count anything."""

from __future__ import annotations

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
from dovetail.core.stages import RANDOMIZERS


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


def rehearsed(randomizer: Any) -> Any:
    table = pl.DataFrame({"answer": ["a", "b", "c"] * 50})
    asked = dt.Collection.of(
        table, private="answer", categories=["a", "b", "c"], randomizer=randomizer, rng=dt.simulation(1)
    )
    return dt.rehearse(asked, seed=2)


def test_a_safe_but_loose_guarantee_is_admitted_and_the_report_says_so() -> None:
    report = rehearsed(Loose(k=3, epsilon=2.0))
    assert report.evaluation.local.epsilon == 2.5
    (line,) = [one for one in report.assumptions if "safe but loose" in one]
    assert "epsilon 2.5, and a report of this channel has 2" in line
    assert not any("loose" in one for one in rehearsed(dt.KRR(k=3, epsilon=2.0)).assumptions)


def test_a_channel_that_loses_more_than_the_guarantee_is_refused_at_its_first_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UnsupportedError, match="'lie' promises epsilon 1, but a report of its channel has 2"):
        rehearsed(Lie(k=3, epsilon=2.0))
    points = [EntryPoint(one.name, f"{__name__}:{one.__name__}", "dovetail.randomizers") for one in (Lie, Loose)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.raises(UnsupportedError, match="is refused: randomizer 'lie' promises"):
        RANDOMIZERS["lie"]
    assert RANDOMIZERS["loose"] is Loose


def test_indicators_are_unbiased_whatever_a_tally_counts() -> None:
    silent = Silent()
    assert silent.support(np.arange(4)).sum(axis=1).tolist() == [1, 1, 1, 0]
    found = silent.indicators(np.array([3, 0, 1, 2, 3]))
    np.testing.assert_array_equal(found[0], found[4])
    np.testing.assert_allclose(silent.channel().matrix() @ silent.indicators(np.arange(4)), np.eye(3), atol=1e-12)
    assert silent.slack == pytest.approx(0.0, abs=1e-12) and silent.ratio < Fraction(272, 100)
