"""Every person's own noise, its epsilon set by a public column: reports carry no class."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from dovetail.account.mixture import amplify_class, amplify_mixture
from dovetail.core.display import upward
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, UnsupportedError
from dovetail.core.estimate import SLACK, Estimate, Tally
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import NO_VECTORS, Noise, People, Telling, Weights, fewest_drawn
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.estimate.classes import estimate_mixture_counts
from dovetail.estimate.frequency import project_shares
from dovetail.leak.linkage import Linkage, linkage_bound
from dovetail.noise.local import sent_shares
from dovetail.randomize.krr import KRR


@final
@dataclass(frozen=True)
class EpsilonClasses(Noise):
    """k-ary randomized response with the epsilon of one's class; reports carry no class.

    Parameters
    ----------
    k : int
    column : str
        Public, and must not depend on the private value.
    epsilons : mapping from a text of the column to its epsilon
    default : float
        Epsilon of every other text.
    """

    k: int
    column: str
    epsilons: Mapping[str, float]
    default: float
    name: ClassVar[str] = "classes"
    label: ClassVar[str] = "an epsilon by class"
    trust: ClassVar[str] = "local"
    hidden: ClassVar[Missing | None] = Missing("people have different epsilons")
    everybody: ClassVar[str] = (
        "people of different epsilons are proven to hide among one another where everybody is mixed evenly"
    )
    unfit: ClassVar[Mapping[str, str]] = {
        "mean": "people of different epsilons answer from a list: amplification of a mixture is proven for k-ary "
        "randomized response",
        **NO_VECTORS,
    }
    apart: ClassVar[str] = (
        "amplification of a mixture is proven for k-ary randomized response, and several answers in one report are "
        "no such response"
    )
    unsearched: ClassVar[str] = (
        "a search chooses each group's noise for one promise to everybody, and classes have their epsilons before"
    )
    estimator: ClassVar[dict[str, str] | Missing] = {
        "name": "weighted",
        "best": "weighted",
        "reason": "reports carry no class: people with a larger epsilon weigh more, so these are the shares of "
        "everybody only where class and answer are unrelated",
    }

    @property
    def largest(self) -> float:
        """Epsilon that nobody spends more than."""
        return max(self.default, *self.epsilons.values())

    @property
    def randomizer(self) -> FrequencyRandomizer:
        return KRR(self.k, self.largest)

    def check(self, people: People) -> None:
        """ConfigError for an epsilon of nobody whose text is nearly that of people who would get the default."""
        held = [*people.counted] or people.public[self.column].cast(pl.String).unique().to_list()
        others = [text for text in held if text not in self.epsilons]
        for text in self.epsilons:
            near = [] if text in held else get_close_matches(text, others, n=1)
            if near:
                raise ConfigError(
                    f"[randomize] epsilons: nobody has {text!r} in column {self.column!r}; did you mean {near[0]!r}?"
                )

    def members(self, public: pl.DataFrame) -> tuple[tuple[float, NDArray[np.int64]], ...]:
        """Each epsilon that occurs, and the places of its people, from the smallest one on."""
        texts = public[self.column].cast(pl.String)
        own = np.array([self.epsilons.get(text, self.default) for text in texts.to_list()])
        return tuple((float(one), np.flatnonzero(own == one)) for one in np.unique(own))

    def sizes(self, people: People) -> list[tuple[int, float]]:
        """How many people have each epsilon that occurs, from the smallest one on."""
        if not people.counted:
            return [(places.size, epsilon) for epsilon, places in self.members(people.public)]
        found: dict[float, int] = {}
        for text, count in people.counted.items():
            own = self.epsilons.get(text, self.default)
            found[own] = found.get(own, 0) + count
        return [(found[epsilon], epsilon) for epsilon in sorted(found)]

    def _held(self, people: People) -> Mapping[str, int]:
        """How many people have each text of the column."""
        return people.counted or Counter(people.public[self.column].cast(pl.String).to_list())

    def fewest(self, people: People, chance: float, doubt: float) -> People:
        """At least so many of each epsilon, whichever are not honest."""
        sizes, texts = self.sizes(people), {self.epsilons.get(one, self.default): one for one in self._held(people)}
        few = [fewest_drawn(size, chance, doubt / len(sizes), herself=False) for size, _ in sizes]
        counted = {texts[epsilon]: many for (_, epsilon), many in zip(sizes, few, strict=True)}
        return People(sum(few), honest=max(1, sum(few) - (people.n - people.trusted)), counted=counted)

    def more(self, people: People, n: int) -> People:
        held = self._held(people)
        grown = {text: round(count * n / sum(held.values())) for text, count in held.items()}
        return People(sum(grown.values()), counted=grown)

    def classes(self, people: People) -> list[tuple[int, KRR]]:
        """How many people use which randomizer."""
        return [(count, KRR(self.k, epsilon)) for count, epsilon in self.sizes(people)]

    def randomize(self, values: NDArray[Any], people: People, rng: Entropy) -> Reports:
        reports = np.empty(len(values), dtype=np.int64)
        for epsilon, places in self.members(people.public):
            reports[places] = KRR(self.k, epsilon).randomize(values[places], rng.owners(places, len(values)))
        return reports

    def runs(self, people: People) -> tuple[tuple[FrequencyRandomizer | NumericRandomizer, NDArray[np.int64]], ...]:
        return tuple((KRR(self.k, epsilon), places) for epsilon, places in self.members(people.public))

    def explained(self, counts: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.where(sent == counts, 0.0, -np.inf)  # all reports are people's

    def promises(self, people: People, *, delta: float) -> tuple[tuple[float, int, CentralDP], ...]:
        """Epsilon0, people and guarantee of each class, whichever people are not honest."""
        if people.n < 2:
            raise UnsupportedError("one person is shuffled with nobody: her local guarantee is all there is.")
        pairs = self.sizes(people)
        promised = (
            amplify_mixture(self.k, pairs, delta=delta, honest=people.trusted)
            if all(size for size, _ in pairs)
            else [self._promise(own, people, delta=delta) for own in range(len(pairs))]
        )
        return tuple((epsilon, size, one) for (size, epsilon), one in zip(pairs, promised, strict=True))

    def _promise(self, own: int, people: People, *, delta: float) -> CentralDP:
        """The guarantee of one class, of which there may be no one else."""
        classes = [(size or int(place == own), one) for place, (size, one) in enumerate(self.classes(people))]
        crowd = sum(size for size, _ in classes)
        return amplify_class(classes, own, crowd=crowd, honest=people.trusted + crowd - people.n, delta=delta)

    def central(self, shuffler: Shuffler, people: People, *, delta: float) -> CentralDP | Missing:
        """That of the most exposed class."""
        _, _, worst = max(self.promises(people, delta=delta), key=lambda one: one[2].epsilon)
        return worst

    def tally(self, reports: Reports) -> Tally:
        batch = self.randomizer.check_reports(reports)
        return Tally(np.bincount(batch, minlength=self.k), batch.size)

    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        classes = self.classes(people)
        sent = [n * sent_shares(one.channel(), shares) for n, one in classes]
        return Tally(np.sum(sent, axis=0) * (people.n / sum(n for n, _ in classes)), people.n)

    def error(self, people: People) -> float:
        return self.error_of_one_answer(people, k=self.k)

    def shares(self, tally: Tally, people: People) -> Estimate:
        return estimate_mixture_counts(self.classes(people), tally.counts, drawn=people.drawn)

    def mean(self, tally: Tally, people: People) -> Estimate:
        raise UnsupportedError(f"{self.label} goes with answers of a list.")

    def moments(self, tally: Tally, weights: Weights, people: People) -> tuple[NDArray[Any], NDArray[Any]]:
        shares, classes = self.shares(tally, people).value, self.classes(people)
        apart = weights - weights.mean(axis=1, keepdims=True)  # shares sum to 1: a constant weight has no noise
        asked = people.n / sum(n for n, _ in classes)
        lies = asked * sum(n * one.channel().s for n, one in classes)
        truthful = asked * sum(n * one.channel().contrast for n, one in classes)
        most = 1.0 - min(one.channel().contrast for _, one in classes)  # whatever class and answer have in common
        spread = lies * apart @ apart.T + truthful * most * (apart * project_shares(shares)) @ apart.T
        if people.drawn:  # how truthful those are who drew it is left to chance, too
            unlike = max(one.channel().contrast for _, one in classes) * people.n / truthful - 1.0
            spread = spread + truthful**2 / people.n * unlike * (apart * project_shares(shares)) @ apart.T
        return weights @ shares, np.asarray(spread / truthful**2)

    def _binomial(self, weights: Weights, sizes: Weights, people: People) -> tuple[NDArray[np.float64], float]:
        """How many reports lie in the first class if nobody holds it (sums,), and how many more if everybody does."""
        classes = self.classes(people)
        every = sum(n for n, _ in classes)
        if people.n < every and not people.drawn:
            raise UnsupportedError(
                f"{every - people.n:,} of {every:,} reports are missing, and nobody knows of which class: how far a "
                "distribution may be off is not known."
            )
        each = [(n * (people.n / every), one.channel()) for n, one in classes]
        return sizes[:, 0] * sum(n * one.s for n, one in each), sum(n * one.contrast for n, one in each)

    def deviation(self, weights: Weights, sizes: Weights, people: People) -> NDArray[np.float64]:
        least, truthful = self._binomial(weights, sizes, people)
        p = np.clip(0.5, least / people.n, (least + truthful) / people.n)  # where a binomial count varies most
        return np.asarray(np.abs(weights[:, 0] - weights[:, -1]) * np.sqrt(people.n * p * (1.0 - p)) / truthful)

    def reach(
        self, weights: Weights, sizes: Weights, held: NDArray[np.int64], people: People, *, tail: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""By the binomial law of the same mean, whatever people of each epsilon answer.

        .. math:: \Pr[H \le k] \le \Pr[\mathrm{Bin}(n, \mu / n) \le k] \ (k \le \mu - 1), \qquad
                  \mu = \mathrm{E} H = d \sum_i n_i s_i + F \sum_i n_i \gamma_i

        Each report lies in the class with a chance of its own, and of all such sums with one mean the binomial one
        has the longest tails. F weighs people by how truthful they are, so it may lie between `held` and the next
        whole number of people, which is allowed for. Of a uniform sample of m people the count has the generating
        function e_m(1 + p_i (y - 1)) over a constant, with e_m the elementary symmetric polynomial, which is stable:
        in y all roots are real, and the count is a sum of independent trials, too.

        Source
        ------
        Hoeffding (1956), On the distribution of the number of successes in independent trials, Theorem 4.
        """
        from scipy.stats import binom  # half a second

        least, truthful = self._binomial(weights, sizes, people)
        gain, n = (weights[:, 0] - weights[:, -1]) / truthful, people.n
        each = []
        for one in (np.maximum(held - 1, 0), np.minimum(held + 1, n)):
            mean = least + truthful * (one / n)[:, None]
            chance = np.clip(mean / n, 0.0, 1.0)
            few = np.minimum(binom.ppf(tail * SLACK, n, chance), np.floor(mean))
            many = np.maximum(binom.isf(tail * SLACK, n, chance), np.ceil(mean))
            each.append((mean - few, many - mean))
        below, above = (np.abs(gain) * (found + truthful / n) for found in (each[0][0], each[1][1]))
        return below, above

    def telling(self, people: People, *, delta: float) -> tuple[Telling, ...]:
        absent, why = people.n - people.trusted, "reports of other classes are taken for known"
        return tuple(
            Telling(KRR(self.k, epsilon), size, max(1, size - absent), promise, why)
            for epsilon, size, promise in self.promises(people, delta=delta)
        )

    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Linkage | Missing:
        """By the largest ratio of the probabilities that two classes give one report."""
        made = [one.channel() for _, one in self.classes(people)]
        odds = max(one.p for one in made) / min(one.s for one in made)
        return linkage_bound(math.log(odds) * (1.0 + 1e-12), n=people.trusted)

    def described(self, people: People) -> dict[str, Any]:
        return {"classes": {"by": self.column, "epsilons": dict(self.epsilons)}}

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        each = (
            []
            if isinstance(central, Missing)
            else [
                f"{size:,} people with epsilon0 {upward(own)} in their own report: central epsilon "
                f"{upward(one.epsilon)}."
                for own, size, one in self.promises(people, delta=delta)
            ]
        )
        shuffled = (
            [
                f"The shuffler keeps the order to itself, and {central.honest_n:,} of {central.n:,} people that are "
                "shuffled together follow the protocol; otherwise the local guarantee is all that remains."
            ]
            if isinstance(central, CentralDP)
            else []
        )
        return (
            "Each person sends exactly one report, randomized independently with the epsilon of her class.",
            *shuffled,
            f"The epsilon of a person is set by {self.column}, which does not depend on the answer; "
            "reports do not carry it. Quoted above is the largest; people with a large one hide behind the careful "
            "ones, who have to be honest and present.",
            *each,
            "Shares weigh people by how truthful they are: they are those of everybody only where class and answer "
            "are unrelated.",
        )
