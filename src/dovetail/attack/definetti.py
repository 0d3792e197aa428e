"""The de Finetti attack: learn from the shuffled batch how values follow public data, and hand the reports back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from dovetail.attack.experiment.run_attack import Guesses, People, argmax_random_ties, check_people
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import Attack, FrequencyRandomizer, Knowledge, Reports, Shuffler
from dovetail.estimate.frequency import project_shares
from dovetail.shuffle.fitting.neighbours import encode_labels

Codes = NDArray[np.int64]  # (n,), 0..g-1
Model = NDArray[np.float64]  # (classes, k), rows sum to 1

MOST_CLASSES = 3_000


@dataclass(frozen=True, eq=False)
class DeFinetti(Attack):
    r"""Guesses from what public data tell about values, learned from the shuffled batch itself.

    People of one class (equal public data t) have values with the same unknown law theta_c; a block is a set of
    places whose reports the shuffle mixes, with a share B_gc of class c. The model theta is learned by regression of
    the blocks' unbiased indicators on B. Then the reports of a block go back to its people in proportion to their
    likelihood:

    .. math:: \Pr[x_j = v \mid z] \propto \theta_{c(j) v} \sum_{i \in g(j)}
              \frac{W(z_i \mid v)}{\sum_{c, v'} B_{g(j) c}\, \theta_{c v'}\, W(z_i \mid v')}

    A block of one person is no shuffle: this is then the Bayes guess from the own report. A single block of everybody
    tells only the shares of all: the commonest value is guessed for everybody.

    Parameters
    ----------
    randomizer : FrequencyRandomizer
        KRR, Hadamard, Unary or LocalHashing; the channel is public.
    targets : int array (m,)
    classes : int array (n,), 0..c-1
    blocks : int array (n,), 0..g-1
    inside : sparse array (g, n)
        1 where a place is in a block.
    mix : sparse array (g, c)
        B.
    gain : float array (c, c)
        Inverse of the regression's normal matrix; with `inside` and `mix` from `of`.

    Raises
    ------
    DataError
        For blocks or reports that are not one for each person.
    UnsupportedError
        From `of`, for more classes than a regression holds.

    Notes
    -----
    The sum takes senders in a block as independent draws of its classes, not as a matching. The regression weighs
    blocks by their size, adds one person of average value to each class and ends at the nearest shares; where blocks
    do not tell classes apart, it leaves them average. O(c^3) once, then O(n k) for a guess.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> from dovetail.randomize.krr import KRR
    >>> krr, ages = KRR(k=2, epsilon=3.0), np.repeat([20, 60], 50)
    >>> attack = DeFinetti.of(krr, ages, blocks=ages, targets=[0, 99])
    >>> attack.guess(krr.randomize(np.repeat([0, 1], 50), rng=simulation(1)), simulation(2)).tolist()
    [0, 1]

    Source
    ------
    Kifer (2009), Attacks on Privacy and deFinetti's Theorem, SIGMOD; Meehan, Roy Chowdhury, Chaudhuri, Jha (2022),
    Privacy Implications of Shuffling, ICLR, A.3, for the translation to shuffled reports. The channel and learning by
    regression are ours.
    """

    name: ClassVar[str] = "definetti"
    label: ClassVar[str] = "de Finetti"
    asks_what_is_mixed: ClassVar[bool] = True
    randomizer: FrequencyRandomizer
    targets: People
    classes: Codes
    blocks: Codes
    inside: csr_array
    mix: csr_array
    gain: NDArray[np.float64]

    @classmethod
    def of(cls, randomizer: FrequencyRandomizer, public: ArrayLike, *, blocks: ArrayLike, targets: ArrayLike) -> Self:
        """From labels of any kind.

        Parameters
        ----------
        public : array (n,)
            What is known about each person: equal labels make a class.
        blocks : array (n,)
            Where each report can have come from: equal labels are one block.
        targets : int array (m,)

        Raises
        ------
        DataError
            When a class has a single member, from whom nothing can be learned.
        UnsupportedError
            Above 3,000 classes.
        """
        classes, names = encode_labels(public)
        block = encode_labels(blocks)[0]
        if block.size != classes.size:
            raise DataError(f"`blocks` must be {classes.size:,} labels, one for each person, got {block.size:,}.")
        lonely = np.flatnonzero(np.bincount(classes) == 1)
        if lonely.size:
            raise DataError(
                f"`public` must have at least 2 people in each class; {lonely.size:,} have one, such as "
                f"{names[lonely[0]]!s}: join classes."
            )
        if names.size > MOST_CLASSES:
            raise UnsupportedError(
                f"`public` must make at most {MOST_CLASSES:,} classes, got {names.size:,}; join them."
            )
        ones = np.ones(block.size)
        mix = csr_array((ones / np.bincount(block)[block], (block, classes)))
        normal = (mix.T @ csr_array((ones, (block, classes)))).toarray() + np.eye(names.size)
        inside = csr_array((ones, (block, np.arange(block.size))))
        who = check_people("targets", targets, n=classes.size)
        return cls(randomizer, who, classes, block, inside, mix, np.linalg.inv(normal))

    @classmethod
    def prepare(
        cls, known: Knowledge, randomizer: FrequencyRandomizer, shuffler: Shuffler, *, targets: People, rng: Entropy,
        **settings: Any,
    ) -> Self:  # fmt: skip
        blocks = shuffler.uniform_blocks()
        if blocks is None:
            raise UnsupportedError(
                "the de Finetti attack needs places whose reports are mixed evenly; this order is released"
            )
        return cls.of(randomizer, known.classes(), blocks=blocks, targets=targets)

    def guess(self, reports: Reports, rng: Entropy | None = None) -> Guesses:
        rng = entropy_or_system(rng)
        model, weights = self.learn(reports)
        scores = model[self.classes[self.targets]] * weights[self.blocks[self.targets]]
        return argmax_random_ties(scores / scores.max(axis=1, keepdims=True), rng)

    def learn(self, reports: Reports) -> tuple[Model, NDArray[np.float64]]:
        """theta (classes, k), and the sum over the reports of each block (blocks, k)."""
        seen = self.randomizer.support(reports)
        if len(seen) != self.blocks.size:
            raise DataError(f"`reports` must be {self.blocks.size:,}, one for each place, got {len(seen):,}.")
        unbiased = self.randomizer.indicators(reports)
        mean = unbiased.mean(axis=0)
        model = project_shares(mean + self.gain @ (self.mix.T @ (self.inside @ (unbiased - mean))))
        likelihood = np.where(seen, 1.0, np.exp(-self.randomizer.support_log_odds))
        expected = (self.mix @ model)[self.blocks]
        return model, self.inside @ (likelihood / (expected * likelihood).sum(axis=1, keepdims=True))
