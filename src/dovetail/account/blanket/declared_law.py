"""What a file of `account/mechanisms` declares: a mechanism, and the laws of its shuffled reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.bound import DominatingPair
from dovetail.account.everybody.exposure import Exposure


@dataclass(frozen=True)
class DeclaredLaw:
    """The laws of one mechanism.

    Parameters
    ----------
    subject : type
        A channel or a randomizer: what `Randomizer.accounted` returns.
    name : str
        Of the bound.
    dataset : function of the subject
        The exact law of one bad collection: no bound can be below it.
    upper : function of the subject
        A law that dominates every collection.
    uppers : function of the subject
        Instead of `upper`: laws of which the largest does, pair by pair of values.
    exposures : function of the subject, optional
        Every kind of ordered pair of values, with every kind of value that others may hold.
    second : function of the subject, optional
        The exact law where everybody else holds the second value; without it, the exposures say so.
    pair : function of the subject and n, optional
        What dominates n shuffled reports, where that is less than `upper` says.
    """

    subject: type
    name: str
    dataset: Callable[..., BlanketLaw]
    upper: Callable[..., BlanketLaw] | None = None
    uppers: Callable[..., Sequence[BlanketLaw]] | None = None
    exposures: Callable[..., Sequence[Exposure]] | None = None
    second: Callable[..., BlanketLaw] | None = None
    pair: Callable[..., DominatingPair] | None = None
