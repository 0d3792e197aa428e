"""The exact law of a sampler, from the words that lead to each output: no word is drawn, all of them are counted.

A sampler is run on a tape of chosen draws; where it asks for one more, it is known of how many equally likely values.
Values that lead to the same behaviour are counted together: all are tried where they are few, otherwise the steps
between them are found by bisection. What is left open after some draws is counted too, so a law is an interval, and a
single wrong word in 2^64 is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import blake2b
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy, Permutation
from dovetail.core.entropy import Words as WordArray
from dovetail_protocol.exact_thresholds import Words

WORD = 1 << 64
FEW = 1 << 9  # values of a draw that are all tried
FURTHER = 12  # draws after those of a tape, at most

Then = Callable[[int, int], int]  # number of the draw and how many values it has: the value
Interval = tuple[Fraction, Fraction]
Published = Mapping[Any, Fraction | Interval]


class Wanted(Exception):
    """The tape has ended, and a draw of so many values is wanted."""

    def __init__(self, size: int) -> None:
        self.size = size


@dataclass
class Tape:
    """Chosen draws, for the analyst's samplers as `rng` and for the device's as `words`."""

    draws: Sequence[int]
    then: Then | None = None
    used: int = 0

    def next(self, size: int) -> int:
        place, self.used = self.used, self.used + 1
        if place < len(self.draws):
            assert 0 <= self.draws[place] < size
            return self.draws[place]
        if self.then is None or place >= len(self.draws) + FURTHER:
            raise Wanted(size)
        return self.then(place, size)

    @property
    def rng(self) -> Entropy:
        return TapeEntropy(self)

    @property
    def words(self) -> Words:
        return TapeWords(self)


class TapeEntropy(Entropy):
    """One draw for each word; integers below a bound and permutations, which have rows of their own, are one draw."""

    provenance = "simulation"

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def words(self, count: int) -> WordArray:
        return np.array([self.tape.next(WORD) for _ in range(count)], dtype=np.uint64)

    def narrow(self, count: int, dtype: Any) -> NDArray[Any]:
        return np.array([self.tape.next(1 << 8 * np.dtype(dtype).itemsize) for _ in range(count)], dtype=dtype)

    def below(self, bound: int, count: int) -> NDArray[np.int64]:  # type: ignore[misc]
        return np.array([self.tape.next(bound) for _ in range(count)], dtype=np.int64)

    def permutation(self, n: int) -> Permutation:  # type: ignore[misc]
        return np.array(unranked(self.tape.next(factorial(n)), n), dtype=np.int64)


class TapeWords(Words):
    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def bits(self, count: int) -> int:
        return self.tape.next(1 << count)

    def below(self, bound: int) -> int:  # type: ignore[misc]
        return self.tape.next(bound)


class Planes(Words):
    """Groups of 64-bit words, each handed out one binary place of all of them after the other, from the lowest.

    A bit is 1 where a word has a 0; the first word of a group is the highest bit.
    """

    def __init__(self, *groups: Sequence[int]) -> None:
        self.planes = [
            "".join(str(1 - (word >> place & 1)) for word in group) for group in groups for place in range(64)
        ]

    def bits(self, count: int) -> int:
        plane = self.planes.pop(0)
        assert count == len(plane)
        return int(plane, 2)


def unranked(number: int, n: int) -> list[int]:
    """Permutation `number` of n!, in some order."""
    left, found = list(range(n)), []
    for size in range(n, 0, -1):
        number, place = divmod(number, size)
        found.append(left.pop(place))
    return found


@dataclass
class Law:
    """How likely each output is after so many draws, and what is open then."""

    masses: dict[Any, Fraction] = field(default_factory=dict)
    open: Fraction = Fraction(0)

    def faults(self, published: Published, *, most_open: Fraction = Fraction(0)) -> list[str]:
        """Where this contradicts a published law, whose probabilities are fractions or brackets of them."""
        found = [f"{float(self.open):.3g} is open"] if self.open > most_open else []
        for output in {*self.masses, *published}:
            seen, claim = self.masses.get(output, Fraction(0)), published.get(output, Fraction(0))
            low, high = claim if isinstance(claim, tuple) else (claim, claim)
            if seen > high or seen + self.open < low:
                words = float((seen - low) * WORD), float((seen + self.open - high) * WORD)
                found.append(f"{output}: from {words[0]:.3g} to {words[1]:.3g} words more than published")
        return found

    def given(self, *, again: Hashable) -> Law:
        """The law of a sampler that starts anew whenever this one's output is `again`."""
        done = 1 - self.masses.get(again, Fraction(0))
        once = {output: mass / done for output, mass in self.masses.items() if output != again}
        return Law(once, 2 * self.open / (done - self.open))  # above m / done by at most this, if m is at most done


Sample = Callable[[Tape], Hashable]
Period = Callable[[int, int], int]  # number of the draw and its size: how many residues of it matter, 0 for all


@dataclass(frozen=True)
class Followed:
    """A sampler after some draws, which values of the next one may lead on alike."""

    sample: Sample
    taken: tuple[int, ...]
    thens: Sequence[Then]

    def behaviour(self, value: int) -> list[Hashable]:
        return [self._after(value, then) for then in self.thens]

    def shows(self, value: int, behaviour: list[Hashable]) -> bool:
        return all(self._after(value, then) == seen for then, seen in zip(self.thens, behaviour, strict=True))

    def _after(self, value: int, then: Then) -> Hashable:
        """What is put out, and after how many draws, if the tape goes on like this."""
        tape = Tape((*self.taken, value), then)
        try:
            return self.sample(tape), tape.used
        except Wanted:
            return "open"

    def by_residue(self, size: int, residues: int) -> Iterator[tuple[int, int]]:
        """First values and how many behave like them, where only the residue counts: seen at three values of each."""
        assert size % residues == 0 and residues <= FEW
        for residue in range(residues):
            behaviour = self.behaviour(residue)
            for turn in (size // residues // 3, size // residues - 1):
                assert self.shows(residue + residues * turn, behaviour), "more than the residue counts"
            yield residue, size // residues

    def by_steps(self, size: int) -> Iterator[tuple[int, int]]:
        """First values of runs that behave alike, and their lengths.

        Between two neighbouring probes a behaviour that has ended does not come back: true of all thresholds.
        """
        start = low = 0
        behaviour = self.behaviour(0)
        for probe in range(size) if size <= FEW else probes(size):
            while not self.shows(probe, behaviour):
                high = probe
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if self.shows(middle, behaviour) else (low, middle)
                yield start, high - start
                start = low = high
                behaviour = self.behaviour(high)
            low = probe
        yield start, size - start


def probes(size: int) -> list[int]:
    """Values between which steps are looked for: denser towards both ends, where tails are."""
    ends = {size >> halvings for halvings in range(1, size.bit_length(), 4)}
    return sorted({size * i // 8 for i in range(8)} | ends | {size - 1 - end for end in ends} | {size - 1})


def exact_law(
    sample: Sample, *, draws: int, given: Sequence[int] = (), period: Period = lambda *_: 0, far: int = 0
) -> Law:
    """The law of `sample` on tapes that start with `given`, after at most `draws` more draws.

    Parameters
    ----------
    sample : function of a tape
        Returns what can be compared and hashed.
    period : function
        Where a draw counts by its residue only: of which number.
    far : int, optional
        Behaviour is also compared where draws lie 2^-far below their end, if only rare draws tell values apart.
    """
    law = Law()
    thens = (*_THEN, lambda _, size: size - 1 - (size >> far)) if far else _THEN

    def explore(taken: tuple[int, ...], mass: Fraction, left: int) -> None:
        try:
            output = sample(Tape(taken))
        except Wanted as wanted:
            size = wanted.size
        else:
            law.masses[output] = law.masses.get(output, Fraction(0)) + mass
            return
        if left == 0:
            law.open += mass
            return
        after, residues = Followed(sample, taken, thens), period(len(taken), size)
        for first, count in after.by_residue(size, residues) if residues else after.by_steps(size):
            explore((*taken, first), mass * Fraction(count, size), left - 1)

    explore(tuple(given), Fraction(1), draws)
    assert sum(law.masses.values()) + law.open == 1
    return law


def _hashed(seed: int) -> Then:
    def then(place: int, size: int) -> int:
        return int.from_bytes(blake2b(f"{seed} {place}".encode(), digest_size=32).digest()) * size >> 256

    return then


_THEN: tuple[Then, ...] = (lambda _, size: 0, lambda _, size: size - 1, _hashed(1), _hashed(2))
