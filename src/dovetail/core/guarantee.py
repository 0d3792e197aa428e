"""Guarantees as values: how much, against whom, for which neighbours, by which theorem.

A guarantee is never a bare float. It knows what it implies and composes only where a theorem composes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf, nextafter
from typing import Literal, Protocol, Self, final

from dovetail.core.certified import Bracket, sum_as_written
from dovetail.core.display import Display, Grid, displayed_by, upward
from dovetail.core.errors import ParameterError, UnsupportedError

Trust = Literal["local", "shuffler", "users"]  # who makes the noise that the central epsilon rests on
SIMULATED = "drawn from a simulation seed: protects nobody"


class Grouping(Protocol):
    """The groups an order guarantee speaks about."""

    def covers(self, other: object) -> bool:
        """True if every group of `other` lies inside a group of this grouping."""
        ...


_NOISE = {"local": "nobody", "shuffler": "the shuffler", "users": "the other people"}


class Caveated:
    """A guarantee, a frozen dataclass that says in `caveats` what takes it away."""

    caveats: tuple[str, ...]

    @final
    def drawn_from(self, provenance: str) -> Self:
        """This guarantee for randomness of the given provenance; simulation takes it away and says so."""
        return self if provenance == "device" else replace(self, caveats=(*self.caveats, SIMULATED))  # type: ignore[type-var]


def check_epsilon_delta(epsilon: float, delta: float) -> None:
    """Refuse an epsilon below 0 and a delta that is no probability."""
    if not epsilon >= 0.0:
        raise ParameterError(f"`epsilon` must be at least 0, got {epsilon!r}.")
    if not 0.0 <= delta <= 1.0:
        raise ParameterError(f"`delta` must lie in [0, 1], got {delta!r}.")


def _brief(line: str, caveats: tuple[str, ...]) -> str:
    return "\n".join([line, *(f"But: {caveat}" for caveat in caveats[:1])])


def _show_local(guarantee: LocalDP) -> Display:
    epsilon, delta = upward(guarantee.epsilon), upward(guarantee.delta)
    odds = inf if guarantee.epsilon > 700.0 else nextafter(exp(guarantee.epsilon), inf)
    factor = (("odds of any two values shift by", f"a factor of at most {upward(odds)}"),)
    return Display(
        brief=_brief(f"LocalDP: epsilon {epsilon}, delta {delta}", guarantee.caveats),
        title="What one report tells of its owner, no matter who sees it",
        facts=(
            ("epsilon", f"at most {epsilon}"),
            ("delta", f"at most {delta}"),
            *(factor if guarantee.delta == 0.0 else ()),
        ),
        notes=(guarantee.source,),
        warnings=guarantee.caveats,
    )


@displayed_by(_show_local)
@dataclass(frozen=True)
class LocalDP(Caveated):
    r"""Guarantee of one report about its owner, against everybody.

    .. math:: \Pr[R(x) \in S] \le e^{\epsilon} \Pr[R(x') \in S] + \delta \quad \text{for all } x, x', S

    Parameters
    ----------
    epsilon : float, at least 0, nats
    delta : float in [0, 1]
    source : str
        The theorem or construction behind it.
    caveats : tuple of str
        What takes the promise away, such as simulated randomness.

    Raises
    ------
    ParameterError
        For an epsilon below 0 and a delta outside [0, 1].

    Examples
    --------
    >>> once = LocalDP(0.5, source="k-ary randomized response")
    >>> once.compose(once), once.implies(LocalDP(1.0)), once.drawn_from("simulation").implies(LocalDP(1.0))
    (LocalDP: epsilon 1, delta 0, True, False)

    Source
    ------
    Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith (2011), What Can We Learn Privately?, Definition 2.2.
    """

    epsilon: float
    delta: float = 0.0
    source: str = ""
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_epsilon_delta(self.epsilon, self.delta)

    def implies(self, other: object) -> bool:
        """True if this guarantee implies `other` (local, or central by post-processing)."""
        if self.caveats or not isinstance(other, (LocalDP, CentralDP)):
            return False
        wanted = other.epsilon
        if isinstance(other, CentralDP):
            wanted = min(other.all, other.honest, other.colluding)
        return self.epsilon <= wanted and self.delta <= other.delta

    def compose(self, other: LocalDP) -> LocalDP:
        """Both reports about the same value: epsilons and deltas add (basic composition, Dwork et al. 2006)."""
        return LocalDP(
            sum_as_written([self.epsilon, other.epsilon]),
            min(1.0, sum_as_written([self.delta, other.delta])),
            source=f"basic composition of [{self.source}] and [{other.source}]",
            caveats=tuple(dict.fromkeys(self.caveats + other.caveats)),
        )


def _show_central(guarantee: CentralDP) -> Display:
    delta, everybody = upward(guarantee.delta), f"all {guarantee.n:,} people"
    some = everybody if guarantee.honest_n == guarantee.n else f"{guarantee.honest_n:,} of {guarantee.n:,} people"
    rows = (
        ("shuffler and " + everybody, upward(guarantee.all), delta),
        ("shuffler and " + some, upward(guarantee.honest), delta),
        ("nobody: the shuffler tells the order", upward(guarantee.colluding), delta),
    )
    quoted = f"epsilon {upward(guarantee.honest)} at delta {delta}"
    return Display(
        brief=_brief(
            f"CentralDP: {quoted}, shuffler and {some} honest ({guarantee.method})\n"
            f"everybody honest: {upward(guarantee.all)}; shuffler colludes: {upward(guarantee.colluding)}",
            guarantee.caveats,
        ),
        title=f"What the shuffled batch tells of one person: {quoted}",
        grid=Grid(("honest are", "epsilon, at most", "delta"), rows[some == everybody :]),
        notes=(f"Neighbours: {guarantee.neighbours}. {guarantee.method}: {guarantee.source}",),
        warnings=guarantee.caveats,
    )


@displayed_by(_show_central)
@dataclass(frozen=True)
class CentralDP(Caveated):
    r"""Guarantee of the shuffled batch about one person, in three lines.

    .. math:: \Pr[M(D) \in S] \le e^{\epsilon} \Pr[M(D') \in S] + \delta
              \quad \text{for all } D, D' \text{ that differ in one person's value}

    `all` holds with an honest shuffler and `n` honest people, `honest` with only `honest_n` of them,
    `colluding` when the shuffler shares the order with the adversary: then the local guarantee is all
    that remains. `epsilon` is the one to quote: the line for the people assumed honest.

    Parameters
    ----------
    all, honest, colluding : float, nats
        Upper bounds on epsilon at the same `delta`.
    delta : float in [0, 1]
    n, honest_n : int
        Distinct valid reports, and how many of their owners are assumed honest; 1 where others need not be.
    method : str
        Short name of the bound, such as "stronger clones".
    source : str
        The theorem.
    numeric : Bracket
        The value for this method's own dominating pair lies inside: how exact the numerics are (`honest_n`).
    attack_lower : float
        Epsilon that a real randomizer reaches at this delta (`honest_n`): no proof from the local
        epsilon alone can promise less.
    trust : "local", "shuffler" or "users"
        Who makes the noise: each person alone, a shuffler that adds dummies, or people who add them together.

    Raises
    ------
    ParameterError
        For an epsilon below 0 and a delta outside [0, 1].
    UnsupportedError
        From `compose`, for releases about different numbers of people that count on more than one of them, and for
        noise of different origin.

    Examples
    --------
    >>> CentralDP(
    ...     all=0.1, honest=0.2, colluding=1.0, delta=1e-6, n=1000, honest_n=900,
    ...     method="blanket", source="", numeric=Bracket(0.1, 0.2), attack_lower=0.0,
    ... )
    CentralDP: epsilon 0.2 at delta 10⁻⁶, shuffler and 900 of 1,000 people honest (blanket)
    everybody honest: 0.1; shuffler colludes: 1
    """

    all: float
    honest: float
    colluding: float
    delta: float
    n: int
    honest_n: int
    method: str
    source: str
    numeric: Bracket
    attack_lower: float
    caveats: tuple[str, ...] = ()
    neighbours: str = "replace one person's value"
    trust: Trust = "local"

    def __post_init__(self) -> None:
        for value in (self.all, self.honest, self.colluding):
            check_epsilon_delta(value, self.delta)

    @property
    def epsilon(self) -> float:
        """The epsilon to quote: with an honest shuffler and `honest_n` honest people."""
        return self.honest

    def implies(self, other: object) -> bool:
        """True if every line of `other`, about the same people and neighbours, follows line by line."""
        if self.caveats or not isinstance(other, CentralDP):
            return False
        same = (self.neighbours, self.n, self.trust) == (other.neighbours, other.n, other.trust)
        same = same and self.honest_n <= other.honest_n
        lines = zip((self.all, self.honest, self.colluding), (other.all, other.honest, other.colluding), strict=True)
        return same and self.delta <= other.delta and all(mine <= theirs for mine, theirs in lines)

    def compose(self, other: CentralDP) -> CentralDP:
        """Two releases about the same people: every line adds, and so do the deltas (basic composition)."""
        honest_n = max(self.honest_n, other.honest_n)  # both assumptions are needed
        if self.n != other.n and honest_n > 1:  # some promises hold with any number of participants
            raise UnsupportedError(
                f"Releases of {self.n:,} and {other.n:,} people are not about the same people; state each by itself."
            )
        if self.trust != other.trust:
            raise UnsupportedError(
                f"One release trusts {_NOISE[self.trust]} with the noise, the other {_NOISE[other.trust]}: what "
                "holds against whom differs; state each by itself."
            )
        honest = sum_as_written([self.honest, other.honest])
        return CentralDP(
            all=sum_as_written([self.all, other.all]),
            honest=honest,
            colluding=sum_as_written([self.colluding, other.colluding]),
            delta=min(1.0, sum_as_written([self.delta, other.delta])),
            n=max(self.n, other.n),
            honest_n=honest_n,
            method=f"basic composition of {self.method} and {other.method}",
            source=f"basic composition (Dwork et al. 2006) of [{self.source}] and [{other.source}]",
            numeric=Bracket(self.numeric.lower, honest),
            attack_lower=0.0,  # what attacks reach on one release says nothing at the larger delta
            caveats=tuple(dict.fromkeys(self.caveats + other.caveats)),
            trust=self.trust,
        )

    def lines(self) -> tuple[str, str, str]:
        """The three lines that every central guarantee prints."""
        delta = upward(self.delta)
        if self.trust == "shuffler":
            return self._lines_of_dummies(delta)
        if self.trust == "users":
            return self._lines_of_user_dummies(delta)
        people = f"{self.honest_n:,} of them" if self.honest_n < self.n else "all of them"
        return (
            f"honest shuffler, all {self.n:,} people honest: ({upward(self.all)}, {delta})-differential privacy",
            f"honest shuffler, {people} assumed honest: ({upward(self.honest)}, {delta})-differential privacy",
            f"shuffler colludes: the local guarantee remains, epsilon {upward(self.colluding)}",
        )

    def _lines_of_dummies(self, delta: str) -> tuple[str, str, str]:
        whom = f"if {self.honest_n:,} of {self.n:,} people are honest"
        if self.honest_n == 1:
            whom = "with any number of participants"
        left = "every answer; there is no local promise"
        if self.colluding < inf:
            left = f"what the local guarantee leaves, epsilon {upward(self.colluding)}"
        return (
            f"the shuffler adds the noise: ({upward(self.honest)}, {delta})-differential privacy against the "
            f"analyst {whom}",
            "if the shuffler adds dummies once and as specified and keeps their numbers and its randomness secret",
            f"shuffler and analyst together read {left}",
        )

    def _lines_of_user_dummies(self, delta: str) -> tuple[str, str, str]:
        return (
            f"people add the noise: ({upward(self.honest)}, {delta})-differential privacy against the analyst, if "
            f"{self.honest_n:,} of {self.n:,} people are honest and their answers and dummies arrive",
            "and if the shuffler takes at most one message of a person beside her answers, mixes them, and tells "
            "nobody whose they are",
            "shuffler and analyst together read every answer; there is no local promise",
        )

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _show_order(guarantee: OrderPrivacy) -> Display:
    alpha, inside = upward(guarantee.alpha), "everybody" if guarantee.groups is None else repr(guarantee.groups)
    known = {0.0: "the order inside a group tells nothing", inf: "nothing is promised about the order"}
    factor = "reordering inside a group shifts odds by a factor of at most "
    odds = inf if guarantee.alpha > 700.0 else nextafter(exp(guarantee.alpha), inf)
    return Display(
        brief=_brief(f"OrderPrivacy: alpha {alpha} for {inside}", guarantee.caveats),
        title="What the order of the released reports tells",
        facts=(
            ("alpha", f"at most {alpha}" if guarantee.alpha < inf else alpha),
            ("meaning", known.get(guarantee.alpha, factor + upward(odds))),
            ("groups", inside),
        ),
        notes=(guarantee.source,),
        warnings=guarantee.caveats,
    )


@displayed_by(_show_order)
@dataclass(frozen=True)
class OrderPrivacy(Caveated):
    r"""Guarantee of the order of the released reports: d_sigma-privacy.

    .. math:: \Pr[M(y) = z] \le e^{\alpha} \Pr[M(\tau(y)) = z]
              \quad \text{for all } z \text{ and every reordering } \tau \text{ inside one group}

    Parameters
    ----------
    alpha : float, at least 0, nats
        0: the order inside a group tells nothing; infinite: no promise.
    groups : Grouping or None
        The groups it holds for; None stands for one group of everybody.
    source : str

    Raises
    ------
    ParameterError
        For an alpha below 0.
    UnsupportedError
        From `compose`, for other groups.

    Examples
    --------
    >>> OrderPrivacy(2.0).compose(OrderPrivacy(1.0))
    OrderPrivacy: alpha 3 for everybody

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, Definition 4.3.
    """

    alpha: float
    groups: Grouping | None = None
    source: str = ""
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.alpha >= 0.0:
            raise ParameterError(f"`alpha` must be at least 0, got {self.alpha!r}.")

    @property
    def protects(self) -> bool:
        """True if anything is promised at all."""
        return self.alpha != float("inf") and not self.caveats

    def implies(self, other: object) -> bool:
        """Smaller alpha, and every group of `other` inside a group of this one."""
        if not isinstance(other, OrderPrivacy) or self.caveats or self.alpha > other.alpha:
            return False
        if self.groups is None or other.alpha == float("inf"):
            return True  # one group of everybody holds every group
        return other.groups is not None and self.groups.covers(other.groups)

    def compose(self, other: OrderPrivacy) -> OrderPrivacy:
        """Independent releases of the same sequence for the same groups: alphas add."""
        if self.groups is not other.groups and self.groups != other.groups:
            raise UnsupportedError(
                "Order guarantees add only for the same groups (pointwise ratios of independent releases); "
                "state both for a common grouping first."
            )
        return OrderPrivacy(
            sum_as_written([self.alpha, other.alpha]),
            self.groups,
            source=f"independent releases add: [{self.source}] and [{other.source}]",
            caveats=tuple(dict.fromkeys(self.caveats + other.caveats)),
        )
