"""Answers to several questions in one report: ratios multiply."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from dovetail.account.blanket.declared_law import DeclaredLaw
from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.composition.questions import JointReport
from dovetail.account.everybody.exposure import Exposure
from dovetail.account.mechanisms.several_questions import combined_exposures, combined_laws, worst_combined
from dovetail.core.numeric.special import Reals


def product_law(laws: Sequence[BlanketLaw]) -> BlanketLaw:
    r"""The law of independent answers.

    .. math:: Z_b = \prod_q Z_b^q, \qquad \mu = \bigotimes_q \mu^q
    """
    return BlanketLaw(*(reduce(_outer, [getattr(law, field) for law in laws]) for field in ("z0", "z1", "mass")))


def product_exposure(exposures: Sequence[Exposure]) -> Exposure:
    """Every combination of types, with every combination of atoms."""
    return Exposure(
        *(
            reduce(_outer_types, [getattr(one, field) for one in exposures])
            for field in ("mu", "first", "second", "own")
        )
    )


def _outer(one: Reals, other: Reals) -> Reals:
    return np.asarray(np.multiply.outer(one, other).ravel())


def _outer_types(one: Reals, other: Reals) -> Reals:
    """(types, atoms) of both to (types of both, atoms of both)."""
    both = one[:, None, :, None] * other[None, :, None, :]
    return np.asarray(both.reshape(len(one) * len(other), -1))


LAW = DeclaredLaw(
    JointReport,
    "several answers in one report",
    dataset=lambda joint: worst_combined(joint, product_law),
    uppers=lambda joint: combined_laws(joint, product_law),
    exposures=lambda joint: combined_exposures(joint, product_exposure),
)
