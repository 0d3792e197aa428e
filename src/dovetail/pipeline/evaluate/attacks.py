"""Attacks on a table's values: from what the attacker knows about everybody to an attacker that guesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.attack.experiment.result import AttackResult
from dovetail.attack.experiment.run_attack import run_attack
from dovetail.attack.experiment.success_bound import DELTA, SuccessBound, success_bound
from dovetail.attack.experiment.voter_selection import select_voters
from dovetail.core.attack import Attack, Knowledge
from dovetail.core.display.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.registries import ATTACKS
from dovetail.core.stages import FrequencyRandomizer, Reports, Shuffler
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.config.sections import AttackSection, GroupsSection
from dovetail.pipeline.files.table import Survey
from dovetail.pipeline.progress import Progress
from dovetail.report.document import MeasuredAttack, Missing

MOST_TEXTS = 100
ALL_WEIGHED = "all reports that can be the target's are weighed"

Labels = NDArray[np.int64]  # (n,)


@mute
@dataclass(frozen=True, eq=False)
class ColumnKnowledge(Knowledge):
    """What an attacker knows about everybody beforehand.

    Parameters
    ----------
    survey : Survey
        Its public columns.
    groups : GroupsSection, optional
        Who is near (r* in the paper: as near as the shuffler's groups reach).
    similar : column names
        Known besides: numbers, or texts, which are equal or not.
    pool : bool
        Put people of whom nobody else's like is known into one class, instead of refusing.
    seen : reports, optional
        A released batch to learn from; without it one more is drawn.
    """

    survey: Survey
    groups: GroupsSection | None
    similar: list[str]
    pool: bool = False
    seen: Reports | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise UnsupportedError(
                "an attack on values needs public columns that it knows: those of the groups, or similar ones"
            )

    @property
    def columns(self) -> list[str]:
        """All that is known."""
        near = [] if self.groups is None else self.groups.columns
        return list(dict.fromkeys([*near, *self.similar]))

    def places(self, targets: Labels, *, votes: int, rng: Entropy) -> Labels:
        """Places (targets, votes) whose reports vote for each target."""
        groups = self.groups
        similar = self._likeness(self.similar) if self.similar else None
        within = None
        if groups is not None and groups.nearest is not None:  # the nearest of all are near
            if similar is not None:
                raise UnsupportedError(
                    "the majority vote has no radius in groups of the nearest people, so similar columns cannot "
                    "choose among those within it; leave them out, or use groups within a radius"
                )
            similar = self.survey.numbers(groups.columns)
        elif groups is not None and groups.labels is not None and not groups.radius:
            codes = self.survey.public[groups.labels].cast(pl.String).rank("dense").to_numpy()
            within = (codes.astype(np.float64), 0.0)
        elif groups is not None:
            within = (self.survey.numbers(groups.columns), groups.radius or 0.0)
        return select_voters(targets, within=within, similar=similar, votes=min(votes, self.survey.n), rng=rng)

    def points(self) -> NDArray[np.float64]:
        """Everybody's place (n, d): numbers in units of their standard deviation; unequal texts are 1 apart."""
        return self._likeness(self.columns)

    def told_apart(self) -> Labels:
        """Number (n,) of the class of people of whom exactly the same is known, even if it is one person."""
        return self._ranks()

    def _likeness(self, names: list[str]) -> NDArray[np.float64]:
        """Columns (n, d): numbers in units of their standard deviation; unequal texts are 1 apart."""
        parts = []
        for name in names:
            column = self.survey.public[name]
            if column.dtype == pl.String and column.cast(pl.Float64, strict=False).null_count() == column.len():
                if column.n_unique() > MOST_TEXTS:
                    raise DataError(
                        f"column {name!r}: {column.n_unique():,} different texts; an attacker compares numbers "
                        f"or at most {MOST_TEXTS} texts."
                    )
                parts.append(column.to_dummies().to_numpy() / 2**0.5)
            else:
                parts.append(_in_deviations(self.survey.numbers([name])))
        return np.column_stack(parts)

    def release(self, randomizer: FrequencyRandomizer, shuffler: Shuffler, rng: Entropy) -> Reports:
        if self.seen is not None:
            return self.seen
        return shuffler.shuffle(randomizer.randomize(self.survey.values, rng), rng)

    def classes(self) -> Labels:
        codes = self._ranks()
        sizes = np.bincount(codes)
        lonely = np.flatnonzero(sizes[codes] == 1)
        if lonely.size and not self.pool:
            row = self.survey.public.select(self.columns).row(int(lonely[0]))
            first = ", ".join(f"{name} {value}" for name, value in zip(self.columns, row, strict=True))
            raise DataError(
                f"{lonely.size:,} people are a class of their own, such as {first}: nothing can be learned about "
                "them from others; leave columns out or join their values."
            )
        codes[lonely] = sizes.argmax() if lonely.size == 1 else -1
        return codes

    def _ranks(self) -> Labels:
        ranks = self.survey.public.select(pl.struct(self.columns).rank("dense")).to_series()
        return ranks.to_numpy().astype(np.int64)


def _in_deviations(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    size = np.frexp(np.abs(numbers).max(axis=0))[1]
    plain = np.ldexp(np.ldexp(numbers, -(size // 2)), size // 2 - size)  # in two steps: squares must not overflow
    spread = plain.std(axis=0)
    return np.asarray(plain / np.where(spread > 0.0, spread, 1.0))


def attacks(
    collection: Collection, wanted: AttackSection, rng: Entropy, progress: Progress
) -> dict[str, MeasuredAttack | Missing] | Missing:
    """The attacks of a rehearsal on a random sample of people."""
    if not isinstance(collection.randomizer, FrequencyRandomizer):
        return Missing("the attacks guess categories; the private column is a number")
    try:
        known = ColumnKnowledge(collection.survey, collection.groups, wanted.similar, pool=True)
    except UnsupportedError as error:
        return Missing(str(error))
    targets = rng.permutation(collection.n)[: wanted.targets]
    kinds = [ATTACKS[name] for name in dict.fromkeys(wanted.attacks)]
    bound = bound_of(known, collection.randomizer, collection.shuffler, targets=targets, delta=collection.delta)
    return {kind.label: _measured(kind, known, collection, targets, wanted, bound, rng, progress) for kind in kinds}


def bound_of(
    known: ColumnKnowledge,
    randomizer: FrequencyRandomizer,
    shuffler: Shuffler,
    *,
    targets: Labels,
    delta: float = DELTA,
) -> SuccessBound | Missing:
    """What no attacker who knows these columns exceeds on average."""
    try:
        return success_bound(
            randomizer, shuffler, known.survey.values, targets=targets, known=known.told_apart(), delta=delta
        )
    except UnsupportedError as error:
        return Missing(str(error))


def _measured(
    kind: type[Attack],
    known: ColumnKnowledge,
    collection: Collection,
    targets: Labels,
    wanted: AttackSection,
    bound: SuccessBound | Missing,
    rng: Entropy,
    progress: Progress,
) -> MeasuredAttack | Missing:
    randomizer, shuffler, chosen = collection.randomizer, collection.shuffler, wanted.settings_of(kind)
    assert isinstance(randomizer, FrequencyRandomizer)  # checked by the caller
    try:
        found = run_attack(
            kind.prepare(known, randomizer, shuffler, targets=targets, rng=rng, **chosen),
            randomizer, collection.survey.values, shuffler,
            shuffles=wanted.trials, randomizations=1, rng=rng,
            progress=lambda done, total: progress(f"{kind.label}: {shuffler.name}", done, total),
        )  # fmt: skip
    except (UnsupportedError, DataError) as error:
        return Missing(str(error))
    votes = kind.weighed(collection.n, chosen)
    return measured(found, votes=Missing(ALL_WEIGHED) if votes is None else votes, bound=bound)


def measured(found: AttackResult, *, votes: int | Missing, bound: SuccessBound | Missing) -> MeasuredAttack:
    """The numbers of an attack with one randomization for each order."""
    best = found.better
    return MeasuredAttack(
        name=found.name,
        success=best.success,
        chance=found.chance,
        interval=best.interval,
        vulnerable=float((found.by_person >= found.vulnerable_at).mean()),
        targets=len(found.by_person),
        trials=found.shuffles,
        votes=votes,
        level=found.level,
        vulnerable_at=found.vulnerable_at,
        mounted=found.mounted,
        alone=found.success,
        remark=found.remark,
        bound=bound if isinstance(bound, Missing) else bound.value,
        bound_by=bound if isinstance(bound, Missing) else bound.source,
    )
