"""Attacks on a table's values: from what the attacker knows about everybody to an attacker that guesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.attack.correlation import Correlation, learn_smoothness
from dovetail.attack.definetti import DeFinetti
from dovetail.attack.experiment.result import AttackResult
from dovetail.attack.experiment.run_attack import Attacker, run_attack
from dovetail.attack.experiment.voter_selection import select_voters
from dovetail.attack.majority import MajorityVote
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.pipeline.config.build import mechanism_of
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.config.sections import AttackName, AttackSection, GroupsSection
from dovetail.pipeline.files.table import Survey
from dovetail.pipeline.progress import Progress
from dovetail.report.document import MeasuredAttack, Missing
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

MOST_TEXTS = 100
NEIGHBOURS = 50  # whose reports the correlation attack weighs for each target
NAMES = {"majority": MajorityVote.name, "correlation": Correlation.name, "definetti": DeFinetti.name}

Labels = NDArray[np.int64]  # (n,)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What an attacker knows about everybody beforehand.

    Parameters
    ----------
    survey : Survey
        Its public columns.
    groups : GroupsSection, optional
        Who is near (r* in the paper: as near as the shuffler's groups reach).
    similar : column names
        Known besides: numbers, or for the majority vote texts, which are equal or not.
    """

    survey: Survey
    groups: GroupsSection | None
    similar: list[str]

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
        similar = self._likeness() if self.similar else None
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
        """Everybody's place (n, d), each column in units of its standard deviation."""
        return _in_deviations(self.survey.numbers(self.columns))

    def _likeness(self) -> NDArray[np.float64]:
        """The similar columns (n, d): numbers in units of their standard deviation; unequal texts are 1 apart."""
        parts = []
        for name in self.similar:
            column = self.survey.public[name]
            if column.dtype == pl.String and column.cast(pl.Float64, strict=False).null_count() == column.len():
                if column.n_unique() > MOST_TEXTS:
                    raise DataError(
                        f"column {name!r}: {column.n_unique():,} different texts; the majority vote compares numbers "
                        f"or at most {MOST_TEXTS} texts."
                    )
                parts.append(column.to_dummies().to_numpy() / 2**0.5)
            else:
                parts.append(_in_deviations(self.survey.numbers([name])))
        return np.column_stack(parts)

    def classes(self, *, pool: bool) -> Labels:
        """People of whom the same is known; with `pool`, those of whom nobody's like is known are one class."""
        codes = (
            self.survey.public.select(pl.struct(self.columns).rank("dense")).to_series().to_numpy().astype(np.int64)
        )
        sizes = np.bincount(codes)
        lonely = np.flatnonzero(sizes[codes] == 1)
        if lonely.size and not pool:
            row = self.survey.public.select(self.columns).row(int(lonely[0]))
            first = ", ".join(f"{name} {value}" for name, value in zip(self.columns, row, strict=True))
            raise DataError(
                f"{lonely.size:,} people are a class of their own, such as {first}: nothing can be learned about "
                "them from others; leave columns out or join their values."
            )
        codes[lonely] = sizes.argmax() if lonely.size == 1 else -1
        return codes


def _in_deviations(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = numbers.std(axis=0)
    return numbers / np.where(spread > 0.0, spread, 1.0)


def attacker(
    name: AttackName,
    known: Knowledge,
    randomizer: FrequencyRandomizer,
    shuffler: Shuffler,
    *,
    targets: Labels,
    votes: int = 25,
    pool: bool = False,
    seen: Reports | None = None,
    rng: Entropy,
) -> Attacker:
    """An attacker that has learned what it needs; the correlation attack from `seen`, or from one more release.

    Raises
    ------
    UnsupportedError, DataError
        Where the attack does not apply, or its columns are no numbers.
    """
    if name == "majority":
        return MajorityVote(randomizer, targets, known.places(targets, votes=votes, rng=rng))
    if name == "definetti":
        return DeFinetti.of(randomizer, known.classes(pool=pool), blocks=_blocks(shuffler), targets=targets)
    points = known.points()
    if seen is None:
        seen = shuffler.shuffle(randomizer.randomize(known.survey.values, rng), rng)
    smoothness = learn_smoothness(randomizer, points, seen, rng=rng)
    return Correlation.fit(randomizer, points, targets=targets, smoothness=smoothness, neighbours=NEIGHBOURS)


def _blocks(shuffler: Shuffler) -> Labels:
    """Sets of places that each keep their people's reports and mix them."""
    mechanism, places = mechanism_of(shuffler), np.arange(shuffler.n)
    if isinstance(mechanism, Uniform):
        return np.zeros_like(places)
    if isinstance(mechanism, Identity):
        return places
    if isinstance(mechanism, WithinGroups):
        component = mechanism.groups.components()
        return np.where(component < 0, -1 - places, component)
    raise UnsupportedError(
        "the de Finetti attack needs places whose reports are mixed evenly; this order is released"
    )


def attacks(
    settings: RunConfig,
    survey: Survey,
    randomizer: FrequencyRandomizer | NumericRandomizer,
    shuffler: Shuffler,
    rng: Entropy,
    progress: Progress,
) -> dict[str, MeasuredAttack | Missing] | Missing:
    """The attacks of a rehearsal on a random sample of people."""
    wanted = settings.attack
    if not isinstance(randomizer, FrequencyRandomizer):
        return Missing("the attacks guess categories; the private column is a number")
    try:
        known = Knowledge(survey, settings.shuffle.groups, wanted.similar)
    except UnsupportedError as error:
        return Missing(str(error))
    targets = rng.permutation(survey.n)[: wanted.targets]
    return {
        NAMES[name]: _measured(name, known, randomizer, shuffler, targets, wanted, rng, progress)
        for name in dict.fromkeys(wanted.attacks)
    }


def _measured(
    name: AttackName,
    known: Knowledge,
    randomizer: FrequencyRandomizer,
    shuffler: Shuffler,
    targets: Labels,
    wanted: AttackSection,
    rng: Entropy,
    progress: Progress,
) -> MeasuredAttack | Missing:
    try:
        found = run_attack(
            attacker(name, known, randomizer, shuffler, targets=targets, votes=wanted.votes, pool=True, rng=rng),
            randomizer, known.survey.values, shuffler,
            shuffles=wanted.trials, randomizations=1, rng=rng,
            progress=lambda done, total: progress(f"{NAMES[name]}: {shuffler.name}", done, total),
        )  # fmt: skip
    except (UnsupportedError, DataError) as error:
        return Missing(str(error))
    votes = {"majority": min(wanted.votes, known.survey.n), "correlation": min(NEIGHBOURS, known.survey.n)}
    return measured(found, votes=votes.get(name, Missing("all reports that can be the target's are weighed")))


def measured(found: AttackResult, *, votes: int | Missing) -> MeasuredAttack:
    """The numbers of an attack with one randomization for each order."""
    return MeasuredAttack(
        name=found.name,
        success=found.success,
        chance=found.chance,
        interval=found.interval,
        vulnerable=float((found.by_person >= found.vulnerable_at).mean()),
        targets=len(found.by_person),
        trials=found.shuffles,
        votes=votes,
        level=found.level,
        vulnerable_at=found.vulnerable_at,
    )
