"""A question of another distribution is asked like a built-in one, from a configuration, in memory and in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import polars as pl
import pytest
from annotated_types import Ge, Le

import dovetail as dt
from dovetail.collect.campaign.terms import asked_of, question_about
from dovetail.collect.simulate.deployment import ThrowawayCampaign, schedule
from dovetail.collect.simulate.faults import FaultRates
from dovetail.collect.simulate.simulation import simulate
from dovetail.core import registry
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question, Values
from dovetail.job.question_plan import plan_question
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail_protocol.asked import Part, Symbol


@dataclass(frozen=True)
class Square(Question):
    """The mean of the square of a number that is rounded at random to an even grid: biased by what rounding adds."""

    lower: float
    upper: float
    points: int = 11
    name: ClassVar[str] = "square"
    label: ClassVar[str] = "the mean square of a number"
    measure: ClassVar[str] = "mean square"
    needs = "frequency"
    needs_names: ClassVar[bool] = True
    hidden: ClassVar[Missing | None] = Missing("nobody guesses squares")

    @dataclass
    class Settings:
        """Of a configuration.

        Parameters
        ----------
        points
            Of the grid.
        """

        points: Annotated[int, Ge(2), Le(64)] = 11

    @classmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        return cls(float(data.lower), float(data.upper), **settings)

    @property
    def _grid(self) -> OpenNumbers:
        return OpenNumbers(self.lower, self.upper, self.points)

    @property
    def column(self) -> dict[str, Any]:
        return {"lower": self.lower, "upper": self.upper}

    @property
    def domain(self) -> dict[str, Any]:
        return {"k": self.points}

    @property
    def names(self) -> list[str] | None:
        return [f"{one:g}" for one in self._grid.decode(np.arange(self.points))]

    @property
    def labels(self) -> list[str]:
        return ["mean square"]

    @property
    def span(self) -> tuple[float, float] | None:
        return 0.0, max(self.lower**2, self.upper**2)

    def answer(self, values: Values, rng: Entropy) -> Values:
        return self._grid.randomize(values, rng)

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        return (Symbol((Part((names[0],), "even", self.points),)),)

    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        squares = self._grid.decode(np.arange(self.points)) ** 2
        (value,), off = noise.moments(tally, squares[None], people)
        error = np.sqrt(off[0, 0] + squares.max() ** 2 / people.n)
        return Estimate(np.asarray(value), error, people.n, error, bias_bound=self._grid.step**2 / 4.0)

    def truth(self, values: Values) -> list[float]:
        return [float(np.mean(values**2))]

    def described(self, private: str) -> dict[str, Any]:
        return {"kind": "square", "domain": f"a number between {self.lower:g} and {self.upper:g}"}


N = 400
TABLE = pl.DataFrame({"id": range(N), "x": np.linspace(0.0, 10.0, N), "class": ["a", "b"] * (N // 2)})
CONFIG: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"person": "id", "private": "x", "lower": 0.0, "upper": 10.0},
    "question": {"ask": "square"},
}
NOISES: dict[str, dict[str, Any]] = {
    "local": {"randomize": {"epsilon": 6.0}},
    "shuffler": {"promise": {"trust": "shuffler", "epsilon": 2.0, "delta": 1e-2}},
    "users": {"promise": {"trust": "users", "epsilon": 6.0, "delta": 1e-2}},
    "classes": {
        "randomize": {"epsilon": 6.0, "by": "class", "epsilons": {"a": 5.0}},
        "data": {**CONFIG["data"], "public": ["class"]},
    },
}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question, as by an entry point."""
    point = EntryPoint("square", f"{__name__}:Square", "dovetail.questions")
    known = registry._points
    monkeypatch.setattr(
        registry, "_points", lambda group, path: (point,) if group == "dovetail.questions" else known(group, path)
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("noise", NOISES)
def test_a_question_of_another_distribution_runs_under_every_noise(noise: str, tmp_path: Path) -> None:
    asked = {**CONFIG, **NOISES[noise]}
    TABLE.write_parquet(tmp_path / "table.parquet")
    in_files = {**asked, "data": {**asked["data"], "path": str(tmp_path / "table.parquet")}}
    found = [
        dt.run(asked, table=TABLE, out=tmp_path / "memory", ledger=tmp_path / "one"),
        dt.engine.run(in_files, out=tmp_path / "files", ledger=tmp_path / "two", workers=1),
    ]
    truth = float(np.mean(TABLE["x"].to_numpy() ** 2))
    for report in found:
        overall = report.evaluation.estimates.overall
        assert report.document()["estimates"]["measure"] == "mean square"
        assert abs(overall.value[0] - truth) < 6 * overall.standard_error[0] + overall.bias_bound
    assert all("mean square" in (tmp_path / place / "report.html").read_text() for place in ("memory", "files"))
    with pytest.raises(ConfigError, match=r"unknown key `question\.pionts`"):
        dt.run({**asked, "question": {"ask": "square", "pionts": 3}}, table=TABLE, ledger=tmp_path / "one")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("trust", "wish"), [("local", {"epsilon0": 6.0}), ("shuffler", {"epsilon": 2.0})])
def test_a_question_of_another_distribution_is_planned(trust: str, wish: dict[str, float]) -> None:
    plan = plan_question("square", settings={}, data={"lower": 0.0, "upper": 10.0}, n=N, trust=trust, **wish)
    assert isinstance(plan.question, Square) and 0.0 < plan.standard_error < 100.0 and plan.central.epsilon > 0.0


@pytest.mark.exhaust
@pytest.mark.usefixtures("installed")
def test_a_question_of_another_distribution_is_asked_in_a_campaign_by_devices_that_do_not_know_it() -> None:
    column = {"private": "x", "lower": 0.0, "upper": 10.0}
    question = question_about("square", column, {"points": 5}, name="a test")
    asked = asked_of(question, private="x", settings={"points": 5}, k=5)
    people = 40
    made = {
        "schema_version": 1, "id": "square", "question": "How much?", "asks": asked.stated(),
        "randomizer": {"name": "krr", "k": 5, "epsilon": 20.0}, "batch": {"minimum": people},
        "promise": {"delta": 1e-2, "device_budget": 20.0}, "rounds": schedule(1),
    }  # fmt: skip
    found = simulate(ThrowawayCampaign.of(made, people), faults=FaultRates(0.0, 0.0, 0.0, 0.0), seed=1)
    (result,) = found.results
    most = 6.0 * 100.0 / np.sqrt(people) + 2.5**2 / 4.0  # squares up to 100, and what rounding adds
    assert found.sound and result.n == people and abs(result.value[0] - result.truth[0]) < most
