"""From the configuration to the objects of each stage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dovetail.account.compose import PATTERN
from dovetail.account.dummies import dummies_for_rounds, sparse_for_rounds, user_dummies_for
from dovetail.account.gaussian_dummies import Message, message_for
from dovetail.core.checks import nearest
from dovetail.core.display import counted
from dovetail.core.entropy import Entropy, simulation, system_entropy
from dovetail.core.errors import ConfigError, DataError, ParameterError, UnsupportedError
from dovetail.core.extras import pl
from dovetail.core.noise import DOUBT, Noise, People, fewest_drawn
from dovetail.core.question import Question
from dovetail.core.stages import SHUFFLERS, FrequencyRandomizer, NumericRandomizer, PublicData, Shuffler
from dovetail.job.collection import AnyDummies, Collection, Fit, Origin, noise_of
from dovetail.job.config import GroupsSection, PromiseSection, RandomizeSection, RunConfig, ShuffleSection, files_of
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.local import Local
from dovetail.noise.memoized import Memoized
from dovetail.noise.shuffler import DummyNoise
from dovetail.plan.dummies import grid_points, mean_dummies
from dovetail.question.number import Number
from dovetail.question.shares import Shares
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.fitting.components import FitProvenance
from dovetail.shuffle.fitting.fitted_shuffler import restrict_groups
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.neighbours import refuse_rounded_apart
from dovetail.shuffle.sampling.dummies import MOST_DUMMIES, SeveralDummies
from dovetail.shuffle.uniform import Uniform
from dovetail.table.arrays import read_arrays
from dovetail.table.data_section import DataSection, FileFormat, Section, Spellings
from dovetail.table.reader import Survey, as_text, read_pairs, read_survey, refuse_duplicates, table_of
from dovetail_protocol.checks import number_range

COMBINED = 'all answers in one report are {k:,} combinations, each with dummies of its own (use `ask` = "all")'
Points = NDArray[np.float64]  # (n, d)

# what [data] says about the file itself: the ledger knows tables by what is read from them, and no report repeats
# spellings, which can tell who wrote what
READ_OFF = {"categories", "lower", "upper", "grid"}  # keys of [data] that a check reads off the private column
UNPUBLISHED = {"path", "table", "duplicates", "unconfirmed", *FileFormat.model_fields, *Spellings.model_fields}


class Seeded(Protocol):
    """A configuration that may name a seed."""

    @property
    def seed(self) -> int | None: ...


def build_collection(settings: RunConfig, rng: Entropy, *, table: Any = None, chance: float = 1.0) -> Collection:
    """The collection that a configuration describes; its table is read, checked and put into a random order.

    Each person is asked with this `chance`.
    """
    asked = None if settings.question.ask is None else build_question(settings, settings.data.categories)
    rounds, memoize = None, settings.memoize
    if memoize is not None and memoize.time is not None:
        further = () if asked is None else tuple(asked.further)
        table, rounds = constant_rows(settings.data, table, time=memoize.time, further=further)
    if asked is not None and asked.of_arrays:
        if settings.randomize is not None:
            build_randomizer(settings.randomize, asked)  # refuses what cannot be made before a large table is read
        survey = read_arrays(settings.data, rng, dimension=asked.domain["d"], table=table, numbers=settings.numbers)
    else:
        survey = read_survey(
            settings.data, rng, table=table, numbers=settings.numbers, compared=settings.attack.similar,
            further=None if asked is None else asked.further,
        )  # fmt: skip
    refuse_honest(settings, survey.n)
    honest = settings.promise.honest
    question = build_question(settings, survey.categories)
    noise = build_noise(settings, question, n=survey.n, rounds=rounds, chance=chance)
    fit, groups = fit_of(settings.shuffle, survey.n, people=survey.people), settings.shuffle.groups
    origin = Origin(terms(settings), question, noise, fit)
    if groups is not None:  # a report repeats names of files, and no folder of this machine
        told = {"groups": groups.with_files(lambda path: Path(path).name)}
        settings = settings.model_copy(update={"shuffle": settings.shuffle.model_copy(update=told)})
    return Collection(
        survey,
        question,
        noise,
        fit,
        groups,
        delta=settings.promise.delta,
        honest=honest,
        private=settings.data.private,
        title=settings.title or "",
        inferred=_inferred(settings, survey),
        unconfirmed=tuple(settings.data.unconfirmed),
        asked=settings.published(UNPUBLISHED),
        provenance=rng.provenance,
        origin=origin,
    )


def refuse_honest(settings: RunConfig, n: int) -> None:
    """ConfigError for more honest people than there are."""
    honest, place = settings.promise.honest, "promise" if settings.vector is None else "vector"
    if honest is not None and honest > n:
        raise ConfigError(f"`{place}.honest` must be at most the {n:,} people of the table, got {honest:,}.")


def build_question(settings: RunConfig, categories: Sequence[str] | None) -> Question:
    """The question about the private column."""
    kind, section = settings.question_kind, settings.question
    try:
        return kind.of(settings.data, categories, **({} if section.ask is None else section.settings_of(kind)))
    except ParameterError as error:
        raise ConfigError(f"[question] {error}") from None


def build_noise(
    settings: RunConfig, question: Question, *, n: int, rounds: int | None = None, chance: float = 1.0
) -> Noise:
    """The noise that hides answers to a question, in so many rounds where people send the same in all.

    Each of n people is asked with this `chance`.
    """
    once = _noise(settings, question, n=n, chance=chance)
    return once if settings.memoize is None else Memoized(once, rounds)


def build_noises(
    each: Sequence[RunConfig], questions: Sequence[Question], *, n: int, ask: str, chances: Sequence[float]
) -> tuple[Noise, ...]:
    """The noise of each of several questions, which n people are asked with these chances.

    Where answers travel together among dummies it is a marginal of that of their combinations.
    """
    if ask == "joint" and each[0].promise.trust != Local.trust:
        own = [short_answer(settings, question) for settings, question in zip(each, questions, strict=True)]
        whole = _combined(each[0], own, n=n)
        return tuple(whole.marginal(one) for one in own)
    every = zip(each, questions, chances, strict=True)
    return tuple(build_noise(settings, question, n=n, chance=chance) for settings, question, chance in every)


def open_answer(question: Question, *, points: int) -> OpenAnswers | OpenNumbers:
    """What a device makes of an answer that stands in a combination; of a number one of so many `points`."""
    if question.needs != "mean":
        return OpenAnswers(question.domain["k"])
    return OpenNumbers(*(question.span or (0.0, 0.0)), points)


def short_answer(settings: RunConfig, question: Question) -> OpenAnswers | OpenNumbers:
    """The same with a list as short as it may be."""
    if question.symbols > 1:
        raise ConfigError(
            f"{settings.data.private!r}: {question.label} takes {question.symbols} symbols of a person, each mixed "
            'by itself, and all answers in one report stay together; use `ask` = "all".'
        )
    if question.needs != "mean" or settings.data.grid is None:
        return open_answer(question, points=2)
    low, high, step = number_range(*(question.span or (0.0, 0.0)), settings.data.grid)
    return open_answer(question, points=grid_points(low, high, step or high - low))


def _combined(settings: RunConfig, own: Sequence[OpenAnswers | OpenNumbers], *, n: int) -> DummyNoise:
    """The noise of reports that are combinations of answers, each with dummies of its own."""
    promise = settings.promise
    k = prod(one.points if isinstance(one, OpenNumbers) else one.k for one in own)
    try:
        dummies = list_dummies(promise, k, honest=n if promise.honest is None else promise.honest)
        made = noise_of(OpenAnswers(k), dummies, rounds=promise.rounds)
        assert isinstance(made, DummyNoise)
    except ParameterError as error:
        raise ConfigError(f"[promise] {COMBINED.format(k=k)}: {error}") from None
    if made.most_added(People(n)) > MOST_DUMMIES + n:
        raise ConfigError(f"[promise] {COMBINED.format(k=k)}, and a batch has {MOST_DUMMIES:,} at most.")
    return made


def _noise(settings: RunConfig, question: Question, *, n: int, chance: float) -> Noise:
    """As [promise] trust and [randomize] say."""
    asked, trust = settings.randomize, settings.promise.trust
    if trust == "local" and asked is not None:
        if asked.by is not None:
            return EpsilonClasses(question.domain["k"], asked.by, asked.epsilons, asked.epsilon)
        return _noise_of(build_randomizer(asked, question), None, question)
    dummies = build_dummies(settings, question, n=n, chance=chance)
    own = OpenAnswers(2) if asked is None else build_randomizer(asked, question)
    if asked is None and not isinstance(dummies, Message):
        own = OpenAnswers(dummies.k)
    if question.needs == "mean":
        points = 3 ** len(dummies.weights) if isinstance(dummies, Message) else dummies.k
        own = OpenNumbers(*(question.span or (0.0, 0.0)), points)
    return _noise_of(own, dummies, question, rounds=settings.promise.rounds)


def _noise_of(
    own: FrequencyRandomizer | NumericRandomizer, dummies: AnyDummies | None, question: Question, rounds: int = 1
) -> Noise:
    try:
        return noise_of(own, dummies, symbols=question.symbols, rounds=rounds)
    except ParameterError as error:
        raise ConfigError(f"[question] {error}") from None


def _inferred(settings: RunConfig, survey: Survey) -> bool:
    """True if categories or bounds come from the private column, by this run or by an unconfirmed check."""
    declared = survey.categories is None or settings.data.categories is not None
    return not declared or not READ_OFF.isdisjoint(settings.data.unconfirmed)


def fit_of(section: ShuffleSection, n: int, name: str = "", people: pl.DataFrame | None = None) -> Fit:
    """How the shuffler of a section, or another one by its name, is fitted to public columns of n people.

    `people` (n, 0 or 1) are their names, for groups from files; they stand beside no report.
    """
    names = pl.DataFrame() if people is None else people
    return lambda public: build_shuffler(
        section, public_data(section, replace(Survey.of(public), people=names), n=n), name=name
    )


def fit_beside(section: ShuffleSection, public: pl.DataFrame, *, n: int) -> Shuffler:
    """The shuffler of a section for the public columns that stand beside n reports."""
    for name in section.columns:
        if name not in public.columns:
            raise ParameterError(f"column {name!r} does not stand beside the reports; there: {public.columns}.")
    return fit_of(section, n)(public)


def build_dummies(settings: RunConfig, question: Question, *, n: int, chance: float = 1.0) -> AnyDummies:
    """Dummies of the shuffler, where it is trusted with the noise, or of people, where they are.

    Of n people each is asked with this `chance`, and people's dummies are enough for the fewest who are.
    """
    promise, epsilon = settings.promise, settings.promise.epsilon
    assert epsilon is not None  # checked by the section
    honest = n if promise.honest is None else promise.honest
    if chance < 1.0:
        n = max(1, round(n * chance))
        if promise.trust == "users":
            doubt = DOUBT * promise.delta
            honest = fewest_drawn(honest, chance, doubt)
            promise = promise.model_copy(update={"delta": promise.delta - doubt})
    try:
        if question.needs == "mean":
            return mean_dummies(
                promise.trust, n=n, honest=honest, span=question.span or (0.0, 0.0), grid=settings.data.grid,
                epsilon=epsilon, delta=promise.delta, dummies=promise.dummies, rounds=promise.rounds,
            )  # fmt: skip
        if promise.dummies == "gaussian" and promise.trust == "shuffler" and len(set(question.precisions)) > 1:
            message = message_for(
                weights=question.precisions, epsilon=epsilon, delta=promise.delta, rounds=promise.rounds
            )
            return SeveralDummies(message.laws, question.lists)
        return list_dummies(promise, question.domain["k"], honest=honest, symbols=question.symbols)
    except ParameterError as error:
        raise ConfigError(f"[promise] {error}") from None


def list_dummies(promise: PromiseSection, k: int, *, honest: int, symbols: int = 1) -> AnyDummies:
    """Dummies of k answers, of which each person sends so many `symbols`."""
    assert promise.epsilon is not None
    epsilon, delta = promise.epsilon, promise.delta
    if promise.trust == "users":
        return user_dummies_for(k=k, epsilon=epsilon, delta=delta, honest=honest, symbols=symbols)
    if promise.dummies == "sparse":
        return sparse_for_rounds(k=k, epsilon=epsilon, delta=delta, rounds=symbols)
    return dummies_for_rounds(k=k, epsilon=epsilon, delta=delta, rounds=promise.rounds * symbols, law=promise.dummies)


def randomizer_of_data(
    asked: RandomizeSection | None, data: DataSection, categories: tuple[str, ...] | None
) -> FrequencyRandomizer | NumericRandomizer:
    """The randomizer for the column of a section [data], where nothing else is asked about it."""
    if asked is None:
        return OpenAnswers(max(2, len(categories or ())))
    return build_randomizer(asked, Shares(categories) if categories is not None else Number.of(data, None))


def build_randomizer(asked: RandomizeSection, question: Question) -> FrequencyRandomizer | NumericRandomizer:
    """The randomizer that every device runs, for the answers to a question."""
    kind: Any = asked.kind
    if kind.question != question.needs:
        raise ConfigError(f"randomizer {kind.name!r} is for the question {kind.question}, not for {question.label}.")
    try:
        randomizer: FrequencyRandomizer | NumericRandomizer = kind(
            **question.domain, epsilon=max(asked.epsilon, *asked.epsilons.values(), 0.0), **asked.settings_of(kind)
        )
    except ParameterError as error:
        raise ConfigError(f"[{'vector' if question.of_arrays else 'randomize'}] {error}") from None
    return randomizer


def build_groups(section: GroupsSection, survey: Survey) -> Groups:
    """Groups from public columns; labels that are no numbers can only be equal."""
    if section.also:
        return Groups.union(*(build_groups(one.model_copy(update={"also": []}), survey) for one in section.kinds))
    if section.ids is not None:
        named = survey.public if section.ids in survey.public.columns else survey.people
        return _groups_by_names(section, named[section.ids])
    if section.labels is None:
        points = survey.numbers(section.columns)
        if section.nearest is not None:
            return Groups.nearest(points, section.nearest)
        assert section.radius is not None
        return Groups.within_radius(points, section.radius)
    if section.radius:
        return Groups.from_labels(survey.numbers([section.labels])[:, 0], radius=section.radius)
    text = survey.public[section.labels].cast(pl.String)
    refuse_rounded_apart(text.unique().to_numpy())
    return Groups.from_labels(text.rank("dense").to_numpy())


def _groups_by_names(section: GroupsSection, people: pl.Series) -> Groups:
    """Groups from a file that names people: of a list, or the neighbourhoods of a network."""
    place = str(section.lists if section.edges is None else section.edges)
    refuse_duplicates(people)
    pairs = read_pairs(place)
    people = people.cast(pl.String)
    others = pl.concat(list(pairs) if section.edges is not None else [pairs[:, 1]]).unique(maintain_order=True)
    names = pl.concat([people.alias("name"), others.filter(~others.is_in(people.to_list())).alias("name")])
    if not others.is_in(people.to_list()).any():
        raise DataError(f"{place}: names nobody of the column {people.name!r}, such as {others[0]!r}.")
    number = [column.replace_strict(names, range(len(names)), default=-1).to_numpy() for column in pairs]
    if section.edges is None:
        rows = pl.DataFrame({"group": pairs[:, 0], "person": number[1]}).unique(maintain_order=True)
        lists = rows.group_by("group", maintain_order=True).agg("person")["person"].to_list()
        whole = Groups.from_lists(lists, len(names))
    else:
        whole = Groups.from_graph(np.column_stack(number), hops=section.hops or 1, n=len(names))
    here = np.arange(len(names)) < len(people)
    return whole if here.all() else restrict_groups(whole, here, FitProvenance())[0]


def build_shuffler(section: ShuffleSection, public: PublicData, *, name: str = "") -> Shuffler:
    """The shuffler of a section, or another one by its name, fitted to public data."""
    kind = SHUFFLERS[name or section.shuffler]
    return kind.from_public(public, alpha=section.alpha, **section.settings_of(kind))


def public_data(section: ShuffleSection, survey: Survey, *, n: int, graph: Any = None) -> PublicData:
    """The public data that a shuffler may be fitted to."""
    groups = None if section.groups is None else build_groups(section.groups, survey)
    columns = {name: survey.numbers([name])[:, 0] for name in section.named_columns.values()}
    return PublicData(n, groups, public_points(section.groups, survey), graph, columns)


def public_points(section: GroupsSection | None, survey: Survey) -> Points | None:
    """The coordinates that groups of points are made of, for shufflers that can use them."""
    if section is None or section.points is None:
        return None
    return survey.numbers(section.points)


def fresh(config: Seeded) -> Entropy:
    """The door to randomness that this run goes through."""
    return system_entropy() if config.seed is None else simulation(config.seed)


def terms(settings: RunConfig) -> bytes:
    """Everything that shapes the reports; estimates and promises are read off afterwards and may change.

    The form is that of the ledgers there are: what was not set stands as null, new settings only where they are set.
    """
    if settings.vector is not None and settings.shuffle.shuffler == Uniform.name:  # as ledgers have known it
        return b"vector" + settings.vector.model_dump_json(exclude={"delta", "honest"}).encode()
    data = settings.data.model_dump(mode="json", exclude=UNPUBLISHED)
    for key in ("clip", "ranges"):
        if not data[key]:
            del data[key]
    question = {} if settings.question.ask is None else {"question": settings.question.model_dump(mode="json")}
    asked, shuffle = settings.randomize, settings.shuffle
    files, groups = files_of(shuffle), shuffle.groups
    chosen: dict[str, Any] = {
        **question,
        "data": data,
        "randomize": {
            **dict.fromkeys(("beta", "rho", "precision")), **_set_by_hand(asked),
            "randomizer": asked.randomizer, "epsilon": asked.epsilon,
        } if asked is not None else None,
        "shuffle": {
            **dict.fromkeys(("refine", "k")), **{k: v for k, v in _set_by_hand(shuffle).items() if k not in files},
            **shuffle.model_dump(mode="json", include={"shuffler", "alpha", "compare"}),
            "groups": None if groups is None else groups.with_files(digest_of).model_dump(mode="json"),
        },
        "promise": {"cap": settings.promise.cap, **_set_by_hand(settings.promise, "spread")},
    }  # fmt: skip
    if settings.promise.trust != "local":
        chosen["promise"] |= settings.promise.model_dump(mode="json", include={"trust", "epsilon", "delta"})
        chosen["promise"] |= _set_by_hand(settings.promise, "dummies", "rounds")
    if settings.promise.trust == "users":
        chosen["promise"]["honest"] = settings.promise.honest  # decides how many dummies each person sends
    read = {name: path for name, path in files.items() if path and name not in files_of(shuffle, of_streams=True)}
    digests = [_digest(path) for path in read.values()]  # a stream's are read with it
    return json.dumps(chosen, sort_keys=True).encode() + b"".join(digests)


def digest_of(path: str) -> str:
    """Digest of a file that shapes the reports, for the ledger."""
    return _digest(path).hex()


def _digest(path: str) -> bytes:
    try:
        return sha256(Path(path).read_bytes()).digest()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or 'cannot be read'}.") from error


def _set_by_hand(section: Section, *names: str) -> dict[str, Any]:
    """The keys that a section sets, of these names or of all."""
    return section.model_dump(mode="json", include=section.model_fields_set & set(names or section.model_fields_set))


# A table of rounds in which nobody's values change: one row for each person, and how many rounds there are.


def constant_rows(data: DataSection, table: Any, *, time: str, further: Sequence[str] = ()) -> tuple[Any, int]:
    """A row for each person, and the number of rounds that everybody took part in.

    Parameters
    ----------
    data : DataSection
        `person` names people, `private` and `public` are columns that must not change.
    time : str
        The column of rounds.
    further : sequence of str
        Private columns beside the first one.

    Raises
    ------
    DataError
        For a column that is not there, and a person who stands in a round twice.
    UnsupportedError
        Where a value or a public column changes, and where somebody is missing in a round.
    """
    assert data.person is not None  # the configuration has been checked
    private = [data.private, *further]
    frame = table_of(data, table)
    for name in (time, data.person, *private, *data.public):
        if name not in frame.columns:
            raise DataError(f"the table has no column {name!r}{nearest(name, frame.columns)}.")
    held = [*private, *data.public]
    named = enumerate((data.person, time, *held))  # columns by their places: a table may use any name
    plain = frame.select(_as_text(frame[name]).alias(f"{place}") for place, name in named)
    twice = plain.select("0", "1").is_duplicated()
    if twice.any():
        who, when, *_ = plain.row(int(twice.arg_true()[0]))
        raise DataError(f"{who!r} stands in round {when!r} more than once.")
    changes = (pl.col(name).n_unique() for name in plain.columns[2:])
    people = plain.group_by("0", maintain_order=True).agg(pl.len().alias("rounds"), *changes)
    for place, name in enumerate(held, 2):
        _refuse_changed(name, people.filter(pl.col(f"{place}") > 1)["0"], private=name in private)
    rounds = plain["1"].n_unique()
    absent = people.filter(pl.col("rounds") < rounds)["0"]
    if len(absent):
        raise UnsupportedError(
            f"[memoize] {len(absent):,} of {people.height:,} people {'is' if len(absent) == 1 else 'are'} not in "
            f"all {rounds:,} rounds, such as "
            f"{absent[0]!r}: each is hidden only among those who take part in the same rounds. Run each such set of "
            "people by itself, or leave these people out by a rule that does not depend on values."
        )
    return frame.unique(subset=[data.person], keep="first", maintain_order=True).drop(time), rounds


def _as_text(column: Any) -> Any:
    return (
        pl.Series(column.name, [repr(row) for row in column.to_list()])
        if column.dtype.is_nested()
        else as_text(column)
    )


def _refuse_changed(name: str, who: Any, *, private: bool) -> None:
    if not len(who):
        return
    whose = counted(len(who), "person", "people")
    what = f"[memoize] column {name!r} changes over rounds for {whose}, such as {who[0]!r}"
    if private:
        raise UnsupportedError(
            f"{what}: memoized answers promise nothing then. {PATTERN} Freeze the first value, or run the rounds "
            "without [memoize], with fresh noise whose budgets compose."
        )
    raise UnsupportedError(f"{what}: who is grouped with whom must be the same in every round.")
