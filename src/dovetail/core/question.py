"""What is asked of a person and what is learned: the contract of every question, and where they are found."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.estimate import Z95, Estimate, OfGroups, Tally
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.registry import Declared, Registry
from dovetail_protocol.asked import Symbol

MOST_KINDS = 1 << 20  # different answers that a task counts
MANY = 1e12  # people, beyond whom no number is said
DROWNED, WEAK = 1.0, 0.5  # of `noise_ratio`: nothing is learned, and little
PUBLIC_LISTS = (
    "Lists of answers, bins and trees are public: fixed beforehand, or chosen from what earlier rounds released."
)

Values = NDArray[Any]  # (n,) codes or numbers of one private column, or (n, columns) numbers of several


class Question(Declared):
    """A question to a person: a frozen dataclass in a file of `question` that bears its name.

    Laws: `learned` depends on the reports through `noise.tally` alone, so that any split and order of a batch gives
    the same estimate; it is unbiased for exactly these people, or says by how much it is not.

    Raises
    ------
    UnsupportedError
        From `within`, where an order moves reports between groups in a way that this question cannot undo.
    """

    measure: ClassVar[str]  # the unit of what is learned: "share", in percent, "mean", "covariance"
    needs: ClassVar[Literal["frequency", "mean", "vector"]]  # which randomizers can carry it
    hidden: ClassVar[Missing | None] = None  # why nobody's guesses at an answer are measured; None where they may be
    planned: ClassVar[Mapping[str, Sequence[Any]]] = {}  # a setting that plans choose, and its values in their order
    planned_gain: ClassVar[float] = 0.0  # part of the error that a later value of it must save to be chosen
    needs_names: ClassVar[bool] = False  # whether reports have to name answers themselves
    planned_of: ClassVar[str] = "whatever people hold"  # of whom `error` is
    planned_measure: ClassVar[str] = ""  # the unit of `error`, where it is another than `measure`
    of_table: ClassVar[tuple[str, ...]] = ()  # settings that only a table knows: plans leave them to be filled in
    of_numbers: ClassVar[bool] = True  # whether [data] declares a range and no categories
    of_arrays: ClassVar[bool] = False  # whether each person has an array: values are (n, `domain`'s `d`) then
    unsent: ClassVar[str] = ""  # why no device of a campaign can answer it; empty where one may
    takes_gaps: ClassVar[bool] = False  # whether a person without a number answers, too: values are NaN then
    several: ClassVar[bool] = False  # whether a person always answers with several symbols
    of_samples: ClassVar[bool] = True  # whether it says how far off everybody's numbers are, where only some answer
    drowns: ClassVar[bool] = True  # whether a release of which noise leaves nothing is refused, and not only told
    bounds_sums: ClassVar[bool] = False  # whether intervals need how far a sum of shares may be off, `Noise.reach`

    @classmethod
    @abstractmethod
    def of(cls, data: Any, categories: Sequence[str] | None, **settings: Any) -> Self:
        """The question about the private column of a section [data], whose `categories` may have been inferred."""

    @property
    def symbols(self) -> int:
        """How many answers a person gives, each in a message of its own."""
        return 1

    @property
    def lists(self) -> tuple[int, ...]:
        """How many answers each of the symbols has; together `domain`'s `k`, where that is asked for."""
        return (self.domain["k"],)

    @property
    def precisions(self) -> tuple[int, ...]:
        """Weights of the symbols: where the noise allows, counts of a symbol vary by one over its weight."""
        return (1,) * self.symbols

    @property
    @abstractmethod
    def column(self) -> dict[str, Any]:
        """The keys of [data] about the private column: `categories`, or `lower` and `upper`."""

    @property
    @abstractmethod
    def domain(self) -> dict[str, Any]:
        """The domain of its randomizer: the number of symbols `k`, or `lower`, `upper` and `grid`."""

    @property
    def names(self) -> list[str] | None:
        """The names of the symbols, where reports are symbols."""
        return None

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """The names of the numbers that are learned."""

    @final
    @property
    def learns_shares(self) -> bool:
        """True if what is learned is the share of each answer: the numbers bear the names of the answers."""
        return self.names is not None and self.names == self.labels

    @property
    def span(self) -> tuple[float, float] | None:
        """Between which numbers the truth lies; None of shares."""
        return None

    @property
    def is_chosen(self) -> bool:
        """True if a list could have been fitted to these people: a report then says `PUBLIC_LISTS`."""
        return False

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """The same of each number that is learned, where they differ: two arrays."""
        return self.span

    @property
    def further(self) -> Mapping[str, tuple[float, float] | tuple[str, ...]]:
        """Private columns beside the first one, with the range of each, or its categories."""
        return {}

    def answer(self, values: Values, rng: Entropy) -> Values:
        """Turn values into what a device hands to its randomizer, for everybody (n,), or (n, symbols)."""
        return values

    def device_symbols(self, names: Sequence[str], k: int | None) -> tuple[Symbol, ...] | None:
        """How a device makes the symbols of `answer` from values of these names; None where that is not stated.

        Law: with the same random words the symbols of one person are those of `answer`. Without symbols the
        randomizer takes the value itself; of a list of `k` symbols a question may have to make them.
        """
        return None

    @abstractmethod
    def learned(self, noise: Noise, tally: Tally, people: People) -> Estimate:
        """The numbers that are learned about these people, with their errors."""

    def error(self, noise: Noise, people: People) -> float:
        """The standard error of what is learned of these people, before any data and whatever they hold.

        By default what the noise says of a share or of a mean.
        """
        return noise.error(people)

    def error95(self, noise: Noise, people: People) -> float | None:
        """How far off it may be with probability 95 %; None where that is by the normal law."""
        return None

    def planned_beside(self, noise: Noise, people: People) -> Mapping[str, float]:
        """Further errors that a plan tells, by name, in the unit of `error`."""
        return {}

    def noise_ratio(self, noise: Noise, people: People) -> float:
        """How far off what is learned may be with a chance of 5 %, over half of all that can be true.

        From 1 on an interval of 95 % is as wide as what was known before: noise drowns it.
        """
        low, high = self.span or (0.0, 1.0)
        return 2.0 * Z95 * self.error(noise, people) / (high - low)

    @final
    def too_few(self, noise: Noise, people: People, ratio: float = DROWNED) -> str | None:
        """Say that noise drowns the question (`noise_ratio` of `ratio` or more), and how many people it takes."""
        if self.noise_ratio(noise, people) < ratio:
            return None
        needed = people_needed(lambda n: self.noise_ratio(noise, noise.more(people, n)) < ratio, people.n)
        what = "drowns" if ratio >= DROWNED else "hides most of"
        return f"noise {what} {self.label} of {people.n:,} people: with as much noise it takes {needed}"

    def curve(self, noise: Noise, tally: Tally, people: People) -> dict[str, Any] | Missing:
        """The curve behind the numbers that are learned: `place`, `share`, and its 95 % interval, `low` to `high`."""
        return Missing("what is asked has no curve")

    def after(
        self, low: NDArray[np.float64], high: NDArray[np.float64], n: int, curve: Any
    ) -> Mapping[str, Any] | Missing:
        """Settings of the next question of one that is asked in rounds, from what was published about n people."""
        return Missing(f"{self.label}: is asked once, and no next round is better for what was learned")

    def beside(self, noise: Noise, found: Estimate, truth: Sequence[float] | None) -> Mapping[str, Any]:
        """Facts about all numbers together, by name, for the report on everybody; `hidden` if noise leaves none."""
        return {}

    def notes(self, beside: Mapping[str, Any], *, n: int, mode: str) -> tuple[str, ...]:
        """Further assumptions under which the numbers mean what they say."""
        return ()

    @abstractmethod
    def truth(self, values: Values) -> list[float]:
        """The same of the true answers; after these numbers, what `beside` says of them."""

    def known(self, values: Values) -> Counter[str]:
        """Counts of true answers, for rehearsals in files: whole numbers that add, in any order and split.

        By default how many people hold each answer; questions whose answers are too many to be listed say less.
        """
        kinds, counts = np.unique(values, axis=0, return_counts=True)
        if len(kinds) > MOST_KINDS:
            raise UnsupportedError(
                f"{self.label}: its truth takes all of {len(kinds):,} different answers at once, and tasks have "
                f"{MOST_KINDS:,} at most; rehearse a sample without --engine."
            )
        named = zip(np.ascontiguousarray(kinds), counts.tolist(), strict=True)
        return Counter({f"{kinds.dtype.str} {kind.tobytes().hex()}": count for kind, count in named})

    def recalled(self, counted: Mapping[str, int]) -> list[float]:
        """`truth` of the answers that were counted so."""
        held = [(key.split(" "), count) for key, count in sorted(counted.items())]
        kinds = np.array([np.frombuffer(bytes.fromhex(text), dtype=kind) for (kind, text), _ in held])
        values = np.repeat(kinds, [count for _, count in held], axis=0)
        return self.truth(values[:, 0] if values.shape[1] == 1 else values)

    def within(self, noise: Noise, tally: Tally, mixing: NDArray[np.float64] | None, people: People) -> Estimate:
        """The estimates of each public group, from its tally (groups, ..)."""
        if mixing is not None:
            raise UnsupportedError(f"{self.label}: this order moves reports between groups.")
        parts = [
            self.learned(noise, Tally(counts, int(n)), People(int(n), people.public.clear()))
            for counts, n in zip(tally.counts, tally.n, strict=True)
        ]
        return Estimate(
            value=np.array([one.value for one in parts]),
            standard_error=np.array([one.standard_error for one in parts]),
            n=np.array([int(one.n) for one in parts]),
            population_error=np.array([one.population_error for one in parts]),
            spread=OfGroups(own) if (own := tuple(one.spread for one in parts if one.spread is not None)) else None,
        )

    @abstractmethod
    def described(self, private: str) -> dict[str, Any]:
        """The question in the report's `collection`, of a column of this name: its `kind` and its domain."""


def people_needed(enough: Callable[[int], bool], n: int) -> str:
    """Say the least number of people above n who are enough, to a part in a thousand."""
    low, high = float(n), 2.0 * n
    while high < MANY and not enough(math.ceil(high)):
        low, high = high, 2.0 * high
    while high < MANY and high > 1.001 * low and math.ceil(high) > math.floor(low) + 1:
        middle = math.floor((low + high) / 2.0)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return f"{math.ceil(high):,} people" if high < MANY else f"more than {MANY:,.0f} people"


QUESTIONS: Registry[Question] = Registry("question", Question, "dovetail.question", "dovetail.questions")
