"""From the configuration to the objects of each stage."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.account.dummies import user_dummies_for
from dovetail.core.entropy import Entropy, simulation, system_entropy
from dovetail.core.errors import ConfigError, DataError, ParameterError
from dovetail.core.stages import SHUFFLERS, FrequencyRandomizer, NumericRandomizer, PublicData, Shuffler
from dovetail.job.collection import Collection, EpsilonClasses, Fit, Origin
from dovetail.job.config import GroupsSection, RandomizeSection, RunConfig, ShuffleSection, files_of
from dovetail.plan.dummies import mean_dummies
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.neighbours import refuse_rounded_apart
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies
from dovetail.table.data_section import DataSection, FileFormat, Section, Spellings
from dovetail.table.reader import Survey, read_survey

Points = NDArray[np.float64]  # (n, d)

# what [data] says about the file itself: the ledger knows tables by what is read from them, and no report repeats
# spellings, which can tell who wrote what
READ_OFF = {"categories", "lower", "upper", "grid"}  # keys of [data] that a check reads off the private column
UNPUBLISHED = {"path", "table", "duplicates", "unconfirmed", *FileFormat.model_fields, *Spellings.model_fields}


class Seeded(Protocol):
    """A configuration that may name a seed."""

    @property
    def seed(self) -> int | None: ...


def build_collection(settings: RunConfig, rng: Entropy, *, table: Any = None) -> Collection:
    """The collection that a configuration describes; its table is read, checked and put into a random order."""
    survey = read_survey(settings.data, rng, table=table, numbers=settings.numbers, compared=settings.attack.similar)
    honest = settings.promise.honest
    if honest is not None and honest > survey.n:
        raise ConfigError(f"`promise.honest` must be at most the {survey.n:,} people of the table, got {honest:,}.")
    randomizer = build_randomizer(settings.randomize, settings.data, survey.categories)
    fit = fit_of(settings.shuffle, survey.n)
    dummies = build_dummies(settings, survey.categories, n=survey.n)
    if survey.categories is None and dummies is not None:
        randomizer = open_numbers(settings.data, dummies)
    classes = build_classes(settings.randomize, survey.categories)
    if classes is not None:
        classes.refuse_misspelled(survey.public)
    return Collection(
        survey,
        randomizer,
        fit,
        settings.shuffle.groups,
        delta=settings.promise.delta,
        dummies=dummies,
        classes=classes,
        honest=honest,
        private=settings.data.private,
        title=settings.title or "",
        inferred=_inferred(settings, survey),
        unconfirmed=tuple(settings.data.unconfirmed),
        asked=settings.model_dump(mode="json", exclude={"data": UNPUBLISHED, "seed": True}),
        provenance=rng.provenance,
        origin=Origin(terms(settings), randomizer, fit, dummies, classes),
    )


def _inferred(settings: RunConfig, survey: Survey) -> bool:
    """Whether categories or bounds come from the private column, by this run or by an unconfirmed check."""
    declared = survey.categories is None or settings.data.categories is not None
    return not declared or not READ_OFF.isdisjoint(settings.data.unconfirmed)


def fit_of(section: ShuffleSection, n: int, name: str = "") -> Fit:
    """How the shuffler of a section, or another one by its name, is fitted to public columns of n people."""
    return lambda public: build_shuffler(section, public_data(section, Survey.of(public), n=n), name=name)


def fit_beside(section: ShuffleSection, public: pl.DataFrame, *, n: int) -> Shuffler:
    """The shuffler of a section for the public columns that stand beside n reports."""
    for name in [] if section.groups is None else section.groups.columns:
        if name not in public.columns:
            raise ParameterError(f"column {name!r} does not stand beside the reports; there: {public.columns}.")
    return fit_of(section, n)(public)


def build_dummies(settings: RunConfig, categories: tuple[str, ...] | None, *, n: int) -> Dummies | UserDummies | None:
    """What the shuffler adds, where it is trusted with the noise, or what people send, where they are."""
    promise, k = settings.promise, len(categories or ())
    if promise.epsilon is None:
        return None
    honest = n if promise.honest is None else promise.honest
    try:
        if settings.data.numeric:
            span = (float(settings.data.lower or 0.0), float(settings.data.upper or 0.0))
            return mean_dummies(
                promise.trust, n=n, honest=honest, span=span, grid=settings.data.grid,
                epsilon=promise.epsilon, delta=promise.delta,
            )  # fmt: skip
        if promise.trust == "users":
            return user_dummies_for(k=k, epsilon=promise.epsilon, delta=promise.delta, honest=honest)
        return Dummies(k, promise.epsilon, promise.delta)
    except ParameterError as error:
        raise ConfigError(f"[promise] {error}") from None


def open_numbers(data: DataSection, dummies: Dummies | UserDummies) -> OpenNumbers:
    """What every device runs where others are trusted with the noise on a number: a point of the dummies' grid."""
    return OpenNumbers(float(data.lower or 0.0), float(data.upper or 0.0), dummies.k)


def build_classes(asked: RandomizeSection | None, categories: tuple[str, ...] | None) -> EpsilonClasses | None:
    """Who has which epsilon, where a public column says so."""
    if asked is None or asked.by is None:
        return None
    return EpsilonClasses(len(categories or ()), asked.by, asked.epsilons, asked.epsilon)


def build_randomizer(
    asked: RandomizeSection | None, data: DataSection, categories: tuple[str, ...] | None
) -> FrequencyRandomizer | NumericRandomizer:
    """The randomizer that every device runs: of the categories, or of a number in the declared range."""
    if asked is None:
        return OpenAnswers(max(2, len(categories or ())))  # of numbers the grid comes with the dummies
    kind: Any = asked.kind
    numeric = {"lower": data.lower, "upper": data.upper, "grid": data.grid}
    domain: dict[str, Any] = numeric if categories is None else {"k": len(categories)}
    question = "mean" if categories is None else "frequency"
    if kind.question != question:
        raise ConfigError(f"randomizer {kind.name!r} is for the question {kind.question}, not for a {question}.")
    try:
        randomizer: FrequencyRandomizer | NumericRandomizer = kind(
            **domain, epsilon=max(asked.epsilon, *asked.epsilons.values(), 0.0), **asked.settings_of(kind)
        )
    except ParameterError as error:
        raise ConfigError(f"[randomize] {error}") from None
    return randomizer


def build_groups(section: GroupsSection, survey: Survey) -> Groups:
    """Groups from public columns; labels that are no numbers can only be equal."""
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


def build_shuffler(section: ShuffleSection, public: PublicData, *, name: str = "") -> Shuffler:
    """The shuffler of a section, or another one by its name, fitted to public data."""
    kind = SHUFFLERS[name or section.shuffler]
    return kind.from_public(public, alpha=section.alpha, **section.settings_of(kind))


def public_data(section: ShuffleSection, survey: Survey, *, n: int, graph: Any = None) -> PublicData:
    """What a shuffler may be fitted to."""
    groups = None if section.groups is None else build_groups(section.groups, survey)
    return PublicData(n, groups, public_points(section.groups, survey), graph)


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
    data = settings.data.model_dump(mode="json", exclude=UNPUBLISHED)
    asked, shuffle = settings.randomize, settings.shuffle
    files = files_of(shuffle)
    chosen: dict[str, Any] = {
        "data": data,
        "randomize": {
            **dict.fromkeys(("beta", "rho", "precision")), **_set_by_hand(asked),
            "randomizer": asked.randomizer, "epsilon": asked.epsilon,
        } if asked is not None else None,
        "shuffle": {
            **dict.fromkeys(("refine", "k")), **{k: v for k, v in _set_by_hand(shuffle).items() if k not in files},
            **shuffle.model_dump(mode="json", include={"shuffler", "alpha", "groups", "compare"}),
        },
        "promise": {"cap": settings.promise.cap, **_set_by_hand(settings.promise, "spread")},
    }  # fmt: skip
    if settings.promise.trust != "local":
        chosen["promise"] |= settings.promise.model_dump(mode="json", include={"trust", "epsilon", "delta"})
    if settings.promise.trust == "users":
        chosen["promise"]["honest"] = settings.promise.honest  # decides how many dummies each person sends
    read = {name: path for name, path in files.items() if path and name not in files_of(shuffle, of_streams=True)}
    digests = [_digest(path) for path in read.values()]  # a stream's are read with it
    return json.dumps(chosen, sort_keys=True).encode() + b"".join(digests)


def _digest(path: str) -> bytes:
    try:
        return sha256(Path(path).read_bytes()).digest()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or 'cannot be read'}.") from error


def _set_by_hand(section: Section, *names: str) -> dict[str, Any]:
    """What a section sets, of these names or at all."""
    return section.model_dump(mode="json", include=section.model_fields_set & set(names or section.model_fields_set))
