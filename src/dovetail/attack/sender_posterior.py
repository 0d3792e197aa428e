"""The attack that knows the shuffle: who can have sent each report, and how values follow public data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from annotated_types import Ge, Le

from dovetail.attack.experiment.run_attack import Guesses, People, argmax_random_ties
from dovetail.attack.experiment.sender_model import Regression, Rows, Seats, Traits, candidate_traits, seats_of
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError
from dovetail.core.stages import Attack, FrequencyRandomizer, Knowledge, Reports, Shuffler

_DRAWS_TO_CHOOSE, _PLACES_TO_CHOOSE = 16, 50_000  # enough to tell which traits the reports follow


@dataclass(frozen=True, eq=False)
class SenderPosterior(Attack):
    r"""Guesses by Bayes' rule from the public law of the shuffle.

    The law of the order says whose report stands at a place: M_jp = Pr[j's report is at p]. Regression of the
    unbiased indicators on the expected public data of the senders gives the law theta_t of values among people with
    public data t, and with it the law of the report at every place. The posterior of a person's value then weighs
    the reports at all places by the chance that they are hers:

    .. math:: \Pr[x_j = v \mid z] \propto \theta_{t(j) v} \sum_p M_{jp}
              \frac{W(z_p \mid v)}{\sum_i M_{ip} \sum_{v'} \theta_{t(i) v'} W(z_p \mid v')}

    Neighbours vote through theta, which is as smooth in t as the reports say, up to no vote at all. Without a shuffle
    this is the Bayes guess from the own report and the neighbours'; of a uniform shuffle it is the commonest value.

    Parameters
    ----------
    randomizer : FrequencyRandomizer
        KRR, Hadamard, Unary or LocalHashing; the channel is public.
    targets : int array (m,)
    seats : Seats
        M, exact for even blocks, else as a mean over draws of the shuffler.
    traits : float array (n, d)
        Each person's shares in soft classes of public data.
    model : Regression
        On the expected traits at the places.

    Raises
    ------
    DataError
        For public data that say nothing, and reports that are not one for each place.
    UnsupportedError
        From `prepare`, for so many people that not even eight orders can be kept.

    Notes
    -----
    The senders at two places are taken as independent, given the law. How far the guesses depend on the draws is told
    by `agreement`. O(n d^2) once for each of five kinds of traits, O(draws (n d + m k)) for the law.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> from dovetail.shuffle.identity import Identity
    >>> krr, targets, rng = KRR(k=2, epsilon=3.0), np.array([0, 99]), simulation(1)
    >>> seats = seats_of(Identity(100), targets, draws=8, rng=rng)
    >>> traits = np.repeat(np.eye(2), 50, axis=0)  # two kinds of people
    >>> attack = SenderPosterior(krr, targets, seats, traits, Regression.on(seats.at_places(traits)))
    >>> attack.posterior(krr.randomize(np.repeat([0, 1], 50), rng=rng)).argmax(axis=1).tolist()
    [0, 1]

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 3.1: the adversary
    knows the distribution of the order. The posterior and its estimate are ours.
    """

    name: ClassVar[str] = "sender_posterior"
    label: ClassVar[str] = "sender posterior"

    @dataclass(frozen=True)
    class Settings:
        """What the attacker may choose.

        Parameters
        ----------
        draws : int, 8 to 10000
            Orders that are drawn to learn the law of the shuffle, where it is not known exactly.
        """

        draws: Annotated[int, Ge(8), Le(10_000)] = 100

    randomizer: FrequencyRandomizer
    targets: People
    seats: Seats
    traits: Traits
    model: Regression

    @classmethod
    def prepare(
        cls, known: Knowledge, randomizer: FrequencyRandomizer, shuffler: Shuffler, *, targets: People, rng: Entropy,
        draws: int = 100, **settings: Any,
    ) -> Self:  # fmt: skip
        seats = seats_of(shuffler, targets, draws=draws, rng=rng)
        seen = randomizer.indicators(known.release(randomizer, shuffler, rng))
        few, step = seats.first(_DRAWS_TO_CHOOSE), -(-shuffler.n // _PLACES_TO_CHOOSE)
        traits = max(
            candidate_traits(known, rng),
            key=lambda each: Regression.on(few.at_places(each, step=step)).evidence(seen[::step]),
        )
        return cls(randomizer, targets, seats, traits, Regression.on(seats.at_places(traits)))

    def guess(self, reports: Reports, rng: Entropy | None = None) -> Guesses:
        scores = self.posterior(reports)
        return argmax_random_ties(scores / scores.max(axis=1, keepdims=True), entropy_or_system(rng))

    def posterior(self, reports: Reports) -> Rows:
        """Probability (m, k) of each value of each target, given the batch."""
        seen = self.randomizer.support(reports)
        if len(seen) != len(self.traits):
            raise DataError(f"`reports` must be {len(self.traits):,}, one for each place, got {len(seen):,}.")
        unbiased = self.randomizer.indicators(reports)
        likelihood = np.where(seen, 1.0, np.exp(-self.randomizer.support_log_odds))
        senders = self.model.features + self.model.centre
        at_places, at_targets = self.model.shares(unbiased, senders, self.traits[self.targets])
        told = likelihood / (at_places * likelihood).sum(axis=1, keepdims=True)
        own = 1.0 + self.seats.certainty[:, None] * (self.seats.at_targets(told) - 1.0)
        scores = at_targets * own
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def remark(self, reports: Reports, rng: Entropy) -> str:
        drawn = self.seats.draws
        if drawn is None:
            return "it knows the law of the order exactly"
        alike = self.agreement(reports, rng)
        told = f"{drawn:,} draws; halves of them guess alike for {alike:.0%} of the targets"
        return f"it learned the law of the order from {told}"

    def agreement(self, reports: Reports, rng: Entropy | None = None) -> float:
        """Share of the targets whom two halves of the draws guess alike: near 1, more draws would change little."""
        rng = entropy_or_system(rng)
        one, other = (
            replace(self, seats=half, model=Regression.on(half.at_places(self.traits)))
            for half in self.seats.halves()
        )
        return float((one.guess(reports, rng) == other.guess(reports, rng)).mean())
