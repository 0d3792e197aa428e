"""One of several questions for each person, drawn by chance: laws are mixed, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from dovetail.account.blanket.declared_law import DeclaredLaw
from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.composition.questions import OneQuestion
from dovetail.account.everybody.exposure import Exposure
from dovetail.account.mechanisms.several_questions import combined_exposures, combined_laws, worst_combined
from dovetail.core.numeric.special import Reals


def mixed_law(laws: Sequence[BlanketLaw], chances: Sequence[float]) -> BlanketLaw:
    r"""The law of a question drawn with these chances and its answer.

    .. math:: (Z_0, Z_1) = (Z_0^q, Z_1^q) \text{ under } \mu^q \text{ with mass } w_q
    """
    z0, z1 = (np.concatenate([getattr(law, field) for law in laws]) for field in ("z0", "z1"))
    return BlanketLaw(z0, z1, np.concatenate([w * law.mass for w, law in zip(chances, laws, strict=True)]))


def mixed_exposure(exposures: Sequence[Exposure], chances: Sequence[float]) -> Exposure:
    """Atoms side by side, for every combination of types."""
    types = list(product(*(range(len(one.mu)) for one in exposures)))

    def side_by_side(field: str) -> Reals:
        parts = [w * getattr(one, field) for w, one in zip(chances, exposures, strict=True)]
        return np.array([np.concatenate([part[t] for part, t in zip(parts, kinds, strict=True)]) for kinds in types])

    return Exposure(*(side_by_side(field) for field in ("mu", "first", "second", "own")))


LAW = DeclaredLaw(
    OneQuestion,
    "one of several questions",
    dataset=lambda one: worst_combined(one, lambda laws: mixed_law(laws, one.chances)),
    uppers=lambda one: combined_laws(one, lambda laws: mixed_law(laws, one.chances)),
    exposures=lambda one: combined_exposures(one, lambda parts: mixed_exposure(parts, one.chances)),
)
