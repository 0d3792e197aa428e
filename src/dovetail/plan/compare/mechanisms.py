"""Randomizers and shufflers of equal accuracy, listed by what each adversary learns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from math import inf, isinf
from typing import Any, Literal, get_args

from dovetail.account.clones.stronger_clones import MOST_PEOPLE
from dovetail.core.bracket import Bracket
from dovetail.core.channel import KRRChannel
from dovetail.core.checks import whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.vulnerability import vulnerability
from dovetail.plan.candidates import Candidate, candidate
from dovetail.plan.compare.adversaries import Leak, capped, linked, strong, uninformed
from dovetail.plan.families import families
from dovetail.plan.requirements import Wish

Adversary = Literal["uninformed", "strong", "colluding"]
ADVERSARIES: tuple[Adversary, ...] = get_args(Adversary)
SAME = 2e-6  # relative: epsilon0 is solved to 1e-6, so leaks this close are one rank
WHO = {"uninformed": "the uninformed adversary", "strong": "the strong one", "colluding": "a colluding shuffler"}


@dataclass(frozen=True)
class Mechanism:
    """One row: a randomizer, a shuffler, and what they leak; a string in place of a number is why there is none.

    Parameters
    ----------
    randomizer : "krr", "hadamard", "unary", "local_hashing" or "none"
    shuffler : "uniform" or "none"
    epsilon0 : float or str, nats
        Local epsilon at which the randomizer reaches the error.
    epsilon : float or str, nats
        Central epsilon of the honest people at delta; infinite without a randomizer.
    error95 : float or str
        Predicted 95 % error of one share.
    uninformed, strong, colluding : Leak or str
        To somebody who knows nothing about anybody; who knows all others, whatever is worst; who sees the order.
    """

    randomizer: str
    shuffler: str
    epsilon0: float | str
    epsilon: float | str
    error95: float | str
    uninformed: Leak | str
    strong: Leak | str
    colluding: Leak | str

    @property
    def name(self) -> str:
        """The row in words."""
        if self.randomizer == "none":
            return "shuffle only"
        return f"{self.randomizer} {'only' if self.shuffler == 'none' else 'and shuffle'}"

    def leak(self, adversary: Adversary) -> Leak | str:
        """What this adversary learns."""
        return {"uninformed": self.uninformed, "strong": self.strong, "colluding": self.colluding}[adversary]


@dataclass(frozen=True)
class Comparison:
    """Mechanisms of equal accuracy; see `compare_mechanisms`."""

    n: int
    k: int
    error: float
    delta: float
    honest: int
    mechanisms: tuple[Mechanism, ...]

    def order(self, adversary: Adversary) -> tuple[Mechanism, ...]:
        """From the smallest leakage to the largest, by what can be promised; rows without a number are left out."""
        known = [one for one in self.mechanisms if not isinstance(one.leak(adversary), str)]
        return tuple(sorted(known, key=lambda one: _promise(one, adversary)))

    def rank(self, mechanism: Mechanism, adversary: Adversary) -> int | None:
        """Place in that order, 1 for the smallest; equal leaks share it. None without a number."""
        if isinstance(mechanism.leak(adversary), str):
            return None
        own = _promise(mechanism, adversary) * (1.0 - SAME)
        return 1 + sum(_promise(one, adversary) < own for one in self.order(adversary))

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the adversaries disagree on the order, and where an order is not decided."""
        return (*_reversals(self), *_undecided(self))

    def document(self) -> dict[str, Any]:
        """The comparison as JSON-ready dictionaries; what is not known is null with its reason."""
        question = {name: getattr(self, name) for name in ("n", "k", "error", "delta", "honest")}
        rows = [self._row(one) for one in self.mechanisms]
        orders = {adversary: [one.name for one in self.order(adversary)] for adversary in ADVERSARIES}
        return {"question": question, "mechanisms": rows, "orders": orders, "notes": list(self.notes)}

    def _row(self, one: Mechanism) -> dict[str, Any]:
        numbers = {name: _number(getattr(one, name)) for name in ("epsilon0", "epsilon", "error95")}
        row = {"name": one.name, "randomizer": one.randomizer, "shuffler": one.shuffler, **numbers}
        return row | {adversary: self._leak(one, adversary) for adversary in ADVERSARIES}

    def _leak(self, one: Mechanism, adversary: Adversary) -> dict[str, Any]:
        leak = one.leak(adversary)
        if isinstance(leak, str):
            return {"value": None, "reason": leak}
        return {
            "rank": self.rank(one, adversary),
            "vulnerability": leak.vulnerability,
            "multiplicative": leak.multiplicative,
            **asdict(leak),
        }


def compare_mechanisms(
    *, n: int, k: int, error: float, delta: float | None = None, honest: int | None = None, rng: Entropy | None = None
) -> Comparison:
    r"""Which mechanism leaks least at a wanted accuracy, and to whom?

    Every kind of randomizer gets the least epsilon0 that reaches the error, once with its reports linked to their
    senders (the paper's N) and once in uniformly random order (NS); beside them the values themselves in random
    order (S), which has no error. The order can differ between adversaries: shuffling alone hides much from somebody
    who knows nobody, and nothing from somebody who knows all others.

    Parameters
    ----------
    n : int, 1 .. 1e12
        People who will answer, once each.
    k : int, 2 to 2^24
        Number of values.
    error : float, above 0, below 1
        What one share may be off with probability 95 %, whatever people hold.
    delta : float, at least 0, below 1, optional
        Of the central guarantee; default 1 / (100 n).
    honest : int, 1 .. n, optional
        People assumed to keep their reports secret: the crowd in which one hides; default all.
    rng : Entropy, optional
        Allows Monte Carlo where nothing exact is in reach.

    Notes
    -----
    Uninformed: exact for k-ary randomized response; enumerated or sampled for Hadamard response and unary encoding,
    up to 1e7 people and 64 kinds of report; not known for local hashing. Strong: the worst of all known histograms
    for k-ary randomized response while there are at most 64 of them; else a bracket whose upper end decides the
    rank: the smallest of the person's own report, the central guarantee, and a blanket bound. Seconds; n above 1e6
    with 3 to 9 values some thirty times what `vulnerability` takes.

    Examples
    --------
    >>> found = compare_mechanisms(n=1000, k=2, error=0.05)
    >>> [found.order(adversary)[0].name for adversary in ("uninformed", "colluding")]
    ['krr and shuffle', 'krr only']
    >>> shuffle_only = found.mechanisms[-1]
    >>> [found.rank(shuffle_only, adversary) for adversary in ("uninformed", "strong", "colluding")]
    [3, 5, 5]

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model Through the Lens of Quantitative
    Information Flow, CSF, section VII (the comparison at a desired utility), Propositions 15, 20, 21 and equation 10.
    """
    if rng is not None:
        rng = entropy_or_system(rng)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    wish = Wish(
        "frequency",
        n=people,
        honest=people if honest is None else honest,
        delta=0.01 / people if delta is None else delta,
        k=k,
        error=error,
    )
    rows = [row for family in families(wish) for row in _rows(family.name, candidate(family, wish), wish, rng)]
    return Comparison(wish.n, *_asked(wish), wish.delta, wish.honest, (*rows, _shuffle_only(wish)))


def _asked(wish: Wish) -> tuple[int, float]:
    assert wish.k is not None and wish.error is not None  # a frequency for an error
    return wish.k, wish.error


def _rows(name: str, found: Candidate | str, wish: Wish, rng: Entropy | None) -> Iterator[Mechanism]:
    """One kind of randomizer, its reports linked to their senders and in uniformly random order."""
    if isinstance(found, str):
        for shuffler in ("none", "uniform"):
            yield Mechanism(name, shuffler, *[found] * 6)
        return
    randomizer = found.randomizer
    assert isinstance(randomizer, FrequencyRandomizer)
    own, n = linked(randomizer), wish.honest
    yield Mechanism(name, "none", found.epsilon0, found.epsilon0, found.accuracy.error95, own, own, own)
    try:
        blind: Leak | str = uninformed(randomizer, n=n, rng=rng)
    except UnsupportedError as error:
        blind = str(error)
    lower = 0.0 if isinstance(blind, str) else blind.ends.lower
    informed = strong(randomizer, n=n, lower=lower, own=own.ends.upper)
    if not isinstance(blind, str):
        blind = capped(blind, informed.ends.upper)
    yield Mechanism(
        name, "uniform", found.epsilon0, found.central.epsilon, found.accuracy.error95, blind, informed, own
    )


def _shuffle_only(wish: Wish) -> Mechanism:
    """The values themselves in random order (Proposition 20); whoever knows all others subtracts them."""
    k, _ = _asked(wish)
    seen = vulnerability(KRRChannel(k, keep=2, lie=1), n=wish.honest)  # its shuffled part asks for k and n only
    ends = seen.shuffled_bracket
    blind = Leak(
        seen.prior,
        seen.shuffled_leakage,
        Bracket(max(0.0, ends.lower - seen.prior), max(seen.shuffled_leakage, ends.upper - seen.prior)),
        seen.method,
        "uniform prior, nobody's value is known",
    )
    everything = 1.0 - 1.0 / k
    told = Leak(1.0 / k, everything, Bracket(everything, everything), "closed form", "her value is all that is left")
    return Mechanism("none", "uniform", inf, inf, 0.0, blind, told, told)


def _promise(one: Mechanism, adversary: Adversary) -> float:
    leak = one.leak(adversary)
    return inf if isinstance(leak, str) else leak.ends.upper


def _less(one: Mechanism, other: Mechanism, adversary: Adversary) -> bool:
    """Whether the one certainly leaks less."""
    first, second = one.leak(adversary), other.leak(adversary)
    if isinstance(first, str) or isinstance(second, str):
        return False
    return first.ends.upper < second.ends.lower * (1.0 - SAME)


def _reversals(found: Comparison) -> Iterator[str]:
    for here, there in combinations(ADVERSARIES, 2):
        for one in found.mechanisms:
            others = [
                other.name for other in found.mechanisms if _less(one, other, here) and _less(other, one, there)
            ]
            if others:
                yield f"{one.name} leaks less to {WHO[here]} but more to {WHO[there]} than {', '.join(others)}"


def _undecided(found: Comparison) -> Iterator[str]:
    for adversary in ADVERSARIES:
        order = found.order(adversary)
        names = [
            one.name
            for one in order
            if any(
                other is not one
                and _rough(one, other, adversary)
                and not _less(one, other, adversary)
                and not _less(other, one, adversary)
                for other in order
            )
        ]
        if names:
            yield (
                f"to {WHO[adversary]} some of these leak an amount known only between ends that reach over another "
                f"of them, so they are ranked by what can be promised: {', '.join(names)}"
            )


def _rough(one: Mechanism, other: Mechanism, adversary: Adversary) -> bool:
    """Whether the leak of either is known only between ends."""
    leaks = (one.leak(adversary), other.leak(adversary))
    return any(not isinstance(leak, str) and leak.method in ("sampled", "bracket") for leak in leaks)


def _number(value: float | str) -> Any:
    if isinstance(value, str):
        return {"value": None, "reason": value}
    return "inf" if isinf(value) else value
