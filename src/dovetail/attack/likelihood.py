"""The attack that maximises the likelihood of a release over the shares of values given public data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Le

from dovetail.attack.experiment.behind_noise import BehindNoise
from dovetail.attack.experiment.report_law import PARTS, AnswerLaw, ReportLaw, law_of
from dovetail.attack.experiment.run_attack import Guesses, People, argmax_random_ties
from dovetail.attack.experiment.sender_model import (
    DrawnOrders,
    EvenBlocks,
    Regression,
    Rows,
    Seats,
    Traits,
    candidate_traits,
    seats_of,
)
from dovetail.attack.experiment.share_posterior import MOST_NUMBERS, Compositions, SharePosterior
from dovetail.attack.experiment.who_sent import Batch, BlockSenders, ComponentSenders, Senders
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.noise import Noise
from dovetail.core.noise import People as Crowd
from dovetail.core.stages import Attack, FrequencyRandomizer, Knowledge, Labels, NumericRandomizer, Reports, Shuffler

_DRAWS_TO_CHOOSE, _PLACES_TO_CHOOSE = 16, 50_000  # enough to tell which traits the reports follow
_DRAWS_TOGETHER, _CELLS_TOGETHER = 2_000, 10_000_000  # orders of small components, weighed as a whole
_PAIRS, _FIRST_STEPS, _STEPS, _MOST_SWAPPED = 4, 12, 100, 8
_GAIN = 1e-4  # nats of a step of EM that goes on
_LEAST = 1e-3  # of a share that is mirrored


@mute
@dataclass(frozen=True, eq=False)
class Likelihood(Attack):
    r"""Guesses by Bayes' rule with the shares under which the release is likeliest.

    People with public data t hold value v with an unknown share theta_tv; M_jp = Pr[j's report is at p] is public.
    EM finds the shares that maximise the likelihood of the release, starting from the regression of the unbiased
    indicators on the expected public data of the senders and from random shares. A person's value then follows from
    the chance that she sent each kind of report:

    .. math:: \Pr[x_j = v \mid z] = \sum_y \Pr[j \text{ sent } y \mid z] \,
              \frac{\theta_{t(j) v} W(y \mid v)}{\sum_{v'} \theta_{t(j) v'} W(y \mid v')}

    Of answers of people in few classes, up to twelve free shares, the shares are not maximised over: the guess is the
    mean over draws from their posterior (`SharePosterior`), because small batches leave them open.

    Where places are mixed evenly in blocks, that chance is the exact sum over compositions (`BlockSenders`); in small
    components of other orders each drawn order is weighed as a whole (`ComponentSenders`). Elsewhere the senders at
    two places are taken as independent given the law, and the shares are those of the regression: the report at place
    p is hers with a weight of M_jp over the chance of that report there.

    Parameters
    ----------
    randomizer : FrequencyRandomizer or NumericRandomizer
        The channel or log density is public.
    targets : int array (m,)
    seats : Seats
        M, exact for even blocks, else as a mean over draws of the shuffler.
    traits : float array (n, d)
        Each person's shares in soft classes of public data; with `shares`, the class of each person.
    model : Regression
        On the expected traits at the places.
    shares : float array (d, k), optional
        Of the values in each class: where EM starts, or `known`. Without, those of the regression are taken.
    known : bool
        Whether these shares are known, so that nothing is learned.
    parts : int
        Of numbers which of so many equal parts of the range is guessed, by candidate numbers in each.

    Raises
    ------
    DataError
        For public data that say nothing, and reports that are not one for each place.
    UnsupportedError
        From `prepare`, for so many people that not even eight orders can be kept.

    Notes
    -----
    With known shares and blocks or components of up to seven people this is the best of all attacks, where orders are
    drawn up to the scatter of the draws; with learned shares of few classes it was within .01 of the best in every
    one of 30 small collections (tests/attack/test_share_posterior.py). Blocks beyond the work of `who_sent.WORK` are
    off by about one part in their size. Of larger components, success was within .02 of the best in all orders of
    five people. EM is believed where what it learns from half of a batch makes the other half likelier than the
    regression does. What a release leaves open nothing learns: of 100 equal households of two kinds, three values and
    epsilon .5, learned shares are right in .49, as the Bayes optimum of those who learn, and known shares in .59.
    Numbers are learned by EM with a smoothing step in blocks; elsewhere the shares of a class are those of everybody,
    moved and narrowed as a normal law is (`NumberLaw.shares`).

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> from dovetail.shuffle.identity import Identity
    >>> krr, targets, rng = KRR(k=2, epsilon=3.0), np.array([0, 99]), simulation(1)
    >>> seats = seats_of(Identity(100), targets, draws=8, rng=rng)
    >>> traits = np.repeat(np.eye(2), 50, axis=0)  # two kinds of people
    >>> attack = Likelihood(krr, targets, seats, traits, Regression.on(seats.at_places(traits)))
    >>> attack.posterior(krr.randomize(np.repeat([0, 1], 50), rng=rng)).argmax(axis=1).tolist()
    [0, 1]

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 4.4: the adversary
    knows the mechanism and its reference order. Kifer (2009), Attacks on Privacy and deFinetti's Theorem, SIGMOD:
    learning from the release itself. Dempster, Laird, Rubin (1977), Maximum likelihood from incomplete data via the
    EM algorithm, J. R. Stat. Soc. B 39. The sums over who sent what are ours.
    """

    name: ClassVar[str] = "likelihood"
    label: ClassVar[str] = "likelihood"
    asks_what_is_mixed: ClassVar[bool] = True
    guesses_numbers: ClassVar[bool] = True

    @dataclass(frozen=True)
    class Settings:
        """Settings that the attacker may choose.

        Parameters
        ----------
        draws : int, 8 to 10000
            Orders that are drawn to learn the law of the shuffle, where it is not known exactly.
        shares : learned or known
            Whether the attacker knows the shares of the values given the public columns beforehand.
        parts : int, 2 to 100
            Numbers: equal parts of the range; which of them a number is in is guessed.
        """

        draws: Annotated[int, Ge(8), Le(10_000)] = 100
        shares: Literal["learned", "known"] = "learned"
        parts: Annotated[int, Ge(2), Le(100)] = PARTS

    randomizer: FrequencyRandomizer | NumericRandomizer
    targets: People
    seats: Seats
    traits: Traits
    model: Regression
    shares: Rows | None = None
    known: bool = False
    parts: int = PARTS
    law: ReportLaw = field(init=False)
    senders: Senders | None = field(init=False)
    _people: Traits = field(init=False, repr=False)  # the different rows of the traits
    _sizes: People = field(init=False, repr=False)  # how many people have them

    def __post_init__(self) -> None:
        people, classes, sizes = np.unique(self.traits, axis=0, return_inverse=True, return_counts=True)
        object.__setattr__(self, "_people", people)
        object.__setattr__(self, "_sizes", sizes)
        object.__setattr__(self, "law", law_of(self.randomizer, parts=self.parts))
        object.__setattr__(self, "senders", _senders(classes.ravel(), self.seats))

    @classmethod
    def prepare(
        cls, known: Knowledge, randomizer: FrequencyRandomizer | NumericRandomizer, shuffler: Shuffler, *,
        targets: People, rng: Entropy, draws: int = 100, shares: str = "learned", parts: int = PARTS, **settings: Any,
    ) -> Self:  # fmt: skip
        law = law_of(randomizer, parts=parts)
        seats = seats_of(shuffler, targets, draws=draws, rng=rng)
        if isinstance(seats, DrawnOrders) and _senders(np.zeros(shuffler.n, dtype=np.int64), seats) is not None:
            together = max(draws, min(_DRAWS_TOGETHER, _CELLS_TOGETHER // shuffler.n))
            seats = seats_of(shuffler, targets, draws=together, rng=rng)
        if shares == "known":
            laws, number = np.unique(known.shares(law.k), axis=0, return_inverse=True)
            traits = np.eye(len(laws))[number.ravel()]
            return cls(randomizer, targets, seats, traits, Regression.on(seats.at_places(traits)), laws, True, parts)
        release = known.release(randomizer, shuffler, rng)
        seen = law.seen(release)
        few, step = seats.first(_DRAWS_TO_CHOOSE), -(-shuffler.n // _PLACES_TO_CHOOSE)
        candidates = candidate_traits(known, rng)
        weights = [Regression.on(few.at_places(each, step=step)).evidence(seen[::step]) for each in candidates]
        followed = candidates[int(np.argmax(weights))]
        found = cls(randomizer, targets, seats, followed, Regression.on(seats.at_places(followed)), parts=parts)
        hard = [place for place, each in enumerate(candidates) if (each.max(axis=1) == 1.0).all()]
        if found.senders is None:
            return found
        averaged = found._of_few_classes(candidates, release, rng)
        if averaged is not None:
            return averaged
        if not hard:  # EM learns of classes, each person in one
            return found
        classes: Traits = candidates[max(hard, key=lambda place: weights[place])]
        learner = cls(randomizer, targets, seats, classes, Regression.on(seats.at_places(classes)), parts=parts)
        batch, told = learner._batch(release)
        starts = learner._starts(release, rng)
        gain = 0.0
        one, other = batch.halves(rng)
        for half, tested in ((one, other), (other, one)):
            gain += tested.expected(learner._likeliest(starts, half, told) @ told)[1]
        gain -= found._batch(release)[0].expected(found._regressed(release) @ told)[1]
        return replace(learner, shares=learner._likeliest(starts, batch, told)) if gain > 0.0 else found

    @classmethod
    def behind(
        cls, known: Knowledge, noise: Noise, people: Crowd, *, targets: People, shares: str = "learned",
        parts: int = PARTS, **settings: Any,
    ) -> BehindNoise:  # fmt: skip
        law = law_of(noise.randomizer, parts=parts)
        return BehindNoise(law, noise, people, targets, known.shares(law.k) if shares == "known" else None)

    def guess(self, reports: Reports, rng: Entropy | None = None) -> Guesses:
        rng = entropy_or_system(rng)
        scores = self.law.guessed(self.posterior(reports, rng))
        return argmax_random_ties(scores / scores.max(axis=1, keepdims=True), rng)

    def posterior(self, reports: Reports, rng: Entropy | None = None) -> Rows:
        """Probability (m, k) of each value of each target, given the batch; `rng` draws shares."""
        if self.senders is None:
            return self._by_places(reports)
        batch, law = self._batch(reports)
        table = None if self.known else self._compositions(batch)
        if table is not None:
            drawn = SharePosterior.of(table, law, rng=entropy_or_system(rng))
            return table.told(drawn.shares, drawn.weights, law)[batch.rows[self.targets]]
        if self.shares is None:
            people = self._regressed(reports)
        elif self.known:
            people = self._people @ self.shares
        else:
            people = self._likeliest([self._regressed(reports), self.shares], batch, law)
            return self._hedged(people, batch, law)
        return self._read(people, batch, law)[0]

    def _of_few_classes(self, candidates: list[Traits], release: Reports, rng: Entropy) -> Self | None:
        """Of the ways to put people into a few classes the one under which the release is likeliest.

        None where the regression follows what tells apart more people than that, or the release has too many
        compositions.
        """
        best, evidence = None, -np.inf
        for traits in (self.traits, *candidates):
            classes = np.unique(traits, axis=0, return_inverse=True)[1].ravel()
            each = replace(self, traits=np.eye(int(classes.max()) + 1)[classes])
            batch, law = each._batch(release)
            table = each._compositions(batch)
            if table is None and traits is self.traits:
                return None
            if table is not None and (likely := SharePosterior.of(table, law, rng=rng).evidence) > evidence:
                best, evidence = each, likely
        return None if best is None else replace(best, model=Regression.on(best.seats.at_places(best.traits)))

    def _compositions(self, batch: Batch) -> Compositions | None:
        """Who can have sent what as a sum over compositions, for answers of people in a few classes."""
        classes, few = self._people.shape
        sharp = classes == few and (self._people.max(axis=1) == 1.0).all()
        if not isinstance(self.law, AnswerLaw) or not sharp or classes * (self.law.k - 1) > MOST_NUMBERS:
            return None
        return batch.compositions(classes)

    def _read(self, people: Rows, batch: Batch, law: Rows) -> tuple[Rows, float]:
        """Probability (m, k) of each value of each target with these shares, and their log likelihood."""
        assert self.senders is not None
        chances = people @ law
        _, likelihood, sent = batch.expected(chances)
        told, mine = sent[batch.rows[self.targets]], self.senders.classes[self.targets]
        scores = people[mine] * ((told / chances[mine]) @ law.T)
        return np.asarray(scores / scores.sum(axis=1, keepdims=True)), likelihood

    def _hedged(self, people: Rows, batch: Batch, law: Rows) -> Rows:
        """The mean over these shares and those with two classes exchanged, by likelihood.

        Where blocks hold as many of one class as of another, nothing tells which shares are whose.
        """
        pairs = combinations(range(len(people)), 2) if len(people) <= _MOST_SWAPPED else ()
        orders = [np.arange(len(people))]
        for one, other in pairs:
            order = np.arange(len(people))
            order[[one, other]] = other, one
            orders.append(order)
        found = [self._read(people[order], batch, law) for order in orders]
        likelihoods = np.array([likelihood for _, likelihood in found])
        weights = np.exp(likelihoods - likelihoods.max())
        return np.average([told for told, _ in found], axis=0, weights=weights)

    def _regressed(self, reports: Reports) -> Rows:
        """Shares (people, k) by the regression."""
        return self.law.shares(self.model, reports, self._people)[0]

    def _starts(self, reports: Reports, rng: Entropy) -> list[Rows]:
        """The regression, and random shares in pairs: what leans one way in one leans the other way in the other."""
        regressed = self._regressed(reports)
        mean = regressed.mean(axis=0)
        found = [regressed]
        for _ in range(_PAIRS):
            lean = 20.0 ** (
                2.0 * (rng.words(regressed.size) >> np.uint64(11)).reshape(regressed.shape) / 2.0**53 - 1.0
            )
            found += [mean * lean, mean / lean]
        return [each / each.sum(axis=1, keepdims=True) for each in found]

    def _likeliest(self, starts: list[Rows], batch: Batch, law: Rows) -> Rows:
        first = [self._climb(start, batch, law, steps=_FIRST_STEPS) for start in starts]
        shares, best = self._climb(max(first, key=lambda pair: pair[1])[0], batch, law, steps=_STEPS)
        pairs = list(combinations(range(len(shares)), 2)) if len(shares) <= _MOST_SWAPPED else []
        while pairs:  # EM does not leave a mode in which two classes lie on the other sides of their common mean
            two = list(pairs.pop())
            mirrored = shares.copy()
            mean = np.average(shares[two], axis=0, weights=self._sizes[two])
            mirrored[two] = np.maximum(2.0 * mean - shares[two], _LEAST)
            mirrored /= mirrored.sum(axis=1, keepdims=True)
            found, likelihood = self._climb(mirrored, batch, law, steps=_FIRST_STEPS)
            if likelihood > best + _GAIN:
                shares, best = self._climb(found, batch, law, steps=_STEPS)
                pairs = list(combinations(range(len(shares)), 2))
        return shares

    def _climb(self, shares: Rows, batch: Batch, law: Rows, *, steps: int) -> tuple[Rows, float]:
        """EM with one person of average value added to each class, and the log likelihood that it reaches."""
        before, last, mean = -np.inf, shares, shares.mean(axis=0)
        for _ in range(steps):
            chances = shares @ law
            sent, likelihood, _ = batch.expected(chances)
            if likelihood - before < _GAIN:
                break
            before, last = likelihood, shares
            grown = shares * ((sent / chances) @ law.T) + mean  # expected people who hold each value
            shares = self.law.smoothed(grown / grown.sum(axis=1, keepdims=True))
        return last, before

    def _batch(self, reports: Reports) -> tuple[Batch, Rows]:
        """Who can have sent what, and how likely (k, kinds) each kind of report is, up to a factor of its own."""
        assert self.senders is not None
        number, law = self._kinds(reports)
        return self.senders.batch(number), law

    def _kinds(self, reports: Reports) -> tuple[Labels, Rows]:
        number, law = self.law.kinds(reports)
        if len(number) != len(self.traits):
            raise DataError(f"`reports` must be {len(self.traits):,}, one for each place, got {len(number):,}.")
        return number, law

    def _by_places(self, reports: Reports) -> Rows:
        """The posterior (m, k) where senders at two places are taken as independent given the law."""
        number, law = self._kinds(reports)
        likelihood = law.T[number]
        senders, mine = self.model.features + self.model.centre, self.traits[self.targets]
        if self.known and self.shares is not None:
            at_places, at_targets = senders @ self.shares, mine @ self.shares
        else:
            at_places, at_targets = self.law.shares(self.model, reports, senders, mine)
        told = likelihood / (at_places * likelihood).sum(axis=1, keepdims=True)
        own = 1.0 + self.seats.certainty[:, None] * (self.seats.at_targets(told) - 1.0)
        scores = at_targets * own
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def remark(self, reports: Reports, rng: Entropy) -> str:
        what = f"{self.law.remark}; " if self.law.remark else ""
        if self.senders is not None:
            return what + self.senders.remark
        drawn = self.seats.draws
        alike = self.agreement(reports, rng)
        told = f"{drawn:,} draws; halves of them guess alike for {alike:.0%} of the targets"
        return f"{what}it learned the law of the order from {told}"

    def agreement(self, reports: Reports, rng: Entropy | None = None) -> float:
        """Share of the targets whom two halves of the draws guess alike: near 1, more draws would change little."""
        rng = entropy_or_system(rng)
        one, other = (
            replace(self, seats=half, model=Regression.on(half.at_places(self.traits)))
            for half in self.seats.halves()
        )
        return float((one.guess(reports, rng) == other.guess(reports, rng)).mean())


def _senders(classes: Labels, seats: Seats) -> Senders | None:
    if isinstance(seats, EvenBlocks):
        return BlockSenders.of(classes, seats)
    return ComponentSenders.of(classes, seats) if isinstance(seats, DrawnOrders) else None
