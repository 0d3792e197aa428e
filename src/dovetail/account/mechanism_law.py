"""Which law belongs to which mechanism."""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module

import numpy as np

from dovetail.account.binary import FAR, BinaryExact, binary_reached, most_exact
from dovetail.account.bound import Bound, DominatingPair
from dovetail.account.expected_positive_part import POINTS
from dovetail.account.finite_channel import FiniteChannelLaw, channel_exposures, worst_dataset
from dovetail.account.hidden_among_everybody import NAME as EVERYBODY
from dovetail.account.hidden_among_everybody import SOURCE as EVERYBODY_SOURCE
from dovetail.account.hidden_among_everybody import EverybodyLaw
from dovetail.account.privacy_blanket import CLOSE, SEARCH, BlanketLaw, DeclaredLaw, Exposure, ShuffledLaw
from dovetail.account.questions import SeveralQuestions
from dovetail.core.channel import Channel, KRRChannel
from dovetail.core.checks import share
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import Randomizer

SOURCE = "Privacy blanket of this mechanism (docs/theory/mechanism-laws.md), after Balle, Bell, Gascon, Nissim (2019)"
BINARY_SOURCE = "Binary randomized response, maximum over all values of the others (docs/theory/mechanism-laws.md)"
ANY_SOURCE = "Hidden among everybody: Theorem C of docs/theory/hidden-among-everybody.md"
FEWER = "more people never expose one of them more"

Mechanism = Randomizer | Channel | SeveralQuestions
Subject = Mechanism | float  # a float stands for any randomizer with that promise
FEW_DRAWS = 300.0  # draws of mu among everybody below which all pairs are compared: fewer may not stand for all there
MOST_ROWS = 200  # symbols among which an attack on a channel without structure is sought


@cache
def declared_laws() -> dict[type, DeclaredLaw]:
    """The laws that the files of `account/mechanisms` declare, by the type of their subject."""
    home = "dovetail.account.mechanisms"
    found = (import_module(f"{home}.{file.name}") for file in pkgutil.iter_modules(import_module(home).__path__))
    laws = [law for module in found for law in vars(module).values() if isinstance(law, DeclaredLaw)]
    return {law.subject: law for law in laws}


def mechanism_law(mechanism: Subject, *, n: int) -> tuple[str, DominatingPair]:
    """The name of the mechanism and what dominates n shuffled reports of it.

    Raises
    ------
    UnsupportedError
        When no law is known, or evaluating it would be too much work; the bound for every randomizer then remains.
    DataError
        When a channel is not locally private: the message names row and column.

    Examples
    --------
    >>> name, law = mechanism_law(KRRChannel(10, 3, 1), n=1000)
    >>> name, round(law.epsilon(1e-6).upper, 3)
    ('k-ary randomized response', 0.093)
    """
    subject = _subject(mechanism)
    if isinstance(subject, KRRChannel) and subject.k == 2:
        most = most_exact(subject.epsilon)
        if n > FAR * most:
            raise UnsupportedError(
                f"Binary randomized response is maximised over the others' values only up to n = {most:,} here; that "
                f"maximum serves up to n = {FAR * most:,}, above what hides among everybody is smaller."
            )
        return "binary randomized response", BinaryExact(subject.epsilon, min(n, most))
    declared = declared_laws().get(type(subject))
    if declared is not None:
        if declared.pair is not None:
            return declared.name, declared.pair(subject, n)
        if declared.upper is not None:
            return declared.name, ShuffledLaw(declared.upper(subject), n)
        return declared.name, FiniteChannelLaw.among(pair_laws(subject), n=n)
    return "privacy blanket of the channel", FiniteChannelLaw.of(_channel(subject).matrix(), n=n)


def blanket_law(mechanism: Mechanism) -> BlanketLaw | None:
    """The upper law of a mechanism that has one of its own; None for others.

    Examples
    --------
    >>> blanket_law(KRRChannel(10, 3, 1)).mass.round(3).tolist()
    [0.083, 0.083, 0.667]
    """
    subject = _subject(mechanism)
    declared = declared_laws().get(type(subject))
    return None if declared is None or declared.upper is None else declared.upper(subject)


def pair_laws(mechanism: Subject) -> Sequence[BlanketLaw]:
    """Laws of which, for every pair of values, one is at least as large.

    Raises
    ------
    UnsupportedError
        Where there are too many.
    """
    subject = _subject(mechanism)
    declared = declared_laws().get(type(subject))
    if declared is not None and declared.upper is not None:
        return [declared.upper(subject)]
    if declared is not None and declared.uppers is not None:
        return declared.uppers(subject)
    return [pair.law for pair in FiniteChannelLaw.of(_channel(subject).matrix(), n=1).pairs]


def law_bounds(mechanism: Mechanism, *, n: int, delta: float) -> list[Bound]:
    """Bounds on the central epsilon that hold for this mechanism only; one, which may say nothing.

    Parameters
    ----------
    mechanism : Randomizer or Channel
    n : int, 1 .. 1e12
        Honest reports in the batch.
    delta : float, at least 0, below 1

    Examples
    --------
    >>> [bound] = law_bounds(KRRChannel(10, 3, 1), n=1000, delta=1e-6)
    >>> bound.name, round(bound.epsilon, 3)
    ('k-ary randomized response', 0.093)
    """
    share("delta", delta)
    try:
        name, law = mechanism_law(mechanism, n=n)
    except UnsupportedError as error:
        return [Bound.inapplicable("mechanism law", str(error), source=SOURCE)]
    ends = law.epsilon(delta)
    source = SOURCE
    if isinstance(law, BinaryExact):
        source = BINARY_SOURCE + (f", of {law.n:,} people: {FEWER}" if law.n < n else "")
    most = local_epsilon(mechanism)  # rounding could put the law a hair above it
    return [Bound(name, min(ends.upper, most), source, lower=min(ends.lower, most))]


def everybody_law(mechanism: Subject, *, n: int, delta: float) -> EverybodyLaw:
    """The law that hides a victim among everybody's reports of this mechanism, asked about `delta`.

    Where a mechanism has too many pairs of values to compare, it is what any randomizer with its promise has.

    Raises
    ------
    UnsupportedError
        For too few people.

    Examples
    --------
    >>> law = everybody_law(KRRChannel(2, 3, 1), n=10_000, delta=1e-6)
    >>> round(law.epsilon_upper(1e-6), 4)
    0.0399
    """
    return everybody_laws(mechanism, n=n, delta=delta)[-1]


def everybody_laws(mechanism: Subject, *, n: int, delta: float) -> list[EverybodyLaw]:
    """`everybody_law`, last; before it one of fewer pairs of values, as good where it says anything."""
    try:
        asked = [worst_exposures(mechanism)]
        if asked[0][0].g * n < FEW_DRAWS and math.isfinite(asked[0][0].most_lost):
            with suppress(UnsupportedError):
                if (every := exposures_of(mechanism)) is not asked[0]:
                    asked.append(every)
    except UnsupportedError:
        asked = [worst_exposures(local_epsilon(mechanism))]
    return [EverybodyLaw(exposures, n, local_epsilon(mechanism), delta) for exposures in asked]


def everybody_bound(mechanism: Subject, *, n: int, delta: float) -> Bound:
    """The bound that hides a victim among everybody, or why it says nothing; an attack is all that is below it.

    Examples
    --------
    >>> bound = everybody_bound(KRRChannel(2, 3, 1), n=10_000, delta=1e-6)
    >>> bound.name, round(bound.epsilon, 4)
    ('hidden among everybody', 0.0399)
    """
    source = EVERYBODY_SOURCE if has_exposures(mechanism) else ANY_SOURCE
    if share("delta", delta) == 0.0:
        return Bound.inapplicable(EVERYBODY, "needs delta above 0", source=source)
    most = local_epsilon(mechanism)
    try:
        found = min(everybody_law(mechanism, n=n, delta=delta).epsilon_upper(delta), most)
    except UnsupportedError as error:
        return Bound.inapplicable(EVERYBODY, str(error), source=source)
    if found >= most:
        return Bound.inapplicable(EVERYBODY, "says nothing for so few people", source=source)
    return Bound(EVERYBODY, found, source)


def has_exposures(mechanism: Subject) -> bool:
    """True if how a person is exposed among everybody is known of the mechanism itself, and not of its promise."""
    if not isinstance(mechanism, float):
        with suppress(UnsupportedError):
            worst_exposures(mechanism)
            return True
    return False


def has_law(mechanism: Mechanism) -> bool:
    """True if more is known of the mechanism than its promise."""
    with suppress(UnsupportedError):
        if blanket_law(mechanism) is not None:
            return True
    return has_exposures(mechanism)


def competing_bounds(mechanism: Mechanism, *, n: int, delta: float) -> list[Bound]:
    """Of `law_bounds` and `everybody_bound` those that may be the smallest: the likely one, and the other one where a
    single evaluation does not show that it is larger.
    """
    if _own_is_exact(mechanism, n=n):
        return law_bounds(mechanism, n=n, delta=delta)
    if delta > 0.0 and _own_is_likely(mechanism):
        [own] = law_bounds(mechanism, n=n, delta=delta)
        if own.epsilon is not None and not everybody_reaches(mechanism, own.epsilon, n=n, delta=delta):
            return [own]
        return [own, everybody_bound(mechanism, n=n, delta=delta)]
    everybody = everybody_bound(mechanism, n=n, delta=delta)
    law = _own_law(mechanism, n=n, points=POINTS)
    if everybody.epsilon is None or (law is not None and _upper(law, everybody.epsilon, delta) <= delta):
        return [*law_bounds(mechanism, n=n, delta=delta), everybody]
    return [everybody]


def _own_is_exact(mechanism: Subject, *, n: int) -> bool:
    """True if the mechanism's own law is the maximum over all values of the others, so that none can be smaller."""
    subject = _subject(mechanism)
    return isinstance(subject, KRRChannel) and subject.k == 2 and n <= most_exact(subject.epsilon)


def _own_is_likely(mechanism: Mechanism) -> bool:
    """True if for large n the blanket exposes the victim no more than everybody's reports do."""
    try:
        law = blanket_law(mechanism)
        most = max(float(one.spreads.max()) for one in worst_exposures(mechanism))
        return law is not None and law.spread <= (1.0 + 1e-9) * most  # often equal
    except UnsupportedError:
        return True


def everybody_reaches(mechanism: Subject, epsilon: float, *, n: int, delta: float) -> bool:
    """True if what hides a victim among everybody keeps `delta` at this epsilon."""
    try:
        return everybody_law(mechanism, n=n, delta=delta).reaches(epsilon, delta)
    except UnsupportedError:
        return False


def law_delta(mechanism: Subject, epsilon: float, *, n: int, delta: float, points: int = POINTS) -> float:
    """Bound delta at this epsilon by the law of `law_epsilon`, for searches: is it at most `delta`?

    The mechanism's own law is asked only where what hides among everybody does not keep `delta`.
    """
    found = 1.0
    if not _own_is_exact(mechanism, n=n):
        with suppress(UnsupportedError):
            found = everybody_law(mechanism, n=n, delta=delta).upper(epsilon, enough=0.5 * delta)
    law = None if found <= delta else _own_law(mechanism, n=n, points=points)
    return found if law is None else min(found, _upper(law, epsilon, delta))


def _upper(law: DominatingPair, epsilon: float, delta: float) -> float:
    """delta(epsilon) from above; where that is far from `delta`, no sharper than it takes to see this."""
    if isinstance(law, BinaryExact) and delta > 0.0:
        return law.delta_near(epsilon, delta).upper
    return law.delta(epsilon).upper


def _own_law(mechanism: Subject, *, n: int, points: int) -> DominatingPair | None:
    """The mechanism's own law on a grid of so many points; None where there is none."""
    try:
        _, law = mechanism_law(mechanism, n=n)
    except UnsupportedError:
        return None
    if isinstance(law, ShuffledLaw) and points != law.points:
        return replace(law, points=points)
    return law


def law_epsilon(mechanism: Subject, *, n: int, delta: float, points: int = POINTS, known: float = math.inf) -> float:
    """The smallest epsilon of `law_bounds`, `everybody_bound` and what is `known` to hold, for searches.

    With fewer `points` of the grid it comes sooner, and is larger by 1e-4 at most.
    """
    quick = points != POINTS and delta > 0.0
    own, found = _own_law(mechanism, n=n, points=points if quick else POINTS), known
    if quick and isinstance(own, ShuffledLaw):  # sooner evaluated than what follows
        found = own.epsilon_below(delta, known)
    if delta > 0.0 and not _own_is_exact(mechanism, n=n):
        with suppress(UnsupportedError):
            law = everybody_law(mechanism, n=n, delta=delta)
            most, tolerance = (found, CLOSE) if quick else (math.inf, SEARCH)
            found = min(found, law.epsilon_upper(delta, most=most, tolerance=tolerance))
    if own is None or (quick and isinstance(own, ShuffledLaw)):
        return found
    if math.isfinite(found) and _upper(own, found, delta) > delta:
        return found
    return min(found, own.epsilon_upper(delta) if isinstance(own, ShuffledLaw) else own.epsilon(delta).upper)


def mechanism_attack(mechanism: Mechanism, *, n: int, delta: float, guess: float | None = None) -> float:
    """An epsilon that one collection of this mechanism provably reaches; 0 where none is known.

    `guess`, such as the promise that is to be judged, only saves time.

    The victim holds one of the two worst values and everybody else one common value, or any mixture for binary
    randomized response where few lie. No bound for this mechanism can be below it.

    Examples
    --------
    >>> round(mechanism_attack(KRRChannel(10, 3, 1), n=1000, delta=1e-6), 3)
    0.093
    """
    share("delta", delta)
    try:
        subject = _subject(mechanism)
        if isinstance(subject, KRRChannel) and subject.k == 2:
            return binary_reached(subject.epsilon, n, delta, guess=guess)
        reached = ShuffledLaw(attack_dataset(mechanism), n).epsilon_lower(delta, guess=guess)
        return min(reached, local_epsilon(mechanism))
    except UnsupportedError:
        return 0.0


def attack_dataset(mechanism: Subject) -> BlanketLaw:
    """The exact law of one bad collection, everybody else on a common value; or one below it.

    Raises
    ------
    UnsupportedError
        Where no collection is known.
    """
    subject = _subject(mechanism)
    declared = declared_laws().get(type(subject))
    if declared is None or (isinstance(subject, KRRChannel) and subject.k == 2):
        return worst_dataset(_channel(subject).matrix()[:MOST_ROWS])
    return declared.dataset(subject)


def second_datasets(mechanism: Mechanism) -> Iterator[BlanketLaw]:
    """Exact laws where everybody else holds the second of two values, the most exposed pairs first."""
    declared = declared_laws().get(type(_subject(mechanism)))
    if declared is not None and declared.second is not None:
        yield declared.second(_subject(mechanism))
        return
    with suppress(UnsupportedError):
        for exposure in sorted(worst_exposures(mechanism), key=lambda one: -float(one.spreads.max())):
            rows = [
                row for row in range(len(exposure.own)) if np.array_equal(exposure.own[row], exposure.second[row])
            ]
            yield from (exposure.dataset(row) for row in rows)


def exposures_of(mechanism: Subject) -> Sequence[Exposure]:
    """List the exposures of every kind of ordered pair of values, on which hiding among everybody depends."""
    return _once(_exposures, _subject(mechanism))


def worst_exposures(mechanism: Subject) -> Sequence[Exposure]:
    """Of these as many as cover all, where a report is of this mechanism alone."""
    return _once(_worst, _subject(mechanism))


def _once(found: Callable[[Subject], Sequence[Exposure]], subject: Subject) -> Sequence[Exposure]:
    try:
        hash(subject)
    except TypeError:  # a plugin's randomizer may hold arrays
        return found(subject)
    return _kept(found, subject)


@lru_cache(maxsize=64)
def _kept(found: Callable[[Subject], Sequence[Exposure]], subject: Subject) -> Sequence[Exposure]:
    return found(subject)


def _worst(subject: Subject) -> Sequence[Exposure]:
    declared = declared_laws().get(type(subject))
    return exposures_of(subject) if declared is None or declared.worst is None else declared.worst(subject)


def _exposures(subject: Subject) -> Sequence[Exposure]:
    declared = declared_laws().get(type(subject))
    if declared is not None and declared.exposures is not None:
        return declared.exposures(subject)
    return channel_exposures(_channel(subject).matrix())


def local_epsilon(mechanism: Subject) -> float:
    """The epsilon of one report."""
    if isinstance(mechanism, float):
        return mechanism
    return mechanism.guarantee.epsilon if isinstance(mechanism, Randomizer) else mechanism.epsilon


def _subject(mechanism: Subject) -> Subject:
    """The mechanism itself, its noise or its channel: that which has its law."""
    return mechanism.accounted if isinstance(mechanism, Randomizer) else mechanism


def _channel(subject: Subject) -> Channel:
    if not isinstance(subject, Channel):
        named = "any randomizer" if isinstance(subject, float) else type(subject).__name__
        raise UnsupportedError(f"No law is known for {named}; stronger clones hold.")
    return subject
