"""Laws of reports about several questions, from those of the answers.

The victim's two values may differ in every question or only in some. Where they agree, both ratios are alike; which
pattern of differences is worst is not assumed, so all are compared.

A law of a mechanism says that a Z_0 - b Z_1 is largest in convex order for all a, b >= 0, and that each Z_x is below
Z_0 or Z_1. For several questions a and b are what the other answers say, so the laws may be combined.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations_with_replacement, islice, product
from typing import TypeVar

import numpy as np

from dovetail.account.bound import DominatingPair, bracket_root, log_ratio
from dovetail.account.finite_channel import MOST_LAWS, MOST_WORK, law_key
from dovetail.account.mechanism_law import Mechanism, attack_dataset, exposures_of, pair_laws, second_datasets
from dovetail.account.mechanisms.krr import krr_exposures, krr_law
from dovetail.account.privacy_blanket import BlanketLaw, DeclaredLaw, Exposure, ShuffledLaw
from dovetail.account.questions import JointReport, OneQuestion, SampledBlock, SeveralQuestions
from dovetail.core.certified import Bracket
from dovetail.core.channel import KRRChannel
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals

MOST_ATOMS, MOST_REPORTS = 1 << 13, 1 << 12  # of a law and of an attack: beyond, they are moved onto a grid
FINER, FINEST = 0.7, 1e-9  # by which steps of that grid shrink while its places are few enough, and where they end
MOST_COMBINED = 1 << 20  # collections among which the worst is sought
MOST_KINDS = 2000  # of another person, in questions alike
SNAP = 2.0**-50  # a few roundings of a double
DEAR = 16  # weight of the atoms of drawn questions among the work that is affordable
CANDIDATES = 3  # collections of each question from which the worst of all questions is combined

LawOfAll = Callable[[Sequence[BlanketLaw]], BlanketLaw]
AlikeExposures = Callable[[Exposure, int], Exposure]
ExposureOfAll = Callable[[Sequence[Exposure], Sequence[float]], Exposure]
Way = tuple[bool, Exposure]  # whether the victim's two values differ in a question, and what all others may say
Option = TypeVar("Option")


def combined_laws(subject: SeveralQuestions, combine: LawOfAll, *, weights: Sequence[float] = ()) -> list[BlanketLaw]:
    """Laws of which, for every pattern of questions in which the two values differ, one is at least as large.

    Questions with the same laws, and the same of the `weights`, may be exchanged: how many of them have which counts.

    Raises
    ------
    UnsupportedError
        For more patterns than are summed.
    """
    options = [_ways(part) for part in subject.parts]
    keys = [(weight, frozenset(ways)) for ways, weight in zip(options, weights or (1.0,) * len(options), strict=True)]
    _check_laws([math.comb(len(ways) + count - 1, count) for (_, ways), count in Counter(keys).items()])
    found: dict[bytes, BlanketLaw] = {}
    for chosen in _choices([list(ways.items()) for ways in options], keys):
        if not any(differs for (differs, _), _ in chosen):
            continue
        law = _merged(combine([law for _, law in chosen]))
        found.setdefault(min(law_key(law), law_key(law.mirrored)), law)
    return list(found.values())


def combined_exposures(
    subject: SeveralQuestions,
    alike: AlikeExposures,
    combine: ExposureOfAll,
    atoms: Callable[[Iterable[int]], int],
    *,
    ways: Callable[[Mechanism], list[Way]],
    weights: Sequence[float] = (),
) -> list[Exposure]:
    """Every pattern of differences with every kind of other person: she may be of any kind in each question.

    Equal questions with equal `weights` may be exchanged, and so may the kinds of those that have one exposure:
    `alike` makes one of so many of them, `atoms` says how many atoms some numbers of them are together.
    """
    known = [id(exposures_of(part)) for part in subject.parts]  # one list for equal questions
    keys = list(zip(known, weights or (1.0,) * len(known), strict=True))
    asked = dict(zip(keys, subject.parts, strict=True))
    options = {key: ways(part) for key, part in asked.items()}
    patterns = math.prod(math.comb(len(options[key]) + count - 1, count) for key, count in Counter(keys).items())
    _check_work(patterns * max(min(one.mu.size for _, one in each) for each in options.values()))
    made: dict[tuple[int, int], Exposure] = {}
    found, work, alone = [], 0, len({*keys}) == len(keys)
    for chosen in _choices([options[key] for key in keys], keys):
        if not any(differs for differs, _ in chosen):
            continue
        held = {id(one): one for _, one in chosen}
        counts = Counter((id(one), weight) for (_, one), (_, weight) in zip(chosen, keys, strict=True))
        for (name, _), count in counts.items():
            if (name, count) not in made:
                _check_work(MOST_WORK // MOST_KINDS * math.comb(len(held[name].mu) + count - 1, count) * (count > 1))
                made[name, count] = alike(held[name], count) if count > 1 else held[name]
        parts = [made[name, count] for (name, _), count in counts.items()]
        types, held_atoms = zip(*(part.mu.shape for part in parts), strict=True)
        work += (size := math.prod(types) * atoms(held_atoms))
        _check_work(patterns * size if alone else work)  # of many patterns each is weighed by itself: minutes
        found.append(combine(parts, [weight * count for (_, weight), count in counts.items()]))
    return found


def _check_work(work: int) -> None:
    if work > MOST_WORK:
        raise UnsupportedError(
            "These questions have too many pairs of values and values of the others to hide among everybody; the "
            "bounds by the blanket hold."
        )


def _choices(options: Sequence[Iterable[Option]], keys: Sequence[Hashable]) -> Iterator[list[Option]]:
    """One option for each question; where questions with equal keys exchange theirs, one order of them."""
    alike: dict[Hashable, list[int]] = {}
    for q, key in enumerate(keys):
        alike.setdefault(key, []).append(q)
    order = np.argsort([q for group in alike.values() for q in group])
    for some in product(*(combinations_with_replacement(options[group[0]], len(group)) for group in alike.values())):
        listed = [option for each in some for option in each]
        yield [listed[place] for place in order]


def worst_combined(
    subject: SeveralQuestions, combine: LawOfAll, fold: np.ufunc, *, weights: Sequence[float] = ()
) -> BlanketLaw:
    """The most exposed of some collections in which everybody else has common values.

    The victim's values may agree in a question in which everybody else's differs: that tells how many are like her.
    The means of Z_0^2, Z_1^2 and Z_0 Z_1 are those of the questions, times `weights`, by `fold`.
    """
    known = [_collections(part) for part in subject.parts]
    for few in (CANDIDATES + 1, 2, 1):  # of each question as many as can be combined
        options = [[*laws[:few], *(BlanketLaw(law.z0, law.z0, law.mass) for law in laws[:few])] for laws in known]
        if math.prod(len(laws) for laws in options) <= MOST_COMBINED:
            break
    moments = [
        weight
        * np.array([[law.mass @ law.z0**2, law.mass @ law.z1**2, law.mass @ (law.z0 * law.z1)] for law in laws])
        for laws, weight in zip(options, weights or (1.0,) * len(options), strict=True)
    ]
    first, second, both = (reduce(fold.outer, [table[:, i] for table in moments]) for i in range(3))
    spread = first + second - 2.0 * both
    chosen = np.unravel_index(int(spread.argmax()), spread.shape)
    return _merged(combine([laws[int(way)] for laws, way in zip(options, chosen, strict=True)]))


def _ways(part: Mechanism) -> dict[tuple[bool, bytes], BlanketLaw]:
    """Laws of pairs of different values, in both orders, and of one value twice where no pair is known to be larger.

    If Z_0 and Z_1 have one law, a Z_0 - b Z_1 is at least (a - b) Z_0 in convex order for all a, b >= 0: that is the
    least of all sums with these two parts, as they are opposite there.
    """
    found: dict[tuple[bool, bytes], BlanketLaw] = {}
    for law in pair_laws(part):
        same = [_merged(BlanketLaw(z, z, law.mass)) for z in (law.z0, law.z1)]
        for one in (_merged(law), _merged(law.mirrored)):
            found.setdefault((True, law_key(one)), one)
        if law_key(same[0]) != law_key(same[1]):
            for one in same:
                found.setdefault((False, law_key(one)), one)
    return found


def _check_laws(options: Sequence[int]) -> None:
    laws = math.prod(options)
    if laws > 2 * MOST_LAWS:
        raise UnsupportedError(
            f"These questions have {laws:,} laws to compare, more than {2 * MOST_LAWS}; use the bound for every "
            "randomizer, stronger clones."
        )


def every_way(part: Mechanism) -> list[Way]:
    """All pairs of different values, and each value twice."""
    return [*((True, one) for one in exposures_of(part)), *((False, one) for one in _agreeing(part))]


def differing_ways(part: Mechanism, *, same: bool) -> list[Way]:
    r"""Pairs of different values alone, where one value twice is below them whatever the other answers say.

    .. math:: (Z_x, Z_x, Z_t) \le (Z_a, Z_c, Z_{t'}) \quad \text{if, given } Z_{t'}, \;
              Z_a, Z_c \text{ have the law of } Z_x \text{ given } Z_t

    Kinds of other people for which no t' is known stand beside those of the first pair, as does (Z_x, Z_x, Z_x) where
    it is the `same`: without, (Z_a, Z_c, Z_a) has to be above it (docs/theory/several-questions.md).
    """
    known = exposures_of(part)
    laws = (_rounded_law(kind[0], z) for one in known for kind in _types(one) for z in kind[1:3])
    least = next(laws)
    if not all(_is_one_law(law, least) for law in laws):
        return every_way(part)
    kinds = [[_distinct_atoms(kind) for kind in _types(one)] for one in known]
    agreeing = [_distinct_atoms(kind) for one in _agreeing(part) for kind in _types(one)]
    kinds[0] += [kind for kind in agreeing if not _is_covered(kind, kinds[0], same=same)]
    return [(True, Exposure.of_ratios([list(kind) for kind in every])) for every in kinds]


def _is_covered(kind: Reals, above: Sequence[Reals], *, same: bool) -> bool:
    """True if one value twice, beside this other person, is below one of the kinds `above`."""
    mu, z, _, own = kind
    if np.array_equal(z, own):
        return not same and any(np.array_equal(first, other) for _, first, _, other in above)
    law = _rounded_law(mu, z, own)
    return any(
        _is_one_law(_rounded_law(mass, first, other), law) and _is_one_law(_rounded_law(mass, second, other), law)
        for mass, first, second, other in above
    )


def _rounded_law(mass: Reals, *ratios: Reals) -> Reals:
    """Ratios and their masses, equal ones together."""
    places, atom = np.unique(np.round(np.log(ratios), 12), axis=1, return_inverse=True)
    return np.vstack([places, np.bincount(atom.ravel(), mass)])


def _is_one_law(one: Reals, other: Reals) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-12, atol=2e-12))


def _agreeing(part: Mechanism) -> list[Exposure]:
    """One value twice, and each kind of other person once."""
    found: dict[bytes, Exposure] = {}
    for one in exposures_of(part):
        for value in (one.first, one.second):
            alike = _distinct_types(Exposure(one.mu, value, value, one.own))
            found.setdefault(b"".join(sorted(_type_keys(alike))), alike)
    return list(found.values())


def _distinct_types(exposure: Exposure) -> Exposure:
    keys = _type_keys(exposure)
    rows = [keys.index(key) for key in dict.fromkeys(keys)]
    return Exposure(exposure.mu[rows], exposure.first[rows], exposure.second[rows], exposure.own[rows])


def _type_keys(exposure: Exposure) -> list[bytes]:
    """Equal for types whose atoms are equal in every bit, in any order."""
    fields = np.stack([exposure.mu, exposure.first, exposure.second, exposure.own], axis=1)
    return [atoms[:, np.lexsort(atoms)].tobytes() for atoms in fields]


def _collections(part: Mechanism) -> list[BlanketLaw]:
    """The worst collection that is known, and some in which everybody else holds the second value."""
    return [attack_dataset(part), *islice(second_datasets(part), CANDIDATES)]


def _merged(law: BlanketLaw) -> BlanketLaw:
    """Atoms that are equal in every bit as one."""
    order = np.lexsort((law.mass, law.z1, law.z0))
    places, atom = np.unique((law.z0 + 1j * law.z1)[order], return_inverse=True)
    return BlanketLaw(places.real, places.imag, np.bincount(atom, law.mass[order]))


# Answers to several questions in one report: ratios multiply.


ToGrid = Callable[[BlanketLaw, float], BlanketLaw]


def product_law(laws: Sequence[BlanketLaw], to_grid: ToGrid, most: int) -> BlanketLaw:
    r"""The law of independent answers; beyond `most` atoms one on a grid, question by question.

    .. math:: Z_b = \prod_q Z_b^q, \qquad \mu = \bigotimes_q \mu^q
    """

    def both(one: BlanketLaw, other: BlanketLaw) -> BlanketLaw:
        fields = (_outer(getattr(one, field), getattr(other, field)) for field in ("z0", "z1", "mass"))
        return _few_atoms(_merged(BlanketLaw(*fields)), to_grid, most)

    return reduce(both, laws)


def split_atoms(law: BlanketLaw, step: float) -> BlanketLaw:
    """Each atom on the corners of its cell, with both means kept: so every a Z_0 - b Z_1 grows in convex order."""
    shares, corners = [], []
    for z in (law.z0, law.z1):
        cell = np.floor(np.log(z) / step)
        low, high = np.exp(step * cell), np.exp(step * (cell + 1.0))
        right = np.clip((z - low) / (high - low), 0.0, 1.0)
        shares.append((1.0 - right, right))
        corners.append((cell, cell + 1.0))
    cells = np.concatenate([corners[0][i] + 1j * corners[1][j] for i in (0, 1) for j in (0, 1)])
    mass = np.concatenate([law.mass * shares[0][i] * shares[1][j] for i in (0, 1) for j in (0, 1)])
    places, atom = np.unique(cells, return_inverse=True)
    return BlanketLaw(np.exp(step * places.real), np.exp(step * places.imag), np.bincount(atom, mass))


def gather_atoms(law: BlanketLaw, step: float) -> BlanketLaw:
    """Reports in one cell as one, for the law of a collection: data processing."""
    cells = np.rint(np.log(law.z0) / step) + 1j * np.rint(np.log(law.z1) / step)
    atom = np.unique(cells, return_inverse=True)[1]
    mass, first, second = (np.bincount(atom, law.mass * z) for z in (1.0, law.z0, law.z1))
    return BlanketLaw(first / mass, second / mass, mass)


def _few_atoms(law: BlanketLaw, to_grid: ToGrid, most: int) -> BlanketLaw:
    """On the finest grid with at most `most` places, about."""
    if law.mass.size <= most:
        return law
    step = float(np.ptp(np.log([law.z0, law.z1]), axis=1).max()) / (math.sqrt(most) - 1.0)
    kept = to_grid(law, step)
    while step > FINEST and (finer := to_grid(law, FINER * step)).mass.size <= most:
        kept, step = finer, FINER * step
    return kept


def product_exposure(exposures: Sequence[Exposure]) -> Exposure:
    """Every combination of types, with every combination of atoms."""
    mu, first, second, own = (
        reduce(_outer_types, [getattr(one, field) for one in exposures]) for field in ("mu", "first", "second", "own")
    )
    return Exposure(mu, first, second, own)


def joint_alike(exposure: Exposure, count: int) -> Exposure:
    """So many answers alike in one report: which of them has which type, and which atom, does not count."""
    values = np.unique(np.concatenate([kind[1:].ravel() for kind in _types(exposure)]))
    if values.size == 2 and values[0] == 1.0:
        return _powers(exposure, float(values[1]), count)

    def all_of(some: Sequence[Reals]) -> list[Reals]:
        found = some[0]
        for one in some[1:]:
            found = _distinct_atoms((found[:, :, None] * one[:, None, :]).reshape(4, -1))
        return list(found)

    kinds = [_distinct_atoms(kind) for kind in _types(exposure)]
    return Exposure.of_ratios([all_of(some) for some in combinations_with_replacement(kinds, count)])


def _powers(exposure: Exposure, ratio: float, count: int) -> Exposure:
    """`joint_alike` where all ratios are 1 or one other: of so many answers only its three exponents count."""
    kinds = [[(mass, *(int(z > 1.0) for z in ratios)) for mass, *ratios in kind.T] for kind in _types(exposure)]

    def with_one_more(laws: Reals, kind: Sequence[tuple[float, int, int, int]]) -> Reals:
        found, size = np.zeros((len(laws), *(np.array(laws.shape[1:]) + 1))), laws.shape[1]
        for mass, x, y, t in kind:
            found[:, x : x + size, y : y + size, t : t + size] += mass * laws
        return found

    ends = [np.ones((int(first == 0), 1, 1, 1)) for first in range(len(kinds))]  # by the last kind that was added
    for _ in range(count):
        ends = [with_one_more(np.concatenate(ends[: last + 1]), kind) for last, kind in enumerate(kinds)]
    powers = ratio ** np.arange(count + 1.0)
    places = [(law, np.nonzero(law)) for law in np.concatenate(ends)]
    return Exposure.of_ratios([[law[used], *(powers[exponent] for exponent in used)] for law, used in places])


def _types(exposure: Exposure) -> Iterator[Reals]:
    """mu and the three ratios of each type, (4, atoms)."""
    for mu, *laws in zip(exposure.mu, exposure.first, exposure.second, exposure.own, strict=True):
        used = mu > 0.0
        yield np.array([mu[used], *(_snapped(law[used] / mu[used]) for law in laws)])


def _snapped(ratios: Reals) -> Reals:
    """Those that differ by a few roundings as one."""
    values, place = np.unique(ratios, return_inverse=True)
    fresh = np.append(True, np.diff(values) > SNAP * values[1:])
    return np.asarray(values[np.maximum.accumulate(np.where(fresh, np.arange(values.size), 0))][place])


def _distinct_atoms(kind: Reals) -> Reals:
    """Atoms whose ratios are equal in every bit as one."""
    order = np.lexsort(kind)
    ratios = kind[1:, order]
    atom = np.cumsum(np.append(False, np.any(np.diff(ratios) != 0.0, axis=0)))
    return np.vstack([np.bincount(atom, kind[0, order]), ratios[:, np.append(True, np.diff(atom) > 0)]])


def _outer(one: Reals, other: Reals) -> Reals:
    return np.asarray(np.multiply.outer(one, other).ravel())


def _outer_types(one: Reals, other: Reals) -> Reals:
    """(types, atoms) of both to (types of both, atoms of both)."""
    both = one[:, None, :, None] * other[None, :, None, :]
    return np.asarray(both.reshape(len(one) * len(other), -1))


def joint_exposures(joint: JointReport, ways: Callable[[Mechanism], list[Way]] = every_way) -> list[Exposure]:
    """Exposures of all answers, from those of each."""
    return combined_exposures(joint, joint_alike, lambda parts, _: product_exposure(parts), math.prod, ways=ways)


def joint_worst(joint: JointReport) -> list[Exposure]:
    r"""Exposures without the patterns that are below others; of too many kinds those that hold for most people.

    .. math:: (Z_x, Z_x, Z_x) \le (Z_a, Z_c, Z_a) \quad \text{where} \quad (1 - s)\, Z_a' \le E Z_c'

    for all that the other answers say, Z'.
    """
    with suppress(UnsupportedError):
        return joint_exposures(joint, partial(differing_ways, same=True))
    most = math.exp(min(joint.epsilons) - joint.epsilon) * (1.0 - 1e-9)
    return [replace(one, most_lost=most) for one in joint_exposures(joint, partial(differing_ways, same=False))]


LAW = DeclaredLaw(
    JointReport,
    "several answers in one report",
    dataset=lambda joint: worst_combined(
        joint, lambda laws: product_law(laws, gather_atoms, MOST_REPORTS), np.multiply
    ),
    uppers=lambda joint: combined_laws(joint, lambda laws: product_law(laws, split_atoms, MOST_ATOMS)),
    exposures=joint_exposures,
    worst=joint_worst,
)


# One of several questions for each person, drawn by chance: laws are mixed, side by side.


def mixed_law(laws: Sequence[BlanketLaw], chances: Sequence[float]) -> BlanketLaw:
    r"""The law of a question drawn with these chances and its answer.

    .. math:: (Z_0, Z_1) = (Z_0^q, Z_1^q) \text{ under } \mu^q \text{ with mass } w_q
    """
    z0, z1 = (np.concatenate([getattr(law, field) for law in laws]) for field in ("z0", "z1"))
    return BlanketLaw(z0, z1, np.concatenate([w * law.mass for w, law in zip(chances, laws, strict=True)]))


def mixed_exposure(exposures: Sequence[Exposure], chances: Sequence[float]) -> Exposure:
    """Atoms side by side, for every combination of types."""
    return _side_by_side(exposures, chances, list(product(*(range(len(one.mu)) for one in exposures))))


def one_alike(exposure: Exposure, count: int) -> Exposure:
    """One of so many questions alike: which of them has which type does not count."""
    kinds = list(combinations_with_replacement(range(len(exposure.mu)), count))
    return _side_by_side([exposure] * count, [1.0 / count] * count, kinds)


def _side_by_side(
    exposures: Sequence[Exposure], chances: Sequence[float], kinds: Sequence[tuple[int, ...]]
) -> Exposure:
    parts = list(zip(chances, exposures, np.transpose(kinds), strict=True))
    mu, first, second, own = (
        np.hstack([w * getattr(one, field)[rows] for w, one, rows in parts])
        for field in ("mu", "first", "second", "own")
    )
    return Exposure(mu, first, second, own)


def one_exposures(one: OneQuestion, ways: Callable[[Mechanism], list[Way]] = every_way) -> list[Exposure]:
    """Exposures of a drawn question, from those of each: what else she would have said does not count."""
    return combined_exposures(one, one_alike, mixed_exposure, _mixed_atoms, ways=ways, weights=one.chances)


def _mixed_atoms(held: Iterable[int]) -> int:
    """Atoms of all questions side by side; with many a person hides little more among everybody, and slowly."""
    return DEAR * sum(held)


ONE_QUESTION_LAW = DeclaredLaw(
    OneQuestion,
    "one of several questions",
    dataset=lambda one: worst_combined(one, lambda laws: mixed_law(laws, one.chances), np.add, weights=one.chances),
    uppers=lambda one: combined_laws(one, lambda laws: mixed_law(laws, one.chances), weights=one.chances),
    exposures=one_exposures,
    worst=lambda one: one_exposures(one, partial(differing_ways, same=False)),
)


# One of many questions alike, answered by k-ary response: at most as exposed as one question with that response.
#
# Where the two values differ in every block the ratios are those of k-ary response, whatever block was drawn. Where
# they agree in a block both ratios are Z_a there, and
#
# .. math:: \{(1 - E)\, p, \; 1 - E\} \text{ lies between } p - E \text{ and } 1 - E p, \qquad
#           (1 - E)\, p + (1 - E) = (p - E) + (1 - E p)
#
# so they are below in convex order. Where symbols stand for signs that a vector of bounded length leaves mostly
# undetermined, `BlockOfSigns` is far smaller.


def sampled_law(sampled: SampledBlock) -> BlanketLaw:
    """That of k-ary response."""
    return krr_law(_channel(sampled))


def sampled_dataset(sampled: SampledBlock) -> BlanketLaw:
    """Everybody else holds the same bad symbol in every block; of signs, in all blocks that a vector can determine.

    Two blocks or more: vectors of period D / 2 are reached whatever d is, for rotations of the first D / 2
    coordinates have all of them. The first and the second vector have opposite signs in as many blocks as their
    length allows, the others' agree with neither, or with the second. Where not even one block is determined, all its
    signs have the same expectation, and the others hold 0.
    """
    if sampled.energy == 1.0:
        return attack_dataset(sampled.parts[0])
    s, period = sampled.signs, max(1, sampled.blocks // 2)
    full = math.floor(sampled.energy * period * (1.0 - 1e-9))
    p, lie = _ratio_and_lie(sampled)
    if full == 0:
        plus, share = np.arange(s + 1), 1.0 / period
        z = math.sqrt(min(1.0, sampled.energy * period * (1.0 - 1e-9)))
        ways = np.array([math.comb(s, int(i)) for i in plus]) * 0.5**s
        first = lie * 2.0**s * (1.0 + (p - 1.0) * (0.5 * (1.0 + z)) ** plus * (0.5 * (1.0 - z)) ** (s - plus))
        return BlanketLaw(np.append(first, 1.0), np.append(first[::-1], 1.0), np.append(share * ways, 1.0 - share))
    share = full / period
    if s == 1:  # the others hold the second value
        return BlanketLaw([p, 1.0 / p, 1.0], [1.0, 1.0, 1.0], [share * lie, share * p * lie, 1.0 - share])
    masses = [share * lie, share * lie, share * p * lie]
    return BlanketLaw([p, 1.0, 1.0 / p, 1.0], [1.0, p, 1.0 / p, 1.0], [*masses, 1.0 - sum(masses)])


def sampled_exposures(sampled: SampledBlock) -> list[Exposure]:
    r"""Types of blocks in which the values differ, and of those in which they agree.

    Another person's transform is the mean over blocks of those of her types, and |.|^(n - 1) is convex: so the worst
    type in every block bounds all. M_0 is largest where the values differ, by convex order.
    """
    if sampled.energy < 1.0:
        raise UnsupportedError("Blocks of signs are judged by a bound of their own, which is smaller.")
    [differ] = krr_exposures(_channel(sampled))
    mu, own = (np.concatenate([part] * 2) for part in (differ.mu, differ.own))
    first = np.concatenate([differ.first, differ.second])  # all symbols are alike: any one may be held twice
    second = np.concatenate([differ.second, differ.second])
    return [Exposure(mu, first, second, own)]


@dataclass(frozen=True)
class BlockOfSigns:
    r"""One of many blocks of s signs whose expectations are bounded on average: the smaller of two bounds on delta.

    .. math:: \delta(\epsilon) \le \min_{\theta > 0} \frac{M^n}{e\, \theta\, n}, \qquad
              M = 1 - g + g\, e^{-\theta (E - 1) / g} (1 + 2 \Lambda s \kappa), \qquad g = 2^s \mathrm{lie}

    and the law of k-ary response. kappa is the energy; Lambda is `_rate`. Proved in docs/theory/several-questions.md:
    (S)_+ <= e^(theta S) / (e theta) for the sum S of the blanket; a block's transform is convex in the square of each
    sign's expectation, so per unit of those squares it is largest where signs are determined.
    """

    sampled: SampledBlock
    n: int

    def delta(self, epsilon: float) -> Bracket:
        """The bound; both ends agree but for rounding."""
        known = self._response.delta(epsilon)
        if epsilon <= 0.0 or epsilon >= self.sampled.epsilon:
            return known
        found = min(known.upper, self._tilted(epsilon))
        return Bracket(min(known.lower, found * (1.0 - 1e-6)), found)

    def epsilon(self, delta: float) -> Bracket:
        """Ends of the smallest epsilon with delta(epsilon) <= delta."""
        known = self._response.epsilon(delta)
        if delta == 0.0 or known.upper == 0.0:
            return known
        high = bracket_root(
            lambda e: log_ratio(self.delta(e).upper, delta), 0.5 * known.upper, steepness=10.0, most=known.upper,
            tolerance=1e-6,
        )[1]  # fmt: skip
        return Bracket(min(known.lower, high * (1.0 - 1e-5)), high)

    @property
    def _response(self) -> ShuffledLaw:
        return ShuffledLaw(sampled_law(self.sampled), self.n)

    def _tilted(self, epsilon: float) -> float:
        """The first bound, at the best of many theta: each is valid."""
        p, lie = _ratio_and_lie(self.sampled)
        more = math.expm1(epsilon)
        variance = 2.0 * lie * p * p * self.sampled.energy  # about that of one report's contribution
        guess, best = more / variance, math.inf
        for width in (16.0, 1.3, 1.03):
            theta = guess * np.geomspace(1.0 / width, width, 33)
            log_bound = self._log_bound(theta, more)
            at = int(np.argmin(log_bound))
            guess, best = float(theta[at]), min(best, float(log_bound[at]))
        return math.exp(min(best, 0.0))

    def _log_bound(self, theta: Reals, more: float) -> Reals:
        p, lie = _ratio_and_lie(self.sampled)
        s = self.sampled.signs
        g = lie * 2.0**s
        most = 100.0 / (1.0 + more)  # beyond, the bound says nothing and need not be followed
        x = np.minimum(theta * (p - 1.0), most)
        gain = 2.0 * s * self.sampled.energy * _rate(x, s, 1.0 + more) * (1.0 + 1e-9)
        log_m = np.log1p(g * np.expm1(np.log1p(gain) - theta * more / g))
        out = self.n * (log_m + 1e-13 * np.abs(log_m)) - 1.0 - np.log(theta * self.n) + 1e-9
        return np.where(theta * (p - 1.0) > most, np.inf, out)


def _rate(x: Reals, s: int, e: float) -> Reals:
    r"""Lambda at theta (p - 1) = x: what a unit of squared expectations adds to a block's transform at most.

    .. math:: \Psi_a(v) = e^{Y} (e^v - 1 - v) + c v^2, \qquad
              \Psi_c(v) = c v^2 + \begin{cases} v^2 / 2 & v > 0 \\ e^{-v} - 1 + v & v \le 0 \end{cases}, \qquad
              Y = E X, \quad X = x / 2^s, \quad c = \tfrac14 Y e^Y

    .. math:: \Lambda = \max_{(i, j)} \frac{\hat\Psi_a(i) + \hat\Psi_c(j) + X Y \min(1, \frac{i + j}{2})}{i + j},
              \qquad (i, j) \in \{(2, 0), (0, 2), (s, 0), (0, s), (s, s)\}

    with Psi^(i) the mean of Psi over blocks in which Bin(s, i / s) signs are determined; 1 in place of 2 for s = 1.
    """
    low = x * 0.5**s
    y = e * low
    c = 0.25 * y * np.exp(y)
    h = np.arange(s + 1)
    first = np.outer(x, 2.0 ** (h - s) - 0.5**s)
    c_ = c[:, None]

    def both(value: Reals) -> tuple[Reals, Reals]:
        ahead = np.exp(y)[:, None] * _excess(value) + c_ * value**2
        back = e * value
        return ahead, c_ * back**2 + np.where(back > 0.0, 0.5 * back**2, _excess(-np.minimum(back, 0.0)))

    held, free = both(first), both(np.broadcast_to(-low[:, None], first.shape))
    share = 0.5**h
    psi_a, psi_c = (share * one + (1.0 - share) * other for one, other in zip(held, free, strict=True))
    psi_a[:, 0], psi_c[:, 0] = 0.0, 0.0
    two = min(2, s)
    chances = np.array([math.comb(s, int(i)) * (two / s) ** i * (1.0 - two / s) ** (s - i) for i in h])
    half = min(1.0, 0.5 * s)
    kinds = [
        (psi_a @ chances + low * y * min(1.0, 0.5 * two)) / two,
        (psi_c @ chances + low * y * min(1.0, 0.5 * two)) / two,
        (psi_a[:, s] + low * y * half) / s,
        (psi_c[:, s] + low * y * half) / s,
        (psi_a[:, s] + psi_c[:, s] + low * y) / (2.0 * s),
    ]
    return np.asarray(np.max(kinds, axis=0))


def _excess(v: Reals) -> Reals:
    """e^v - 1 - v, from above."""
    small = 0.5 * v**2 * (1.0 + v / 3.0 + v**2 / 12.0 + np.abs(v) ** 3 / 50.0)
    return np.asarray(np.where(np.abs(v) < 1e-3, small, (np.expm1(v) - v) * (1.0 + 1e-9)))


def _channel(sampled: SampledBlock) -> KRRChannel:
    return sampled.response.channel()


def _ratio_and_lie(sampled: SampledBlock) -> tuple[float, float]:
    """p, and the probability of each symbol that is not held."""
    channel = _channel(sampled)
    base = min(channel.keep, channel.lie)
    return max(channel.keep, channel.lie) / base, base / channel.total


def sampled_pair(sampled: SampledBlock, n: int) -> DominatingPair:
    """Of determined symbols the law of k-ary response; of signs the smaller one."""
    return ShuffledLaw(sampled_law(sampled), n) if sampled.energy == 1.0 else BlockOfSigns(sampled, n)


SAMPLED_BLOCK_LAW = DeclaredLaw(
    SampledBlock,
    "one block, by k-ary randomized response",
    dataset=sampled_dataset,
    upper=sampled_law,
    exposures=sampled_exposures,
    pair=sampled_pair,
)
