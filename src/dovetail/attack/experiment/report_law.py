"""Likelihoods of a report by the value behind it: of answers of a list, and of numbers by parts of their range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isinf

import numpy as np
from numpy.typing import NDArray

from dovetail.attack.experiment.sender_model import Regression, with_floor
from dovetail.core.checks import whole
from dovetail.core.stages import FrequencyRandomizer, Labels, NumericRandomizer, Reports

Rows = NDArray[np.float64]  # (n or candidates, columns)

PARTS = 10  # of the range of a number, where nobody says how many
POINTS = 4  # candidate numbers in each part of a range
_STEPS = 100  # of EM on everybody's shares
MOST_KINDS = 200  # reports of numbers that are told apart in a batch


class ReportLaw(ABC):
    """Law of a report given each of k candidate values."""

    k: int

    @abstractmethod
    def kinds(self, reports: Reports) -> tuple[Labels, Rows]:
        """The kind (n,) of each report, and how likely (k, kinds) each kind is, up to a factor of its own."""

    @abstractmethod
    def seen(self, reports: Reports) -> Rows:
        """Columns (n, columns) that follow public data on average as the values do, for a regression."""

    @abstractmethod
    def shares(self, model: Regression, reports: Reports, *rows: Rows) -> tuple[Rows, ...]:
        """Shares (m, k) of the candidates at each of `rows` (m, d) of features, by a regression of the reports."""

    @abstractmethod
    def symbols(self, randomizer: FrequencyRandomizer | NumericRandomizer) -> Rows:
        """Law (k, symbols) of the symbol that a randomizer with numbered reports sends of each candidate."""

    @abstractmethod
    def smoothed(self, shares: Rows) -> Rows:
        """Shares (m, k) after what is expected of neighbouring candidates."""

    @abstractmethod
    def guessed(self, scores: Rows) -> Rows:
        """Scores (m, what is guessed) from those of the candidates (m, k)."""

    @property
    @abstractmethod
    def remark(self) -> str:
        """A clause that says what is guessed, where it is no answer of a list; or nothing."""


@dataclass(frozen=True)
class AnswerLaw(ReportLaw):
    """Of answers: reports that support the same ones are of one kind."""

    randomizer: FrequencyRandomizer

    @property
    def k(self) -> int:  # type: ignore[override]
        """Answers of the list."""
        return self.randomizer.k

    def kinds(self, reports: Reports) -> tuple[Labels, Rows]:
        found, number = np.unique(self.randomizer.support(reports), axis=0, return_inverse=True)
        return number.ravel(), np.where(found, 1.0, np.exp(-self.randomizer.support_log_odds)).T

    def seen(self, reports: Reports) -> Rows:
        return np.asarray(self.randomizer.indicators(reports))

    def shares(self, model: Regression, reports: Reports, *rows: Rows) -> tuple[Rows, ...]:
        return model.shares(self.seen(reports), *rows)

    def symbols(self, randomizer: FrequencyRandomizer | NumericRandomizer) -> Rows:
        if isinf(randomizer.guarantee.epsilon):  # answers are sent as they are
            return np.eye(self.k)
        assert isinstance(randomizer, FrequencyRandomizer)
        return np.asarray(randomizer.channel().matrix())

    def smoothed(self, shares: Rows) -> Rows:
        return shares

    def guessed(self, scores: Rows) -> Rows:
        return scores

    @property
    def remark(self) -> str:
        return ""


@dataclass(frozen=True)
class NumberLaw(ReportLaw):
    r"""Of numbers: the candidates are `POINTS` numbers in each of so many equal parts of the range.

    .. math:: W(y \mid j) = \Pr[y \mid x_j], \qquad x_j = \mathrm{lower} + (j + \tfrac12)
              \frac{\mathrm{upper} - \mathrm{lower}}{k}

    More than `MOST_KINDS` different reports are joined to so many stretches of equal width, each with the law of the
    report in its middle.
    """

    randomizer: NumericRandomizer
    parts: int

    def __post_init__(self) -> None:
        whole("parts", self.parts, least=2, most=100)

    @property
    def guessed_parts(self) -> str:
        """A clause that says what is guessed of a number."""
        return f"which of {self.parts} equal parts of the range a number is in"

    @property
    def k(self) -> int:  # type: ignore[override]
        """Candidate numbers."""
        return self.parts * POINTS

    @property
    def points(self) -> NDArray[np.float64]:
        """The candidate numbers (k,)."""
        low, high = self.randomizer.lower, self.randomizer.upper
        return np.asarray(low + (np.arange(self.k) + 0.5) * ((high - low) / self.k))

    def codes(self, values: NDArray[np.float64]) -> Labels:
        """The candidate (n,) nearest to each number."""
        low, high = self.randomizer.lower, self.randomizer.upper
        place = np.floor((values - low) / (high - low) * self.k).astype(np.int64)
        return np.asarray(np.clip(place, 0, self.k - 1))

    def kinds(self, reports: Reports) -> tuple[Labels, Rows]:
        found, number = np.unique(reports, return_inverse=True)
        number = number.ravel()
        if len(found) > MOST_KINDS:
            ends = np.quantile(found, (0.005, 0.995))
            cell = np.clip((found - ends[0]) / (ends[1] - ends[0]) * MOST_KINDS, 0, MOST_KINDS - 1).astype(np.int64)
            used, cell = np.unique(cell, return_inverse=True)
            middle = np.searchsorted(cell, np.arange(len(used))) + np.searchsorted(
                cell, np.arange(len(used)), "right"
            )
            found, number = found[middle // 2], cell[number]
        logs = self.randomizer.log_density(found[None, :], self.points[:, None])
        return number, np.exp(logs - logs.max(axis=0))

    def seen(self, reports: Reports) -> Rows:
        return self.randomizer.decode(reports)[:, None]

    def shares(self, model: Regression, reports: Reports, *rows: Rows) -> tuple[Rows, ...]:
        r"""The shares of everybody together, times what tells a normal law around the regressed mean from theirs.

        .. math:: \theta_{j} \propto \pi_j \,
                  \exp\left(\frac{(x_j - M)^2}{2 V} - \frac{(x_j - m)^2}{2 s^2}\right)

        with the mean M and variance V of everybody's shares pi, and the variance s^2 that the regression leaves.
        """
        seen, points = self.seen(reports), self.points
        fitted, *means = model.predict(seen, model.features + model.centre, *rows)
        everybody, least = self._everybody(reports), (points[1] - points[0]) ** 2
        centre = float(everybody @ points)
        whole = max(float(everybody @ (points - centre) ** 2), least)
        left = min(max(float(((seen - fitted) ** 2).mean()) - self.randomizer.noise_variance, least), whole)
        found = []
        for mean in means:
            mine = centre + mean - float(seen.mean())
            logs = np.log(everybody) + (points - centre) ** 2 / (2.0 * whole) - (points - mine) ** 2 / (2.0 * left)
            shares = np.exp(logs - logs.max(axis=1, keepdims=True))
            found.append(with_floor(shares / shares.sum(axis=1, keepdims=True), len(seen)))
        return tuple(found)

    def symbols(self, randomizer: FrequencyRandomizer | NumericRandomizer) -> Rows:
        assert isinstance(randomizer, NumericRandomizer)
        points = 1 + round(
            (randomizer.upper - randomizer.lower) / (randomizer.decode([1]) - randomizer.decode([0]))[0]
        )
        return np.exp(randomizer.log_density(np.arange(points)[None, :], self.points[:, None]))

    def _everybody(self, reports: Reports) -> NDArray[np.float64]:
        """Shares (k,) of the candidates among all people, by EM from equal ones."""
        number, law = self.kinds(reports)
        counts = np.bincount(number, minlength=law.shape[1])
        shares = np.full(self.k, 1.0 / self.k)
        for _ in range(_STEPS):
            shares = self.smoothed((shares * (law @ (counts / (shares @ law))) / len(number))[None, :])[0]
        return np.asarray(with_floor(shares, len(number)))

    def smoothed(self, shares: Rows) -> Rows:
        """Each candidate shares with its neighbours, 1 : 2 : 1, after every step of EM, which alone ends in spikes.

        Source
        ------
        Silverman, Jones, Wilson, Nychka (1990), A smoothed EM approach to indirect estimation problems, JRSS B 52.
        """
        wide = np.concatenate((shares[:, :1], shares, shares[:, -1:]), axis=1)
        return np.asarray((wide[:, :-2] + 2.0 * shares + wide[:, 2:]) / 4.0)

    def guessed(self, scores: Rows) -> Rows:
        return np.asarray(scores.reshape(len(scores), self.parts, POINTS).sum(axis=2))

    @property
    def remark(self) -> str:
        return f"it names {self.guessed_parts}"


def law_of(randomizer: FrequencyRandomizer | NumericRandomizer, *, parts: int) -> AnswerLaw | NumberLaw:
    """The law of a randomizer's reports; `parts` of the range are what is guessed of numbers."""
    if isinstance(randomizer, NumericRandomizer):
        return NumberLaw(randomizer, parts)
    return AnswerLaw(randomizer)
