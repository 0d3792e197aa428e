"""Attacks on a table's values: from what the attacker knows about everybody to an attacker that guesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.attack.experiment.report_law import PARTS, POINTS, NumberLaw, law_of
from dovetail.attack.experiment.run_attack import AttackResult, largest_share, run_attack
from dovetail.attack.experiment.success_bound import DELTA, SuccessBound, success_bound
from dovetail.attack.experiment.voter_selection import select_members, select_voters
from dovetail.core.display import mute
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError, DataError, ParameterError, UnsupportedError
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.progress import Progress, Tick, no_tick
from dovetail.core.stages import ATTACKS, Attack, FrequencyRandomizer, Knowledge, NumericRandomizer, Reports, Shuffler
from dovetail.estimate.frequency import project_shares
from dovetail.estimate.grouped import GroupedEstimator
from dovetail.estimate.local import local_error
from dovetail.job.build import build_collection, build_groups
from dovetail.job.collection import Collection
from dovetail.job.config import (
    AttackSection,
    EstimateSection,
    GroupsSection,
    RandomizeSection,
    RunConfig,
    ShuffleSection,
)
from dovetail.report.document import Learnability, MeasuredAttack
from dovetail.shuffle.fitting.components import partition_reference_order
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.uniform import Uniform
from dovetail.table.data_section import parse_section
from dovetail.table.reader import READ_TABLE, Read, Survey

MOST_TEXTS = 100
ALL_WEIGHED = "all reports that can be the target's are weighed"

Labels = NDArray[np.int64]  # (n,)


@mute
@dataclass(frozen=True, eq=False)
class ColumnKnowledge(Knowledge):
    """Prior knowledge of an attacker about everybody.

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
    parts : int, optional
        Where values say which of so many parts of the range a number is in.
    """

    survey: Survey
    groups: GroupsSection | None
    similar: list[str]
    pool: bool = False
    seen: Reports | None = None
    parts: int | None = None

    def __post_init__(self) -> None:
        if not self.columns and not self._named:
            raise UnsupportedError(
                "an attack on values needs public columns that it knows: those of the groups, or similar ones"
            )

    @property
    def columns(self) -> list[str]:
        """All that is known, names of people apart."""
        near = [] if self.groups is None else [one for one in self.groups.columns if one not in self._named]
        return list(dict.fromkeys([*near, *self.similar]))

    @property
    def _named(self) -> list[str]:
        """Columns that name people in lists and networks: they tell who is whose neighbour, and nothing else."""
        return [] if self.groups is None else [one.ids for one in self.groups.kinds if one.ids is not None]

    def places(self, targets: Labels, *, votes: int, rng: Entropy) -> Labels:
        """Places (targets, votes) whose reports vote for each target."""
        groups = self.groups
        similar = self._likeness(self.similar) if self.similar else None
        within = None
        if groups is not None and not groups.by_values:
            return select_members(targets, build_groups(groups, self.survey), similar=similar, votes=votes, rng=rng)
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
        likeness = [self._likeness(self.columns)] if self.columns else []
        if self.groups is not None and self._named:  # friends stand near one another in the public reference order
            line = partition_reference_order(build_groups(self.groups, self.survey))[0]
            likeness.append(_in_deviations(line.places[:, None].astype(np.float64)))
        return np.column_stack(likeness)

    def told_apart(self) -> Labels:
        """Number (n,) of the class of people of whom exactly the same is known, even if it is one person."""
        return np.arange(self.survey.n) if self._named else self._ranks()

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

    def release(self, randomizer: Any, shuffler: Shuffler, rng: Entropy) -> Reports:
        if self.seen is not None:
            return self.seen
        return shuffler.shuffle(randomizer.randomize(self.survey.values, rng), rng)

    def shares(self, k: int) -> NDArray[np.float64]:
        counts = self._counts(k)
        counts[counts.sum(axis=1) == 1.0] = np.bincount(self.survey.values, minlength=k)  # who is alone
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def others(self, k: int) -> NDArray[np.float64]:
        """How many others (n, k) of whom the same is known hold each value; of everybody for who is alone."""
        counts, values = self._counts(k), self.survey.values
        counts[np.arange(len(values)), values] -= 1.0
        alone = counts.sum(axis=1) == 0.0
        counts[alone] = np.bincount(values, minlength=k) - np.eye(k)[values[alone]]
        return counts

    def _counts(self, k: int) -> NDArray[np.float64]:
        classes = np.unique(self._ranks(), return_inverse=True)[1]
        counts = np.zeros((int(classes.max()) + 1, k))
        np.add.at(counts, (classes, self.survey.values), 1.0)
        return counts[classes]

    def classes(self) -> Labels:
        codes = self._ranks()
        if not self.columns:
            raise DataError("people differ in who is near them alone")
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

    def coarser(self) -> list[Labels]:
        """Of several columns each by itself: households are many, and say nothing that people's ages do not."""
        return [self._ranks([name]) for name in self.columns] if len(self.columns) > 1 else []

    def _ranks(self, columns: Sequence[str] | None = None) -> Labels:
        columns = self.columns if columns is None else columns
        if not columns:
            return np.zeros(self.survey.n, dtype=np.int64)
        ranks = self.survey.public.select(pl.struct(columns).rank("dense")).to_series()
        return ranks.to_numpy().astype(np.int64)


def _in_deviations(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    size = np.frexp(np.abs(numbers).max(axis=0))[1]
    plain = np.ldexp(np.ldexp(numbers, -(size // 2)), size // 2 - size)  # in two steps: squares must not overflow
    spread = plain.std(axis=0)
    return np.asarray(plain / np.where(spread > 0.0, spread, 1.0))


def attacks(
    collection: Collection, wanted: AttackSection, targets: Labels, rng: Entropy, progress: Progress
) -> dict[str, MeasuredAttack | Missing] | Missing:
    """The attacks of a rehearsal on these people."""
    if collection.noise.unattacked:
        return Missing(collection.noise.unattacked)
    try:
        known = ColumnKnowledge(collection.survey, collection.groups, wanted.similar, pool=True)
    except UnsupportedError as error:
        return Missing(str(error))
    kinds = [ATTACKS[name] for name in dict.fromkeys(wanted.attacks)]
    known, asked = as_guessed(known, collection, parts=getattr(wanted, "parts", PARTS), rng=rng)
    bound = bound_of(
        asked, collection.randomizer, collection.shuffler, targets=targets, delta=collection.delta,
        promise=None if collection.noise.hidden is None else collection.central,
    )  # fmt: skip
    return {
        kind.label: _measured(kind, known, asked, collection, targets, wanted, bound, rng, progress) for kind in kinds
    }


def as_guessed(
    known: ColumnKnowledge, collection: Collection, *, parts: int, rng: Entropy
) -> tuple[ColumnKnowledge, ColumnKnowledge]:
    """Public knowledge of everybody where values are candidate numbers, and where they are what is guessed: parts.

    Of answers twice the same.
    """
    if not isinstance(collection.randomizer, NumericRandomizer):
        return known, known
    law = NumberLaw(collection.randomizer, parts)
    codes, seen = law.codes(collection.survey.values), known.release(collection.randomizer, collection.shuffler, rng)
    by_points = replace(known, survey=replace(known.survey, values=codes), seen=seen)
    by_parts = replace(known, survey=replace(known.survey, values=codes // POINTS), seen=seen, parts=law.parts)
    return by_points, by_parts


def blind_guess(known: ColumnKnowledge, targets: Labels) -> float:
    """How often naming the commonest value is right: of all others of whom the same is known, or of all targets.

    The target's own value does not count: of people who are alone with what is known, nothing follows from it.
    """
    values = known.survey.values
    shares = known.others(int(values.max()) + 1)[targets]
    named = shares.max(axis=1, keepdims=True)
    right = (shares == named)[np.arange(len(targets)), values[targets]] / (shares == named).sum(axis=1)
    return max(float(right.mean()), largest_share(values[targets]))


def bound_of(
    known: ColumnKnowledge,
    randomizer: FrequencyRandomizer | NumericRandomizer,
    shuffler: Shuffler,
    *,
    targets: Labels,
    promise: CentralDP | Missing | None = None,
    delta: float = DELTA,
) -> SuccessBound | Missing:
    """A bound on the average success of any attacker who knows these columns."""
    try:
        return success_bound(
            randomizer,
            shuffler,
            known.survey.values,
            k=known.parts,
            targets=targets,
            known=known.told_apart(),
            promise=promise,
            delta=delta,
        )
    except UnsupportedError as error:
        return Missing(str(error))


def _measured(
    kind: type[Attack],
    known: ColumnKnowledge,
    asked: ColumnKnowledge,
    collection: Collection,
    targets: Labels,
    wanted: AttackSection,
    bound: SuccessBound | Missing,
    rng: Entropy,
    progress: Progress,
) -> MeasuredAttack | Missing:
    chosen = wanted.settings_of(kind)
    try:
        found = mount(
            kind, known, asked, collection, targets, settings=chosen, shuffles=wanted.trials, rng=rng,
            progress=lambda done, total: progress(f"{kind.label}: {collection.shuffler.label}", done, total),
        )  # fmt: skip
    except (UnsupportedError, DataError) as error:
        return Missing(str(error))
    votes = kind.weighed(collection.n, chosen)
    law = law_of(collection.randomizer, parts=asked.parts or PARTS)
    guessed = law.guessed_parts if isinstance(law, NumberLaw) else ""
    told = measured(found, votes=Missing(ALL_WEIGHED) if votes is None else votes, bound=bound)
    return replace(told, guessed=guessed)


def mount(
    kind: type[Attack],
    known: ColumnKnowledge,
    asked: ColumnKnowledge,
    collection: Collection,
    targets: Labels,
    *,
    settings: Mapping[str, Any],
    shuffles: int,
    randomizations: int = 1,
    rng: Entropy,
    progress: Tick = no_tick,
) -> AttackResult:
    """Learn of `known`, then attack these people again and again, beside the blind guess of who knows the columns."""
    randomizer, shuffler = collection.randomizer, collection.shuffler
    if isinstance(randomizer, NumericRandomizer) and not kind.guesses_numbers:
        raise UnsupportedError(f"{kind.label} is about answers of a list; the private column is a number")
    behind: dict[str, Any] = {}
    if collection.noise.hidden is None:
        attacker = kind.prepare(known, randomizer, shuffler, targets=targets, rng=rng, **settings)
    else:
        behind = {"noise": collection.noise, "crowd": collection.people}
        attacker = kind.behind(known, collection.noise, collection.people, targets=targets, **settings)
    found = run_attack(
        attacker, randomizer, collection.survey.values, shuffler, truth=asked.survey.values, **behind,
        shuffles=shuffles, randomizations=randomizations, rng=rng, progress=progress,
    )  # fmt: skip
    return replace(found, chance=blind_guess(asked, targets))


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
        bound_by=bound if isinstance(bound, Missing) else bound.told,
    )


# An attack on a table whose truth is known: the collection, who is attacked, and what the attacker knows.


_ROW = "row"


def in_options(text: str) -> str:
    """A fault in the words of options, where nobody has written [data]."""
    for old, new in (
        (', or set `duplicates` in [data] to "first" or "last"', ""), ("set clip = true in [data]", "give --clip"),
        ("`decimal`, `thousands` and `units` in [data], or --decimal, say", "--decimal says"),
        ("`public`, `person` and `time`", "--person, --similar and the groups"),
        ("`data.private`", "--private"), ("`data.person`", "--person"), ("`data.public`", "--similar and the groups"),
        ("declare `lower` and `upper` in [data]", "give --lower and --upper"),
        (" in [data]", ""), ("[data] ", ""),
    ):  # fmt: skip
        text = text.replace(old, new)
    return text


@mute
@dataclass(frozen=True, eq=False)
class AttackExperiment:
    """A collection under attack.

    Parameters
    ----------
    collection : Collection
    similar : column names
        What the attacker knows besides the columns of the groups.
    reach : float, optional
        r*, within which the attacker looks, where it is not the radius of the groups.
    """

    collection: Collection
    similar: list[str]
    reach: float | None = None

    @classmethod
    def of(
        cls, path: str, *, private: str, person: str | None, similar: list[str], randomize: RandomizeSection,
        shuffle: ShuffleSection, reach: float | None = None, values: Mapping[str, Any] | None = None,
        beside: Sequence[str] = (), read: Read = READ_TABLE, rng: Entropy,
    ) -> Self:  # fmt: skip
        """Read the table and build everything.

        Parameters
        ----------
        values : keys of [data] that say what may be held: the range of numbers, or categories; those of the table
        beside : public columns to keep besides
        read : how the table is read
        """
        table = read(path)
        if person is None:
            if _ROW in table.columns:
                raise ParameterError(f"{path}: has a column {_ROW!r}; name the column of people with --person.")
            table, person = table.with_row_index(_ROW, offset=1), _ROW
        public = [name for name in dict.fromkeys([*shuffle.columns, *similar, *beside]) if name != person]
        data = {"private": private, "person": person, "public": public, **(values or {})}
        asked = {"schema_version": 1, "mode": "rehearsal", "data": data, "randomize": randomize, "shuffle": shuffle}
        try:
            settings = parse_section(RunConfig, asked, name="options")
        except ConfigError as error:
            raise ConfigError(in_options(str(error))) from None
        near = shuffle.groups
        if reach is not None and (near is None or near.nearest is not None or not near.by_values):
            raise ParameterError("--reach goes with groups of --labels, or of --points with --radius.")
        try:
            return cls(build_collection(settings, rng, table=table), similar, reach)
        except DataError as error:
            raise DataError(in_options(str(error))) from None

    @property
    def randomizer(self) -> FrequencyRandomizer | NumericRandomizer:
        """The randomizer of each value."""
        return self.collection.randomizer

    @property
    def names(self) -> pl.Series:
        """Of the people (n,), in the order of the collection; row numbers from 1 where the table names nobody."""
        return self.collection.survey.people.to_series()

    def knowledge(self, seen: Any = None) -> ColumnKnowledge:
        """Knowledge of the attacker about everybody; `seen` is a released batch to learn from."""
        groups = self.collection.groups
        if groups is not None and self.reach is not None:
            groups = groups.model_copy(update={"radius": self.reach})
        return ColumnKnowledge(self.collection.survey, groups, self.similar, seen=seen)

    def places_of(self, people: list[str]) -> NDArray[np.int64]:
        """Where the named people stand in the collection."""
        found = pl.Series(people).replace_strict(
            self.names.cast(pl.String), range(self.collection.n), default=None, return_dtype=pl.Int64
        )
        if found.null_count():
            raise DataError(f"nobody is called {people[int(found.is_null().arg_true()[0])]!r}; see --person.")
        return found.to_numpy().astype(np.int64)


# How much about public groups can be learned from the order of a release: between no shuffle and a full one.


DRAWS = 10


def learnability(
    wanted: EstimateSection,
    survey: Survey,
    randomizer: FrequencyRandomizer | NumericRandomizer,
    shufflers: Sequence[Shuffler],
    rng: Entropy,
) -> dict[str, list[Learnability] | Missing]:
    r"""For each shuffler the error of local estimates by each column of [estimate] by, in units of the uniform guess.

    .. math:: \lambda = \frac{\sum_i \mathrm{TV}(E(t_i), \hat p(t_i))}{\sum_i \mathrm{TV}(E(t_i), (1/k, .., 1/k))}

    The estimate of a group counts the reports at its places and takes the known noise away; it knows nothing of the
    shuffle. Groups below `min_group_size` are left out. Means over a few releases, the same for every shuffler.

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, section 5: lambda(r).
    """
    names = [shuffler.name for shuffler in shufflers]
    if not isinstance(randomizer, FrequencyRandomizer):
        return dict.fromkeys(names, Missing("learnability is about shares; the private column is a number"))
    if not wanted.by:
        return dict.fromkeys(names, Missing("no grouping column was asked for: list it in [estimate] by"))
    orders: dict[str, Shuffler] = {"identity": Identity(survey.n), "uniform": Uniform(survey.n)}
    orders |= {shuffler.name: shuffler for shuffler in shufflers}
    found: dict[str, list[Learnability]] = {name: [] for name in names}
    reasons = []
    for by in wanted.by:
        groups = _Groups.of(survey, by, wanted.min_group_size)
        try:
            errors = _errors(groups, survey, randomizer, orders, rng)
        except UnsupportedError as error:
            reasons.append(f"by {by!r}: {error}")
            continue
        ends = {name: errors[name] for name in ("identity", "uniform")}
        for name in names:
            found[name].append(Learnability(by, errors[name], **ends, groups=groups.count, draws=DRAWS))
    return {name: entries or Missing("; ".join(reasons)) for name, entries in found.items()}


@mute
@dataclass(frozen=True, eq=False)
class _Groups:
    """Places that count: those of groups that are large enough."""

    here: NDArray[np.bool_]  # (n,)
    group: NDArray[np.int64]  # (places that count,)
    count: int

    @classmethod
    def of(cls, survey: Survey, by: str, least: int) -> _Groups:
        codes = survey.public[by].cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1
        large = np.bincount(codes) >= least
        here = large[codes]
        return cls(here, (np.cumsum(large) - 1)[codes[here]], int(large.sum()))


def _errors(
    groups: _Groups, survey: Survey, randomizer: FrequencyRandomizer, orders: Mapping[str, Shuffler], rng: Entropy
) -> dict[str, float]:
    if groups.count == 0:
        raise UnsupportedError("no group is as large as min_group_size")
    counts = np.zeros((groups.count, randomizer.k))
    np.add.at(counts, (groups.group, survey.values[groups.here]), 1.0)
    truth = (counts / counts.sum(axis=1, keepdims=True))[groups.group]
    total = dict.fromkeys(orders, 0.0)
    for _ in range(DRAWS):
        reports = randomizer.randomize(survey.values, rng)
        for name, order in orders.items():
            laws = local_shares(randomizer, order.shuffle(reports, rng)[groups.here], groups.group)
            total[name] += local_error(laws, truth)
    return {name: error / DRAWS for name, error in total.items()}


def local_shares(randomizer: FrequencyRandomizer, reports: Reports, groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Law of the value at each place (n, k): of the reports at the places of its group, the noise taken away.

    `Debiased(GroupShares(..))`, for every randomizer.
    """
    tally = GroupedEstimator.of_shares(randomizer, int(groups.max()) + 1).tally(reports, groups)
    return project_shares(randomizer.invert(tally.counts, tally.n))[groups]
