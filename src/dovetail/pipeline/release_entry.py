"""What a release ledger is asked, what it keeps of a release, and what it answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.core.display.display import mute

Counts = NDArray[np.int64]  # (n,)


@dataclass(frozen=True)
class LedgerEntry:
    """One entry: what was promised to whom, and which request it answered; no values."""

    number: int
    table: str
    request: str
    epsilon: float
    alpha: float
    groups: str
    n: int
    shuffler: str
    unit: float | None = None  # nats of one report; entries without it count `epsilon` for everybody
    schema_version: int = 2
    note: str = ""  # what else adding up releases needs to know
    dummies: int = 0  # most that the shuffler has added to the reports of n people
    manifest: str = ""  # of a release in many files: SHA-256 of their list; other releases lie in the ledger itself

    def is_what(self, request: ReleaseRequest) -> bool:
        """Whether its guarantees are those of a request: whatever the terms say, no draw is promised anew as less."""
        made, asked = ((one.epsilon, one.alpha, one.shuffler, one.n) for one in (self, request))
        return made == asked


@mute
@dataclass(frozen=True)
class ReleaseRequest:
    """What a release is asked for, in canonical form: the same people and values in any order give the same bytes.

    Parameters
    ----------
    table : bytes
        The people and their private values.
    terms : bytes
        Everything else that shapes the reports.
    groups : bytes
        Who is in a group with whom.
    people : list of str
        Names of the people, where the table has them: whoever took part before adds up.
    epsilon, alpha, n, shuffler
        For the record; `epsilon` is what nobody spends more than.
    unit : float, nats, optional
        Of one report; default `epsilon`.
    sent : int array (people,), optional
        Reports of each person; default one each.
    rounds : list of str
        Names of reports that are never drawn twice unasked: of whom, about what, in which round.
    after : int, optional
        Number of the last release that was counted for this request; a later one makes it void.
    note : str
        What else adding up releases needs to know, such as a limit; no values.
    dummies : int
        Most reports of nobody that are released with those of the people.
    """

    table: bytes
    terms: bytes
    groups: bytes
    people: list[str]
    epsilon: float
    alpha: float
    n: int
    shuffler: str
    unit: float | None = None
    sent: Counts | None = None
    rounds: list[str] = field(default_factory=list)
    after: int | None = None
    note: str = ""
    dummies: int = 0


def everybody(people: list[str]) -> bytes:
    """The group of everybody in a table: of other people it is another group, and promises about both do not add."""
    return b"everybody\n" + json.dumps(sorted(people)).encode()


@mute
@dataclass(frozen=True)
class LedgerAnswer:
    """The reports of a release, and every release in which some of the same people took part, this one included."""

    reports: pl.DataFrame
    history: tuple[LedgerEntry, ...]
    number: int
    reproduced: bool
