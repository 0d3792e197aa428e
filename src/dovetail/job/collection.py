"""A collection: people's encoded values beside public columns, and what randomizes and shuffles them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from typing import Any, Self, final
from uuid import uuid4

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.account.mixture import amplify_mixture
from dovetail.core.checks import probability, whole
from dovetail.core.display import Display, displayed_by, upward
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import ConfigError, ParameterError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.job.config import GroupsSection
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers, OpenNumbers
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies
from dovetail.shuffle.uniform import Uniform
from dovetail.table.data_section import DataSection, parse_section
from dovetail.table.reader import Survey, as_text, read_survey

# People whose epsilon is set by a public column: who randomizes how, and what each class is promised.


@final
@dataclass(frozen=True)
class EpsilonClasses:
    """k-ary randomized response with the epsilon of one's class; reports carry no class.

    Parameters
    ----------
    k : int
    column : str
        Public, and must not depend on the private value.
    epsilons : mapping from a text of the column to its epsilon
    default : float
        Epsilon of every other text.
    """

    k: int
    column: str
    epsilons: Mapping[str, float]
    default: float

    @property
    def largest(self) -> float:
        """Epsilon that nobody spends more than."""
        return max(self.default, *self.epsilons.values())

    def refuse_misspelled(self, public: pl.DataFrame) -> None:
        """ConfigError for an epsilon of nobody whose text is nearly that of people who would get the default."""
        held = public[self.column].cast(pl.String).unique().to_list()
        others = [text for text in held if text not in self.epsilons]
        for text in self.epsilons:
            near = [] if text in held else get_close_matches(text, others, n=1)
            if near:
                raise ConfigError(
                    f"[randomize] epsilons: nobody has {text!r} in column {self.column!r}; did you mean {near[0]!r}?"
                )

    def members(self, public: pl.DataFrame) -> tuple[tuple[float, NDArray[np.int64]], ...]:
        """Each epsilon that occurs, and the places of its people, from the smallest one on."""
        texts = public[self.column].cast(pl.String)
        own = np.array([self.epsilons.get(text, self.default) for text in texts.to_list()])
        return tuple((float(one), np.flatnonzero(own == one)) for one in np.unique(own))

    def classes(self, public: pl.DataFrame) -> list[tuple[int, KRR]]:
        """How many people use which randomizer."""
        return [(places.size, KRR(self.k, epsilon)) for epsilon, places in self.members(public)]

    def randomize(self, values: NDArray[np.int64], public: pl.DataFrame, rng: Entropy) -> Reports:
        """Reports in the order of the people."""
        reports = np.empty(len(values), dtype=np.int64)
        for epsilon, places in self.members(public):
            reports[places] = KRR(self.k, epsilon).randomize(values[places], rng)
        return reports

    def promises(
        self, public: pl.DataFrame, *, delta: float, honest: int | None
    ) -> tuple[tuple[float, int, CentralDP], ...]:
        """Epsilon0, people and guarantee of each class, whichever people are not honest."""
        found = self.members(public)
        if len(public) < 2:
            raise UnsupportedError("one person is shuffled with nobody: her local guarantee is all there is.")
        pairs = [(places.size, epsilon) for epsilon, places in found]
        trusted = len(public) if honest is None else min(honest, len(public))
        promised = amplify_mixture(self.k, pairs, delta=delta, honest=trusted)
        return tuple((epsilon, size, one) for (size, epsilon), one in zip(pairs, promised, strict=True))


Fit = Callable[[pl.DataFrame], Shuffler]


@dataclass(frozen=True, eq=False)
class Origin:
    """The configuration behind a collection: what of it shapes the reports, and the objects that it stands for."""

    terms: bytes
    randomizer: FrequencyRandomizer | NumericRandomizer
    fit: Fit
    dummies: Dummies | UserDummies | None = None
    classes: EpsilonClasses | None = None


def _show(collection: Collection) -> Display:
    categories = collection.survey.categories
    asked = "a number" if categories is None else f"one of {len(categories):,} answers"
    label = collection.randomizer.label
    what = f"{collection.n:,} people, private column {collection.private!r} ({asked}); values are not shown"
    return Display(
        brief=f"Collection of {what}\n{label}, epsilon {upward(collection.randomizer.guarantee.epsilon)}",
        title=f"Collection of {collection.n:,} people",
        facts=(
            ("private column", f"{collection.private}: {asked}; values are not shown"),
            ("public columns", ", ".join(collection.survey.public.columns) or "none"),
            ("randomizer", f"{label}, epsilon {upward(collection.randomizer.guarantee.epsilon)}"),
        ),
    )


@final
@displayed_by(_show)
@dataclass(frozen=True, eq=False)
class Collection:
    """Who answers what through which mechanism: what a release, a rehearsal and every attack start from.

    Made by `Collection.of` from a data frame and objects, or by `run` from a configuration.

    Parameters
    ----------
    survey : Survey
        Encoded values and public columns, in a random order.
    randomizer : FrequencyRandomizer or NumericRandomizer
    fit : function of the public columns (n, ..), optional
        The shuffler for the rows in this order. It sees public data alone. Without it the shuffle is uniform.
    groups : GroupsSection, optional
        Which public columns the groups are made of: what attackers know, and what an order guarantee is about.
    delta : float strictly between 0 and 1
        Of the central guarantee.
    dummies : Dummies or UserDummies, optional
        What the shuffler adds, where it is trusted with the noise, or what people send themselves.
    classes : EpsilonClasses, optional
        Who has which epsilon, where a public column says so; `randomizer` is that of the largest one then.
    honest : int, optional
        People assumed honest; all by default.
    private : str
        What the private column is called.
    title : str
    inferred : bool
        Whether categories or bounds were read off the private column, which only a rehearsal may do.
    unconfirmed : tuple of str
        Settings that a check of the table has read off it, and that nobody has confirmed.
    asked : mapping
        The configuration that it came from, for the report.
    provenance : "device" or "simulation"
        Where the random order of the rows came from; a release refuses a simulated one.
    origin : Origin, optional
        What a configuration says, for the ledger.

    Raises
    ------
    ParameterError
        For a randomizer not of these categories, a delta outside (0, 1) and more honest people than there are.
    DataError
        For a table that has not these columns, or values outside the domain.

    Examples
    --------
    >>> import dovetail as dt
    >>> table = pl.DataFrame({"answer": ["no", "yes"] * 50})
    >>> Collection.of(table, private="answer", categories=["no", "yes"], randomizer=dt.KRR(k=2, epsilon=1.0)).n
    100
    """

    survey: Survey
    randomizer: FrequencyRandomizer | NumericRandomizer
    fit: Fit | None = None
    groups: GroupsSection | None = None
    delta: float = 1e-6
    dummies: Dummies | UserDummies | None = None
    classes: EpsilonClasses | None = None
    honest: int | None = None
    private: str = "value"
    title: str = ""
    inferred: bool = False
    unconfirmed: tuple[str, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    provenance: str = "device"
    origin: Origin | None = None

    def __post_init__(self) -> None:
        probability("delta", self.delta)
        if self.honest is not None:
            whole("honest", self.honest, least=1, most=self.survey.n)
        if self.dummies is not None and not getattr(self.randomizer, "names_values", False):
            raise ParameterError("`dummies` need reports that are symbols: use dt.KRR, or no local noise.")
        if isinstance(self.dummies, UserDummies) and not isinstance(self.randomizer, OpenAnswers | OpenNumbers):
            raise ParameterError("`dummies` that people send go without local noise: nothing is promised of both.")

    @classmethod
    def of(
        cls,
        table: Any,
        *,
        private: str,
        randomizer: FrequencyRandomizer | NumericRandomizer,
        shuffler: Fit | None = None,
        public: Sequence[str] = (),
        person: str | None = None,
        categories: Sequence[str] | None = None,
        missing: str = "refuse",
        delta: float = 1e-6,
        dummies: Dummies | UserDummies | None = None,
        honest: int | None = None,
        title: str = "",
        rng: Entropy | None = None,
    ) -> Self:
        """A collection from a data frame and objects.

        Parameters
        ----------
        table : data frame
            Anything that speaks Arrow (polars, pandas, duckdb, pyarrow); its rows are put into a random order first.
        private, public, person : column names
            Columns that are not named are dropped.
        shuffler : function of the public columns, as a polars data frame; uniform without it
            Such as `lambda public: dt.WithinGroups(dt.Groups.from_labels(public["age"].to_numpy()))`.
        categories : texts, as many as the randomizer has symbols
            Inferred from the table if absent, which is for rehearsals only. None for numbers.
        missing : "refuse", or the category for missing values

        Examples
        --------
        >>> import dovetail as dt
        >>> table = pl.DataFrame({"answer": ["no", "yes"] * 50, "age": list(range(50)) * 2})
        >>> asked = Collection.of(
        ...     table, private="answer", public=["age"], categories=["no", "yes"],
        ...     randomizer=dt.KRR(k=2, epsilon=1.0),
        ...     shuffler=lambda public: dt.WithinGroups(dt.Groups.from_labels(public["age"].to_numpy())),
        ... )
        >>> asked.survey.n, asked.shuffler.guarantee.alpha
        (100, 0.0)
        """
        _need_randomizer(randomizer)
        section: dict[str, Any] = {"private": private, "public": list(public), "person": person, "missing": missing}
        if isinstance(randomizer, NumericRandomizer):
            section |= {"lower": float(randomizer.lower), "upper": float(randomizer.upper)}
        else:
            section["categories"] = None if categories is None else list(categories)
        rng = entropy_or_system(rng)
        survey = read_survey(parse_section(DataSection, section, name="data"), rng, table=table)
        symbols = len(survey.categories or ())
        if isinstance(randomizer, FrequencyRandomizer) and symbols != randomizer.k:
            raise ParameterError(f"`randomizer` must be of the {symbols} categories, got k = {randomizer.k}.")
        return cls(
            survey, randomizer, shuffler, delta=delta, dummies=dummies, honest=honest, private=private, title=title,
            inferred=survey.categories is not None and categories is None, provenance=rng.provenance,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of people."""
        return self.survey.n

    def randomized(self, rng: Entropy) -> Reports:
        """Everybody's report, in the order of the rows."""
        if self.classes is None:
            return self.randomizer.randomize(self.survey.values, rng)
        return self.classes.randomize(self.survey.values, self.survey.public, rng)

    @cached_property
    def class_promises(self) -> tuple[tuple[float, int, CentralDP], ...]:
        """Epsilon0, people and guarantee of each class of epsilons; none where everybody has the same."""
        if self.classes is None:
            return ()
        return self.classes.promises(self.survey.public, delta=self.delta, honest=self.honest)

    @property
    def most_dummies(self) -> int:
        """The most dummies among the released reports."""
        if isinstance(self.dummies, UserDummies):
            return self.n
        return 0 if self.dummies is None else 2 * self.dummies.k * self.dummies.reach

    @cached_property
    def shuffler(self) -> Shuffler:
        """The shuffler fitted to the public columns."""
        found = Uniform(self.n) if self.fit is None else self.fit(self.survey.public)
        if found.keeps_places and (self.dummies is not None or self.classes is not None):
            raise UnsupportedError("dummies and epsilons by class go with a uniform shuffle of everybody.")
        return found

    @property
    def categories(self) -> list[str] | None:
        """Names of the symbols; None for numbers."""
        return None if self.survey.categories is None else list(self.survey.categories)

    @property
    def as_configured(self) -> bool:
        """Whether a configuration asked for this randomizer and this shuffler."""
        origin = self.origin
        if origin is None or (origin.dummies, origin.classes) != (self.dummies, self.classes):
            return False
        return origin.randomizer == self.randomizer and origin.fit is self.fit

    def terms(self) -> bytes:
        """Everything that shapes the reports besides people, values and public columns: the ledger compares it.

        Those of the configuration while randomizer and shuffler are the ones that it asked for, else read off the
        objects: the randomizer's fields, the categories in their order, the shuffler, and who is grouped with whom.
        """
        if self.origin is not None and self.as_configured:
            return self.origin.terms
        made = {one.name: repr(getattr(self.randomizer, one.name)) for one in fields(self.randomizer)}  # type: ignore[arg-type]
        own = {"dummies": self.dummies, "classes": self.classes}
        added = {name: repr(one) for name, one in own.items() if one is not None}
        document = {
            **added,
            "private": self.private,
            "categories": self.categories,
            "randomizer": [type(self.randomizer).__module__, self.randomizer.name, made],
            "shuffler": [self.shuffler.name, repr(self.shuffler.guarantee.alpha), self.grouping()],
        }
        return json.dumps(document, sort_keys=True).encode()

    def grouping(self) -> str:
        """Who is grouped with whom, whatever the order of rows and groups: the members of each by what is public.

        Where that does not tell the members of groups apart, no two collections are the same: guarantees of unknown
        groups must not add up.
        """
        groups = self.shuffler.guarantee.groups
        if groups is None:
            return "everybody"
        columns = [as_text(column) for column in (*self.survey.people, *self.survey.public)]
        people = [repr(row) for row in pl.DataFrame(columns).rows()] if columns else [""] * self.n
        if not isinstance(groups, Groups):
            return uuid4().hex
        alike, members = Counter(people), [Counter(people[place] for place in group) for group in groups]
        if any(count != alike[one] for group in members for one, count in group.items()):
            return uuid4().hex
        return sha256(repr(sorted(sorted(group.items()) for group in members)).encode()).hexdigest()

    def along(self, public: pl.DataFrame) -> Self:
        """The same collection with its rows as they were recorded, which have an order of their own."""
        return replace(self, survey=replace(self.survey, public=public))

    def through(self, fit: Fit) -> Self:
        """The same collection through another shuffler."""
        return replace(self, fit=fit)


def need_collection(collection: object) -> None:
    """Refuse what is no collection yet."""
    if not isinstance(collection, Collection):
        raise ParameterError(
            "`collection` must be one made by dt.Collection.of(table, private=.., randomizer=..), "
            f"got a value of type {type(collection).__name__}."
        )


def _need_randomizer(randomizer: object) -> None:
    if not isinstance(randomizer, FrequencyRandomizer | NumericRandomizer):
        made = randomizer if isinstance(randomizer, type) else type(randomizer)
        example = "dt.KRR(k=2, epsilon=1.0)"
        raise ParameterError(f"`randomizer` must be one with its parameters, such as {example}, got {made.__name__}.")
