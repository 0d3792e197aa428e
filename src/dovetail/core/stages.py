"""The stages of a collection and the laws that every implementation keeps.

Randomizers, shufflers and estimators are frozen values: data and randomness are arguments. The same object lives
on the device and at the analyst. Randomness is the operating system's unless `simulation(seed)` is passed.
"""

from __future__ import annotations

from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dovetail.core.certified import Bracket
from dovetail.core.channel import MOST_CELLS, Channel
from dovetail.core.entropy import Entropy, Permutation, entropy_or_system, simulation
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.guarantee import LocalDP, OrderPrivacy
from dovetail.core.registry import Declared, Registry
from dovetail.core.settings import Parameter, parameters_of
from dovetail_protocol.mechanism import Mechanism, mechanism

Reports = NDArray[Any]  # (n,) or (n, width): one row per person
Labels = NDArray[np.int64]  # (n,), 0..g-1
Encoded = NDArray[np.uint8]  # (n, bytes)
Valid = NDArray[np.bool_]  # (n,)
Support = NDArray[np.bool_]  # (n, k)

_ROUNDED = 1e-9  # by which a channel's logarithms may exceed a guarantee
_ROUNDING = 1e-14  # of a sum of probabilities
_DRAWS = 256  # at each value where the law of a number is compared with its guarantee


class _HeldToItsLaw(ABCMeta):
    """Compares what is made with its own law, after every field is set; the laws hold the built-in ones."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        made = super().__call__(*given, **named)
        if not cls.__module__.startswith("dovetail.") and (wrong := made.disagreement()):
            raise UnsupportedError(wrong)
        return made


class Randomizer(Declared, metaclass=_HeldToItsLaw):
    """Turns one person's value into one report.

    A concrete one is a frozen dataclass whose fields are its domain, `epsilon` and its own settings.
    Laws: reports are independent, `guarantee` holds for the realized thresholds, the published law is exact.

    Raises
    ------
    ParameterError, DataError
        For parameters outside their ranges, and from `randomize` for values outside the domain.
    UnsupportedError
        For a class of another distribution that promises less loss than its own law has.
    """

    question: ClassVar[Literal["frequency", "mean", "vector"]]
    domain: ClassVar[frozenset[str]]  # fields that the data decide
    largest_epsilon: ClassVar[float] = 700.0  # nats that a report can be made with
    epsilon: float

    @property
    @abstractmethod
    def guarantee(self) -> LocalDP:
        """Guarantee of one report."""

    @final
    def randomize(self, values: ArrayLike, rng: Entropy | None = None) -> Reports:
        """Reports for `values`, in the same order; values outside the domain raise DataError."""
        return self._randomize(values, entropy_or_system(rng))

    @abstractmethod
    def _randomize(self, values: ArrayLike, rng: Entropy) -> Reports:
        """`randomize` with the randomness that it is to use."""

    def disagreement(self) -> str:
        """Say how the published law breaks the guarantee; empty where it keeps it, or cannot be compared."""
        return ""

    @final
    @classmethod
    def contradiction(cls) -> str:
        try:
            tuple(cls.examples())
        except UnsupportedError as error:
            return str(error)
        return ""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """Size of one report."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Small instances on which the laws are tested."""

    @classmethod
    def settings(cls) -> tuple[Parameter, ...]:
        return parameters_of(cls, without=cls.domain | {"epsilon"})

    @property
    def accounted(self) -> Randomizer | Channel:
        """Mechanism of the same privacy loss whose law may be known: noise before clamping, or the channel."""
        return self

    def facts(self) -> dict[str, Any]:
        """Facts for a privacy report besides name, epsilon and parameters."""
        return {}

    @property
    def device(self) -> Mechanism:
        """The same for one value at a time, which a device can run and a campaign can name."""
        return mechanism(self.name, **{field.name: getattr(self, field.name) for field in fields(self)})  # type: ignore[arg-type]

    def decode_bytes(self, encoded: Encoded) -> tuple[Reports, Valid]:
        """Reports that devices have encoded (n, bytes), and which rows (n,) are reports at all."""
        raise UnsupportedError(f"randomizer {self.name!r} has no form for devices, so no campaign can use it.")


class FrequencyRandomizer(Randomizer):
    """A randomizer of one of k symbols, coded 0..k-1.

    Laws: `tally` ignores order and adds over concatenation; `invert(tally)` is unbiased for the shares of the
    symbols among exactly these people; its variance per report is `variance(shares)`.

    Raises
    ------
    ParameterError, DataError
        For parameters outside their ranges; for values and reports outside their domains.
    UnsupportedError
        From `channel`, `support` and what needs them, where they would be too large to hold.
    """

    question = "frequency"
    domain = frozenset({"k"})
    names_values: ClassVar[bool] = False  # whether a report is itself one of the symbols
    variance_by_symbol: ClassVar[bool] = False  # whether a symbol's variance depends on its own share alone
    variance_period: ClassVar[str] = "k"  # the field after how many symbols variances repeat, but for own shares
    largest_k: ClassVar[int] = 1 << 31
    k: int

    @abstractmethod
    def channel(self) -> Channel:
        """The law of one report given the value; refuses where it would be too large to hold."""

    @abstractmethod
    def tally(self, reports: Reports) -> NDArray[np.int64]:
        """Counts that are enough for estimation: (width,)."""

    @abstractmethod
    def invert(self, counts: NDArray[Any], n: Any) -> NDArray[np.float64]:
        """Unbiased shares (.., k) from counts (.., width) of n (..) reports."""

    @abstractmethod
    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """n Var[invert] (.., k) for people whose true shares are `shares` (.., k), fixed."""

    @abstractmethod
    def check_reports(self, reports: ArrayLike) -> Reports:
        """`reports` as a valid array; DataError with the first offenders otherwise."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """The realized largest probability ratio of two values, exactly: at most e^epsilon."""

    @property
    def accounted(self) -> Randomizer | Channel:
        return self.channel()

    def disagreement(self) -> str:
        """Compared with its channel: a guarantee that promises less than it keeps is safe."""
        try:
            channel = self.channel()
        except UnsupportedError:  # too large to be held
            return ""
        local = self.guarantee
        if channel.epsilon <= local.epsilon * (1.0 + _ROUNDED) + _ROUNDED:
            return ""
        if local.delta == 0.0:
            return _broken(self, f"a report of its channel has {channel.epsilon:g}")
        return _exceeded(self, channel.matrix())

    @property
    def slack(self) -> float:
        """Nats by which the guarantee exceeds the realized loss of a report; about 0 where it is tight."""
        ratio = self.ratio
        return self.guarantee.epsilon - (log(ratio.numerator) - log(ratio.denominator))

    def all_reports(self) -> Reports:
        """Every report that can be sent, in the order of the channel's columns."""
        return np.arange(self.channel().shape[1])

    def columns(self, reports: Reports) -> NDArray[np.int64]:
        """The channel's column (n,) of each report."""
        return np.asarray(self.check_reports(reports), dtype=np.int64)

    @final
    def support(self, reports: ArrayLike) -> Support:
        r"""Mark the values (n, k) that each report speaks for: those that make it likelier, all by the same factor.

        .. math:: \Pr[y \mid x] = c(y)\, e^{\lambda\, S(y, x)}, \qquad S(y, x) \in \{0, 1\}

        So the likeliest common value of some people is the one that most of their reports support. lambda is
        `support_log_odds`. UnsupportedError for a randomizer without this form, and above ten million cells.
        """
        given = self.check_reports(reports)
        refuse_cells(len(given), self.k)
        return self._support(given)

    def _support(self, reports: Reports) -> Support:
        """`support` of valid reports; this one reads it off a channel whose columns hold two probabilities each."""
        law = self.channel().matrix()
        high, low = law.max(axis=0), law.min(axis=0)
        supported = law > (high + low) / 2
        if not np.allclose(np.where(supported, high, low), law, rtol=1e-9, atol=0.0):
            raise UnsupportedError(f"Reports of {self.label} do not support values; use krr, hadamard or unary.")
        return np.asarray(supported[:, self.columns(reports)].T)

    @property
    def support_log_odds(self) -> float:
        """lambda: by how much a value that a report supports is likelier than one that it does not; nats."""
        return self.channel().epsilon

    def indicators(self, reports: Reports) -> NDArray[np.float64]:
        """Unbiased indicators (n, k) of each sender's value: their mean given x is 1 at x, and 0 elsewhere.

        A batch of one report is inverted, once for each different report, whatever its tally counts.
        """
        given = self.check_reports(reports)
        refuse_cells(len(given), self.k)
        kinds, which = np.unique(given, axis=0, return_inverse=True)
        return np.array([self.invert(self.tally(kind[None]), 1) for kind in kinds])[which.reshape(-1)]

    @classmethod
    def breaks(cls, k: int) -> tuple[float, ...]:
        """Ascending epsilons after which the shape changes and the error jumps up; it falls in between."""
        return ()

    @classmethod
    def burden(cls, k: int, n: int) -> str:
        """Reason why a planner does not recommend it for this many values and people; mostly empty."""
        return ""

    def own_report_leakage(self) -> Bracket | None:
        """Leakage of one report about its owner's value, where the channel has no matrix."""
        return None


def _broken(randomizer: Randomizer, law: str) -> str:
    local = randomizer.guarantee
    promised = f"epsilon {local.epsilon:g}" + (f" and delta {local.delta:g}" if local.delta else "")
    return (
        f"randomizer {randomizer.name!r} promises {promised}, but {law}; one of them is wrong, so nothing is "
        "accounted for."
    )


def _exceeded(randomizer: Randomizer, law: NDArray[np.float64]) -> str:
    r"""Compare delta with the hockey-stick divergence of rows (values, reports), over these reports alone at least.

    .. math:: \delta \ge \sum_y (W_{xy} - e^{\epsilon} W_{x'y})^+
    """
    local = randomizer.guarantee
    scaled = exp(local.epsilon) * law
    delta = max(float(np.maximum(row - scaled, 0.0).sum(axis=1).max()) for row in law)
    if delta <= local.delta * (1.0 + _ROUNDED) + _ROUNDING:
        return ""
    return _broken(randomizer, f"its law has delta {delta:.3g} at this epsilon")


def refuse_cells(reports: int, k: int) -> None:
    """UnsupportedError for tables (reports, k) beyond memory."""
    if reports * k > MOST_CELLS:
        raise UnsupportedError(f"{reports:,} reports about {k:,} values exceed {MOST_CELLS:,} cells; join values.")


class NumericRandomizer(Randomizer):
    """A randomizer of one number in [lower, upper] on a public grid; a report is a whole number of grid steps.

    Laws: `decode(report)` is unbiased for the value, or for its nearest grid point where `rounding` is above 0;
    `log_density` is its exact law.

    Raises
    ------
    ParameterError, DataError
        For parameters outside their ranges; for values outside the range, and reports that are no whole grid steps.
    """

    question = "mean"
    domain = frozenset({"lower", "upper", "grid"})
    memoryless: ClassVar[bool] = True  # geometric noise: reports may be clamped, and tell more than the mean

    lower: float
    upper: float

    @abstractmethod
    def log_density(self, report: ArrayLike, value: ArrayLike) -> NDArray[np.float64]:
        """Log probability of `report` given `value`."""

    def disagreement(self) -> str:
        """Compared at the reports of some draws for both ends and the middle: a law that loses more shows there."""
        values = (self.lower, (self.lower + self.upper) / 2, self.upper)
        reports = np.unique(self._randomize(np.repeat(values, _DRAWS), simulation(1)))
        with np.errstate(divide="ignore"):
            logs = np.stack([self.log_density(reports, np.full(reports.size, value)) for value in values])
        local, seen = self.guarantee, float((logs.max(axis=0) - logs.min(axis=0)).max())
        if seen <= local.epsilon * (1.0 + _ROUNDED) + _ROUNDED:
            return ""
        return (
            _broken(self, f"a report has {seen:g} by its law")
            if local.delta == 0.0
            else _exceeded(self, np.exp(logs))
        )

    @abstractmethod
    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Reports as numbers on the value's scale."""

    @property
    @abstractmethod
    def noise_variance(self) -> float:
        """Variance of a decoded report, in squared units of the value, at most: noise and random rounding."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """Largest distance of a value from its grid point; 0 where it is rounded to its neighbours at random."""

    @property
    def step(self) -> float:
        """Width of one grid step."""
        return 2.0 * self.rounding

    @property
    def overshoot(self) -> float:
        """Where `memoryless`: o, mean steps of noise beyond an end of the grid; its variance is 2 o (o + 1)."""
        half = self.noise_variance / (2.0 * self.step**2)
        return 2.0 * half / (1.0 + sqrt(1.0 + 4.0 * half))

    def noise_of_mean(self, around: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variance (..) of a decoded report, at most, for people with this mean square (..) around the middle."""
        return np.full(np.shape(around), self.noise_variance)

    @classmethod
    def shapes(cls, *, lower: float, upper: float, grid: float | None) -> tuple[Callable[[float], Self], ...]:
        """Makers of an epsilon, with settings that a planner searches; none without such settings."""
        return ()

    @property
    def report_bits(self) -> int:
        return 64


@dataclass(frozen=True, eq=False)
class PublicData:
    """All that a shuffler may be fitted to.

    Parameters
    ----------
    n : int
        People.
    groups : Groups, optional
        Who must be indistinguishable by order.
    points : float array (n, d), optional
        Public coordinates, where the groups are made of some.
    graph : sparse array (n, n), optional
        Public relationships.
    columns : float arrays (n,) by name
        The public columns that settings of shufflers name.
    """

    n: int
    groups: Any = None
    points: NDArray[np.float64] | None = None
    graph: Any = None
    columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


class ShufflerKind(Declared):
    """Base of what a configuration may name as a shuffler: one that is fitted, or a choice among them."""

    needs_groups: ClassVar[bool] = True
    needs_alpha: ClassVar[bool] = True
    drawn_by_labels: ClassVar[bool] = False  # whether tasks that see some rows each can draw it, in files
    moves_reports: ClassVar[bool] = True  # False: everybody's report stays in place, for comparison only

    @classmethod
    @abstractmethod
    def from_public(cls, public: PublicData, *, alpha: float | None = None, **settings: Any) -> Shuffler:
        """The shuffler fitted to public data; `settings` are the declared ones."""

    @classmethod
    def objection(cls, *, alpha: float | None, coordinates: int | None, settings: dict[str, Any]) -> str:
        """Reason why it cannot be fitted to what a configuration gives, without a full stop; or nothing.

        `coordinates`: columns of coordinates that the groups are made of, 0 for labels; None without groups.
        """
        if cls.needs_groups and coordinates is None:
            return f"shuffler {cls.name!r} needs `groups`"
        return f"shuffler {cls.name!r} needs `alpha`" if cls.needs_alpha and alpha is None else ""


class Shuffler(ShufflerKind):
    """Reorders a batch of reports.

    Laws: z[i] = y[permutation[i]]; `log_weight` is the exact log probability of a permutation; shuffling never
    looks at the reports; `guarantee` holds for that law. Fitted shufflers are made from public data alone.

    Raises
    ------
    ParameterError, DataError
        For parameters outside their ranges; from `shuffle` for another number of reports.
    UnsupportedError
        From `exact_alpha` and `restrict`, where a shuffler cannot answer.
    """

    n: int

    @property
    @abstractmethod
    def guarantee(self) -> OrderPrivacy:
        """Guarantee of the order of the released batch."""

    @final
    def permutation(self, rng: Entropy | None = None) -> Permutation:
        """A draw: place i receives the report of person permutation[i]."""
        return self._permutation(entropy_or_system(rng))

    @abstractmethod
    def _permutation(self, rng: Entropy) -> Permutation:
        """`permutation` with the randomness that it is to use."""

    @abstractmethod
    def log_weight(self, permutation: ArrayLike) -> float:
        """Log probability that `permutation` returns this permutation."""

    @abstractmethod
    def mixing(self, labels: Labels) -> NDArray[np.float64]:
        """Public expectation (g, g): share of the reports at places of group a that people of group b sent.

        Rows sum to 1. One minus the diagonal bounds the bias of a share read off at the places of a group.
        """

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Summary of the fit, in public numbers."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Small instances on which the laws are tested."""

    @property
    def acting(self) -> Shuffler:
        """Shuffler that reorders the batch: itself, or the one that it has chosen."""
        return self

    @property
    def keeps_places(self) -> bool:
        """True if a place still says something about its sender, so that public columns may stand beside."""
        return True

    def uniform_blocks(self) -> Labels | None:
        """Number (n,) of the block of places that are uniformly mixed among each other; None for other laws."""
        return None

    def exchangeable_blocks(self) -> Labels | None:
        """Number (n,) of the block in which people can be relabelled, so that it hides them as if mixed uniformly."""
        return self.uniform_blocks()

    @property
    def smallest_block(self) -> int | None:
        """Size of the smallest of these blocks; None for other laws."""
        blocks = self.exchangeable_blocks()
        return None if blocks is None else int(np.unique(blocks, return_counts=True)[1].min())

    def exact_alpha(self, groups: Any) -> float:
        """alpha of the order for other groups of the same people, rounded up; infinite where nothing is promised."""
        other = f"Theorem 4.4 gives the alpha of other groups for Mallows orders; {self.name} is none."
        raise UnsupportedError(f"{other} Its own guarantee holds for every group inside one of its groups.")

    def restrict(self, present: ArrayLike) -> Shuffler:
        """This shuffler for the people that are `present` (n,), in their order, with the same guarantee."""
        raise UnsupportedError(f"shuffler {self.name!r} cannot do with people missing.")

    def facts(self) -> dict[str, Any]:
        """Facts of one round, besides the guarantee, for a report on repeated collections."""
        return {}

    @final
    def shuffle(self, reports: ArrayLike, rng: Entropy | None = None) -> Reports:
        """The batch in its released order; `reports` has one row per person (n, ..)."""
        batch = np.asarray(reports)
        if batch.ndim == 0 or len(batch) != self.n:
            got = "a single value" if batch.ndim == 0 else f"{len(batch):,}"
            raise DataError(f"`reports` must have {self.n:,} rows, as the shuffler was fitted for, got {got}.")
        return batch[self.permutation(rng)]


# What an attack on values is: what it may know, and when it guesses.


class Knowledge(ABC):
    """Knowledge of an attacker about everybody's values beforehand."""

    @abstractmethod
    def places(self, targets: Labels, *, votes: int, rng: Entropy) -> Labels:
        """Places (targets, votes) of people like each target, -1 for none."""

    @abstractmethod
    def points(self) -> NDArray[np.float64]:
        """Everybody's place (n, d), each column in units of its standard deviation."""

    @abstractmethod
    def classes(self) -> Labels:
        """Number (n,) of the class of people of whom the same is known."""

    def coarser(self) -> list[Labels]:
        """Classes (n,) by a part of what is known, each of them another way to group people."""
        return []

    def shares(self, k: int) -> NDArray[np.float64]:
        """Everybody's row (n, k): how often people of whom the same is known hold each value, where that is known."""
        raise UnsupportedError("the shares of the values given what is known are not known")

    @abstractmethod
    def release(self, randomizer: Any, shuffler: Shuffler, rng: Entropy) -> Reports:
        """A released batch of these people to learn from: one that was seen, or in a rehearsal one more."""


class Attack(Declared):
    """Guesses people's values from a released batch and public data.

    Laws: `guess` depends on the batch, on public data and on `rng`, never on the true values.

    Raises
    ------
    UnsupportedError, DataError
        From `prepare`, where an attack does not apply to this randomizer, shuffler or knowledge.

    Examples
    --------
    >>> from dovetail.core.stages import ATTACKS
    >>> "majority" in ATTACKS and issubclass(ATTACKS["majority"], Attack)
    True
    """

    asks_what_is_mixed: ClassVar[bool] = False  # whether it needs the blocks of places that the shuffler mixes

    guesses_numbers: ClassVar[bool] = False  # whether it guesses which part of its range a number is in

    targets: Labels  # (m,), the people whose values are guessed

    @classmethod
    @abstractmethod
    def prepare(
        cls, known: Knowledge, randomizer: Any, shuffler: Shuffler, *, targets: Labels, rng: Entropy, **settings: Any
    ) -> Self:
        """An attacker that has learned what it needs; UnsupportedError or DataError where it does not apply."""

    @classmethod
    def behind(cls, known: Knowledge, noise: Any, people: Any, *, targets: Labels, **settings: Any) -> Any:
        """An attacker on the batch of a `core.noise.Noise` that needs a uniform shuffle of everybody."""
        raise UnsupportedError(
            f"{cls.label}: a uniform shuffle of everybody leaves no place to read; take likelihood"
        )

    @abstractmethod
    def guess(self, reports: Reports, rng: Entropy | None = None) -> Labels:
        """The value (m,) of each target, from the reports in their released order; `rng` breaks ties."""

    def remark(self, reports: Reports, rng: Entropy) -> str:
        """Remark for readers of the result, judged on one batch; mostly empty."""
        return ""

    @classmethod
    def weighed(cls, n: int, settings: dict[str, Any]) -> int | None:
        """Reports that are weighed for each target; None for all that can be the target's."""
        return None


class ReportSection(Declared):
    """Something that is measured on simulated releases of a collection, and what a page says of it.

    `name` is its key in report.json, which no other part of a report has. Laws: what it finds is JSON-ready, and
    depends on the collection and on `rng` alone.

    Examples
    --------
    >>> "copying" in SECTIONS and issubclass(SECTIONS["copying"], ReportSection)
    True
    """

    @classmethod
    @abstractmethod
    def measure(cls, collection: Any, rng: Entropy) -> Any:
        """The finding for a `Collection` with its shuffler, a dictionary; or `Missing`, with the reason."""

    @classmethod
    @abstractmethod
    def notes(cls, found: dict[str, Any]) -> tuple[str, ...]:
        """Whole sentences for the page, the finding first."""


# The registries: what there is of each kind, by name.


RANDOMIZERS: Registry[Randomizer] = Registry(
    "randomizer", Randomizer, package="dovetail.randomize", group="dovetail.randomizers"
)
SHUFFLERS: Registry[ShufflerKind] = Registry(
    "shuffler", ShufflerKind, package="dovetail.shuffle", group="dovetail.shufflers"
)
ATTACKS: Registry[Attack] = Registry("attack", Attack, package="dovetail.attack", group="dovetail.attacks")
SECTIONS: Registry[ReportSection] = Registry(
    "section", ReportSection, package="dovetail.memorize.sections", group="dovetail.sections"
)


FRACTIONS = ("epsilon", "lower", "upper", "grid", "people")  # settings that need not be whole


def read_randomizer(text: str, *, also: tuple[str, ...] = ()) -> tuple[type[Randomizer], dict[str, Any]]:
    """Read NAME:key=value,.. as a kind of randomizer and its settings; `also` names keys of the caller.

    >>> read_randomizer("krr:k=10,epsilon=2")[1]
    {'k': 10, 'epsilon': 2.0}
    """
    name, _, rest = (part.strip() for part in text.partition(":"))
    kind = RANDOMIZERS[name]
    allowed = sorted({*kind.domain, "epsilon", *also, *(setting.name for setting in kind.settings())})
    given: dict[str, Any] = {}
    for pair in filter(None, (part.strip() for part in rest.split(","))):
        key, _, value = (part.strip() for part in pair.partition("="))
        if key not in allowed or not value or key in given:
            raise ParameterError(f"{name} must have {', '.join(allowed)} as key=value, got {pair!r}.")
        given[key] = _setting(value, key)
    return kind, given


def _setting(text: str, key: str) -> Any:
    """A number, whole where only whole ones make sense; a word otherwise."""
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if key not in FRACTIONS and value.is_integer() else value
