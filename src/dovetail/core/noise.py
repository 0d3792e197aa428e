"""Who makes the noise, hence whom one has to trust: the contract of every way, and where they are found."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.estimate import Estimate, Tally, tally_groups
from dovetail.core.extras import no_columns, pl
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.missing import Missing
from dovetail.core.registry import Declared, Registry
from dovetail.core.special import binomial_cdf
from dovetail.core.stages import FrequencyRandomizer, Labels, NumericRandomizer, Reports, Shuffler

if TYPE_CHECKING:
    import polars as pl

Weights = NDArray[np.float64]  # (m, k): m weighted sums of shares
Promise = TypeVar("Promise", LocalDP, CentralDP)
DOUBT = 0.01  # of delta: that fewer people draw a question than its promise counts on
CDF_SLACK = 1.0 + 1e-9  # more than a binomial probability is off
NO_VECTORS = {"vector": "it hides answers of a list, and of vectors there are too many to be listed"}


@final
@dataclass(frozen=True, eq=False)
class People:
    """Who takes part, as everybody may know it.

    Parameters
    ----------
    n : int
    public : data frame (n, public columns)
        Beside the reports; none by default.
    honest : int, optional
        People assumed honest; all by default.
    counted : mapping from a public label to how many people have it
        Instead of `public`, where people are too many to be listed.
    drawn : bool
        Whether the n are a uniform sample of the people whose labels are there. Else those whose reports are missing
        may be any of them.
    """

    n: int
    public: pl.DataFrame = field(default_factory=no_columns)
    honest: int | None = None
    counted: Mapping[str, int] = field(default_factory=dict)
    drawn: bool = False

    @property
    def trusted(self) -> int:
        """How many are assumed honest."""
        return self.n if self.honest is None else min(self.honest, self.n)


def fewest_drawn(n: int, chance: float, doubt: float, *, herself: bool = True) -> int:
    """How many of n people draw a question with this `chance` each, at least, but with probability `doubt`.

    Who is promised something has drawn it for certain; without `herself` all of them are others.

    >>> fewest_drawn(1000, 0.5, 1e-6), fewest_drawn(1, 0.5, 1e-6), fewest_drawn(10, 0.5, 1e-6, herself=False)
    (426, 1, 0)
    """
    others = n - herself
    return herself + bisect_left(
        range(others), True, key=lambda x: float(binomial_cdf(x, others, chance)) * CDF_SLACK > doubt
    )


@final
@dataclass(frozen=True)
class Telling:
    """A release that tells more than the real one, so that guesses from it are an upper bound.

    Parameters
    ----------
    randomizer : FrequencyRandomizer
    n, honest : int
        People in a uniform shuffle, and those who hide somebody.
    promise : CentralDP
        Of the real release, to people of this kind.
    why : str
        What of it is more.
    """

    randomizer: FrequencyRandomizer
    n: int
    honest: int
    promise: CentralDP
    why: str


class Noise(Declared):
    """A noise hides an answer: on the device, among dummies of the shuffler, or among dummies of people.

    A concrete one is a frozen dataclass in a file of `noise` that bears its name. Laws: `tally` ignores the order of
    reports and adds over batches, bit for bit; `shares`, `mean` and `moments` are unbiased for exactly these people
    unless `estimator` says of whom; `central` holds for what `randomize`, a shuffle and `complete` release together.

    Raises
    ------
    DataError
        From `shares`, `mean` and `moments`, for a batch that these people cannot have sent.
    UnsupportedError
        From what a noise cannot give, with the reason.
    """

    trust: ClassVar[str]  # who has to be trusted beside the analyst: "local", "shuffler" or "users"
    hidden: ClassVar[Missing | None] = None  # why guesses and groups are not measured; None where they are
    estimator: ClassVar[dict[str, str] | Missing]
    everybody: ClassVar[str] = ""  # why it needs a uniform shuffle of everybody; empty where it does not
    unfit: ClassVar[Mapping[str, str]] = NO_VECTORS  # what a question may need that this noise cannot carry, and why
    unattacked: ClassVar[str] = ""  # why no attack is mounted on its batches; empty where `explained` says how
    sends: ClassVar[str] = ""  # what a device does with an answer, where its randomizer does not say so by itself
    mixes: ClassVar[str] = ""  # what the shuffler does beside mixing, for the report
    several: ClassVar[bool] = False  # whether a person may send several symbols
    fresh_orders: ClassVar[str] = ""  # why it goes with no order that tells something; empty where it may
    unsearched: ClassVar[str] = ""  # why no search for strings is hidden by it; empty where one may
    bounded: ClassVar[bool] = False  # whether the count of an answer that nobody gives has a largest error
    by_devices: ClassVar[bool] = False  # whether devices alone add it, all by one law: answers may share a message
    apart: ClassVar[str] = ""  # why it hides no report with several answers; empty where one may be hidden

    @property
    def symbols(self) -> int:
        """How many symbols a person sends, each as a message of its own: then reports are (n, symbols)."""
        return 1

    @property
    def kinds(self) -> int:
        """How many different reports a person can send, where dummies look like any of them; else 0."""
        return 0

    @property
    def carrier(self) -> Noise:
        """The noise of the messages that hold these answers: another one where they hold several, among dummies.

        Such messages are the numbers of combinations of answers. What the carrier promises holds for each answer, and
        estimates of an answer are those of this noise, its marginal.
        """
        return self

    @property
    @abstractmethod
    def randomizer(self) -> FrequencyRandomizer | NumericRandomizer:
        """The randomizer of each device; of several epsilons the one of the largest."""

    @property
    @final
    def local(self) -> LocalDP:
        """Local guarantee of one report, or of all rounds where it is sent again."""
        return self.of_all_rounds(self.randomizer.guarantee)

    def of_all_rounds(self, promise: Promise) -> Promise:
        """The guarantee of one batch as that of every round where answers are sent again."""
        return promise

    def repeated(self, local: LocalDP) -> tuple[str, ...]:
        """Assumptions over rounds where answers are sent again, of people who spend `local`, for the report."""
        return ()

    @property
    def accounted(self) -> FrequencyRandomizer | NumericRandomizer | None:
        """The randomizer of everybody, where nothing else hides an answer: several answers then have one account."""
        return None

    def randomize(self, values: NDArray[Any], people: People, rng: Entropy) -> Reports:
        """Everybody's report, in the order of the people."""
        return self.randomizer.randomize(values, rng)

    def messages(self, reports: Reports, rng: Entropy) -> Sequence[tuple[Labels, Reports]]:
        """Turn reports (n, ..) into what is mixed, in parts that are shuffled apart or drawn from.

        Each part is the places of its senders and one message of each of them. By default everybody's report, and
        where a person sends several symbols, everybody's first one, second one and so on.
        """
        everybody = np.arange(len(reports))
        return tuple((everybody, each) for each in (reports.T if self.symbols > 1 else (reports,)))

    def beside(self, count: int, rng: Entropy) -> tuple[Labels, Reports]:
        """Dummies of `count` people: the places of the senders, and their messages."""
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def added(self, rng: Entropy) -> Reports:
        """Dummies of the shuffler for a batch: drawn once, when it is closed."""
        return np.empty(0, dtype=np.int64)

    @final
    def complete(self, batch: Reports, rng: Entropy) -> Reports:
        """A shuffled batch with all that is sent besides or added, in uniformly random order."""
        if self.hidden is None:
            return batch
        own = [sent for _, sent in self.messages(batch, rng)]
        more = np.concatenate([self.beside(len(batch), rng)[1], self.added(rng)])
        if own[0] is batch and not more.size:
            return batch
        mixed = np.concatenate([*own, more])
        return mixed[rng.permutation(mixed.size)]

    @abstractmethod
    def central(self, shuffler: Shuffler, people: People, *, delta: float) -> CentralDP | Missing:
        """The guarantee of the released batch for one of these people."""

    def runs(self, people: People) -> tuple[tuple[FrequencyRandomizer | NumericRandomizer, Labels], ...]:
        """Which randomizer runs on the devices of which people: everybody is in one of them."""
        return ((self.randomizer, np.arange(people.n)),)

    @property
    def kept(self) -> float:
        """Chance that a report of a person is in the batch."""
        return 1.0

    def explained(self, counts: NDArray[np.int64], sent: NDArray[np.int64]) -> NDArray[np.float64]:
        """Log of how likely each count (k,) of a released batch is, where people sent so many of it (m, k).

        Of those that are kept, and up to a factor that the batch alone decides: what is released depends on who sent
        what through the product of these. Attackers weigh by it how many reports of a batch are people's.
        """
        raise UnsupportedError(f"{self.label}: how many reports of a batch are those of people is not known")

    @abstractmethod
    def tally(self, reports: Reports) -> Tally:
        """The tally of a batch, which is all that estimates need of it; tallies of its parts add."""

    @final
    def tallies(self, reports: Reports, places: Labels, groups: int) -> Tally:
        """The tally of each public group (groups, ..), whose reports lie at its `places` (n,)."""
        return tally_groups(self.tally, reports, places, groups)

    @abstractmethod
    def expected(self, shares: NDArray[np.float64], people: People) -> Tally:
        """The tally on average of people who answer with these `shares` (k,): what plans have instead of reports."""

    @abstractmethod
    def error(self, people: People) -> float:
        """Standard error of one share or of the mean, before any data and whatever people hold."""

    @final
    def error_of_one_answer(self, people: People, *, k: int) -> float:
        """The largest standard error where all people give the first of k answers."""
        solve = self.mean if self.randomizer.question == "mean" else self.shares
        return float(np.max(solve(self.expected(np.eye(1, k)[0], people), people).standard_error))

    @abstractmethod
    def shares(self, tally: Tally, people: People) -> Estimate:
        """Shares (k,) of the answers."""

    @abstractmethod
    def mean(self, tally: Tally, people: People) -> Estimate:
        """The mean of a number."""

    def moments(self, tally: Tally, weights: Weights, people: People) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weighted sums (m,) of the shares, and how the noise in them varies together (m, m), bounded from above."""
        raise UnsupportedError(f"{self.label}: how errors of different answers go together is not known.")

    def deviation(self, weights: Weights, sizes: Weights, people: People) -> NDArray[np.float64]:
        """The largest standard deviation of each sum as in `reach`, whatever people hold."""
        raise UnsupportedError(f"{self.label} counts no answers.")

    def reach(
        self, weights: Weights, sizes: Weights, held: NDArray[np.int64], people: People, *, tail: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far weighted sums of shares may lie below and above the truth (held or 1, sums), certainly.

        Each side but with probability `tail` at most, by the law of the noise itself.

        Parameters
        ----------
        weights, sizes : float arrays (sums, classes)
            Each sum weighs so many answers alike.
        held : int array
            People who answer with the first class, for each case; the others answer with equal weights.
        """
        raise UnsupportedError(f"{self.label} counts no answers.")

    def part(self, symbol: int) -> Noise:
        """The noise of one of the symbols that a person sends, of its list alone where lists differ."""
        return self

    def null_law(self, people: People) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Law of the estimated count of an answer that nobody gives: values in even steps, ascending, and masses.

        All of it where the noise is `bounded`; else without what is rarer than 1e-15.
        """
        raise UnsupportedError(f"{self.label}: no law of the count of an answer without people is known.")

    def off(self, held: NDArray[np.int64], people: People, rng: Entropy) -> NDArray[np.float64]:
        """How far counts (k,) are off where so many people gave each answer: for tests that simulate a release."""
        raise UnsupportedError(f"{self.label}: how far counts are off depends on what people hold.")

    def telling(self, people: People, *, delta: float) -> tuple[Telling, ...]:
        """Releases of answers that tell more, one for each kind of people; none where guesses are exact."""
        return ()

    @abstractmethod
    def linkage(self, shuffler: Shuffler, people: People, shares: NDArray[np.float64] | None) -> Any:
        """The `leak.linkage.Linkage` of a person to her report, or why there is none, at these `shares` (k,)."""

    def more(self, people: People, n: int) -> People:
        """So many people like these."""
        return People(n, honest=None if people.honest is None else max(1, people.honest * n // people.n))

    @property
    def counts_on_people(self) -> bool:
        """Whether its promise rests on how many people there are."""
        return True

    def fewest(self, people: People, chance: float, doubt: float) -> People:
        """The fewest of these people who draw a question with this `chance`, but with probability `doubt`."""
        honest = None if people.honest is None else fewest_drawn(people.trusted, chance, doubt)
        return People(fewest_drawn(people.n, chance, doubt), honest=honest)

    def check(self, people: People) -> None:
        """ConfigError for what its settings say of these people and cannot be meant."""

    def refuse_shuffler(self, shuffler: Shuffler) -> None:
        """UnsupportedError for an order that this noise says nothing about."""
        if self.everybody and shuffler.keeps_places:
            raise UnsupportedError(f"{self.label} goes with a uniform shuffle of everybody: {self.everybody}.")

    def most_added(self, people: People) -> int:
        """The most messages in a batch beyond one for each person."""
        return 0

    def most_dropped(self, people: People) -> int:
        """The most reports of people that are not in a batch."""
        return 0

    @property
    def releases(self) -> int:
        """How many releases about the same people keep the promise together, this one among them."""
        return 1

    def rounds_note(self) -> str:
        """A mark that releases about the same people share if they keep one promise together; empty where none do."""
        return ""

    def described(self, people: People) -> dict[str, Any]:
        """The settings that a later stage needs to read released reports."""
        return {}

    def assumptions(self, people: People, *, delta: float, central: CentralDP | Missing) -> tuple[str, ...]:
        """Who sends what, and whom the promise counts on: sentences for the report, the first about reports."""
        return ("Each person sends exactly one report.",)


NOISES: Registry[Noise] = Registry("noise", Noise, "dovetail.noise", "dovetail.noises")
