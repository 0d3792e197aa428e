r"""Laws of reports about several questions, from those of the answers.

The victim's two values may differ in every question or only in some. Where they agree, both ratios are alike; which
pattern of differences is worst is not assumed, so all are compared.

A law of a mechanism says that a Z_0 - b Z_1 is largest in convex order for all a, b >= 0, and that each Z_x is below
Z_0 or Z_1. For several questions a and b are what the other answers say, so the laws may be combined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice, product

import numpy as np

from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.composition.questions import SeveralQuestions
from dovetail.account.everybody.exposure import Exposure
from dovetail.account.mechanism_law import Mechanism, attack_dataset, exposures_of, pair_laws, second_datasets
from dovetail.account.mechanisms.finite_channel import MOST_LAWS, MOST_WORK, law_key
from dovetail.core.errors import UnsupportedError

MOST_ATOMS = 1 << 17
CANDIDATES = 3  # collections of each question from which the worst of all questions is combined

LawOfAll = Callable[[Sequence[BlanketLaw]], BlanketLaw]
ExposureOfAll = Callable[[Sequence[Exposure]], Exposure]


def combined_laws(subject: SeveralQuestions, combine: LawOfAll) -> list[BlanketLaw]:
    """A law for every pattern of questions in which the two values differ, each once.

    Raises
    ------
    UnsupportedError
        For more patterns or atoms than are summed.
    """
    options = [_ways(part) for part in subject.parts]
    _check_laws(options)
    found: dict[bytes, BlanketLaw] = {}
    for chosen in product(*options):
        if not any(differs for differs, _ in chosen):
            continue
        law = _merged(combine([law for _, law in chosen]))
        found.setdefault(min(law_key(law), law_key(law.mirrored)), law)
    return list(found.values())


def combined_exposures(subject: SeveralQuestions, combine: ExposureOfAll) -> list[Exposure]:
    """Every pattern of differences with every kind of other person: she may be of any kind in each question."""
    options = [
        [*((True, one) for one in exposures_of(part)), *((False, one) for one in _agreeing(part))]
        for part in subject.parts
    ]
    sizes = [max(one.mu.size for _, one in ways) for ways in options]
    if math.prod(len(ways) for ways in options) * math.prod(sizes) > MOST_WORK:
        raise UnsupportedError(
            "These questions have too many pairs of values and values of the others to hide among everybody; the "
            "bounds by the blanket hold."
        )
    return [
        combine([one for _, one in chosen]) for chosen in product(*options) if any(differs for differs, _ in chosen)
    ]


def worst_combined(subject: SeveralQuestions, combine: LawOfAll) -> BlanketLaw:
    """The most exposed of some collections in which everybody else has common values."""
    best: BlanketLaw | None = None
    options = [_collections(part) for part in subject.parts]
    if math.prod(max(law.mass.size for law in laws) for laws in options) > MOST_ATOMS:
        options = [laws[:1] for laws in options]
    if math.prod(laws[0].mass.size for laws in options) > MOST_ATOMS:
        raise UnsupportedError(f"A collection is evaluated up to {MOST_ATOMS:,} kinds of reports.")
    for chosen in product(*options):
        law = combine(chosen)
        best = law if best is None or law.spread > best.spread else best
    assert best is not None
    return _merged(best)


def _ways(part: Mechanism) -> list[tuple[bool, BlanketLaw]]:
    """Laws of pairs of different values, in both orders, and of one value twice."""
    found: dict[tuple[bool, bytes], BlanketLaw] = {}
    for law in pair_laws(part):
        for one in (law, law.mirrored):
            found.setdefault((True, law_key(one)), one)
            same = _merged(BlanketLaw(one.z0, one.z0, one.mass))
            found.setdefault((False, law_key(same)), same)
    return [(differs, law) for (differs, _), law in found.items()]


def _check_laws(options: Sequence[Sequence[tuple[bool, BlanketLaw]]]) -> None:
    laws = math.prod(len(ways) for ways in options)
    atoms = math.prod(max(law.mass.size for _, law in ways) for ways in options)
    if laws > 2 * MOST_LAWS or atoms > MOST_ATOMS:
        raise UnsupportedError(
            f"These questions have {laws:,} laws of up to {atoms:,} kinds of reports to compare, more than "
            f"{2 * MOST_LAWS} or {MOST_ATOMS:,}; use the bound for every randomizer, stronger clones."
        )


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
    places, atom = np.unique(np.stack([law.z0, law.z1], axis=1)[order], axis=0, return_inverse=True)
    return BlanketLaw(places[:, 0], places[:, 1], np.bincount(atom.ravel(), law.mass[order]))
