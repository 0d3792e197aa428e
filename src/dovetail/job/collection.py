"""A collection: people's encoded values beside public columns, and what randomizes and shuffles them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Self, TypeAlias, final
from uuid import uuid4

from dovetail.account.gaussian_dummies import Message
from dovetail.core.checks import probability, whole
from dovetail.core.display import Display, displayed_by, upward
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Reports, Shuffler
from dovetail.job.config import GroupsSection
from dovetail.noise.digits import DigitNoise
from dovetail.noise.gaussian import GaussianNoise
from dovetail.noise.local import Local
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.sparse import SparseNoise
from dovetail.noise.users import UserNoise
from dovetail.question.number import Number
from dovetail.question.shares import Shares
from dovetail.question.vector import Vector
from dovetail.randomize.sampling.vector_randomizer import VectorRandomizer
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.sampling.dummies import Dummies, GaussianDummies, SeveralDummies, SparseDummies, UserDummies
from dovetail.shuffle.uniform import Uniform
from dovetail.table.arrays import read_arrays
from dovetail.table.data_section import RULES, DataSection, parse_section
from dovetail.table.reader import Survey, as_text, read_survey
from dovetail.table.released import Analyst

Fit: TypeAlias = "Callable[[pl.DataFrame], Shuffler]"


@dataclass(frozen=True, eq=False)
class Origin:
    """The configuration behind a collection: what of it shapes the reports, and the objects that it stands for."""

    terms: bytes
    question: Question
    noise: Noise
    fit: Fit


def _show(collection: Collection) -> Display:
    names = collection.question.names
    asked = collection.question.label if names is None else f"one of {len(names):,} answers"
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
    question : Question
        What is asked, and learned.
    noise : Noise
        What hides an answer.
    fit : function of the public columns (n, ..), optional
        The shuffler for the rows in this order. It sees public data alone. Without it the shuffle is uniform.
    groups : GroupsSection, optional
        Which public columns the groups are made of: what attackers know, and what an order guarantee is about.
    delta : float strictly between 0 and 1
        Of the central guarantee.
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
    counted : mapping from a public label to people
        Instead of the public columns, where a release lies in files.

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
    question: Question
    noise: Noise
    fit: Fit | None = None
    groups: GroupsSection | None = None
    delta: float = 1e-6
    honest: int | None = None
    private: str = "value"
    title: str = ""
    inferred: bool = False
    unconfirmed: tuple[str, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    provenance: str = "device"
    origin: Origin | None = None
    counted: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        probability("delta", self.delta)
        if self.honest is not None:
            whole("honest", self.honest, least=1, most=self.survey.n)
        self.noise.check(self.people)

    @classmethod
    def of(
        cls,
        table: Any,
        *,
        private: str,
        randomizer: Analyst,
        shuffler: Fit | None = None,
        public: Sequence[str] = (),
        person: str | None = None,
        categories: Sequence[str] | None = None,
        missing: str = "refuse",
        clip: bool = False,
        delta: float = 1e-6,
        dummies: AnyDummies | None = None,
        question: Question | None = None,
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
            Such as `dt.WithinGroups.by("age")`.
        categories : texts, as many as the randomizer has symbols
            Inferred from the table if absent, which is for rehearsals only. None for numbers.
        missing : "refuse", "drop" (leave these people out), or the category for missing values
        clip : bool
            Whether numbers outside the randomizer's range count as its nearest end.
        question : Question, optional
            Such as `dt.Covariance`; by default the shares of `categories`, or the mean of a number.

        Examples
        --------
        >>> import dovetail as dt
        >>> table = pl.DataFrame({"answer": ["no", "yes"] * 50, "age": list(range(50)) * 2})
        >>> asked = Collection.of(
        ...     table, private="answer", public=["age"], categories=["no", "yes"],
        ...     randomizer=dt.KRR(k=2, epsilon=1.0),
        ...     shuffler=dt.WithinGroups.by("age"),
        ... )
        >>> asked.survey.n, asked.shuffler.guarantee.alpha
        (100, 0.0)
        """
        _need_randomizer(randomizer)
        section: dict[str, Any] = {
            "private": private, "public": list(public), "person": person, "missing": missing, "clip": clip,
        }  # fmt: skip
        if question is None and isinstance(randomizer, NumericRandomizer) and missing not in RULES:
            raise ParameterError(
                f"`missing` must be 'refuse' or 'drop' for the mean of a number, got {missing!r}; with `question` = "
                "dt.Nonresponse(..) it is an answer, too."
            )
        if question is not None:
            if categories is not None:
                raise ParameterError("`question` says what can be answered: leave out `categories`.")
            section |= question.column
        elif isinstance(randomizer, NumericRandomizer):
            section |= {"lower": float(randomizer.lower), "upper": float(randomizer.upper)}
        else:
            section["categories"] = None if categories is None else list(categories)
        rng = entropy_or_system(rng)
        data = parse_section(DataSection, section, name="data")
        if question is None and isinstance(randomizer, VectorRandomizer):
            question = Vector(randomizer.d, randomizer.radius)
        if question is not None and question.of_arrays:
            survey = read_arrays(data, rng, dimension=question.domain["d"], table=table)
        else:
            survey = read_survey(data, rng, table=table, further=None if question is None else question.further)
        inferred = question is None and survey.categories is not None and categories is None
        if question is None and survey.categories is not None:
            question = Shares(survey.categories)
        elif question is None:
            question = Number(section["lower"], section["upper"], getattr(randomizer, "step", None))
        if question.needs != randomizer.question:
            raise ParameterError(f"`randomizer` {randomizer.name!r} cannot carry {question.label}.")
        if isinstance(randomizer, FrequencyRandomizer) and question.domain["k"] != randomizer.k:
            raise ParameterError(
                f"`randomizer` must be of the {question.domain['k']} categories, got k = {randomizer.k}."
            )
        if isinstance(randomizer, VectorRandomizer) and question.domain != {
            "d": randomizer.d,
            "radius": randomizer.radius,
        }:
            raise ParameterError("`randomizer` must be of the `dimension` and the `clip` of `question`.")
        return cls(
            survey, question, noise_of(randomizer, dummies, symbols=question.symbols), shuffler, delta=delta,
            honest=honest, private=private, title=title, inferred=inferred, provenance=rng.provenance,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of people."""
        return self.survey.n

    @property
    def people(self) -> People:
        """Who takes part, as everybody may know it."""
        return People(self.n, self.survey.public, self.honest, self.counted)

    @property
    def hidden(self) -> Missing | None:
        """Why guesses, attacks and groups are not measured; None where they are."""
        return self.noise.hidden or self.question.hidden

    @property
    def randomizer(self) -> FrequencyRandomizer | NumericRandomizer:
        """The randomizer of each device."""
        return self.noise.randomizer

    @property
    def local(self) -> LocalDP:
        """The guarantee of a person's report, no matter who looks."""
        return self.noise.local

    def randomized(self, rng: Entropy) -> Reports:
        """Everybody's report, in the order of the rows."""
        return self.noise.randomize(self.question.answer(self.survey.values, rng), self.people, rng)

    def drawn(self, rng: Entropy) -> Reports:
        """The batch that is released: everybody's report, shuffled, with what the noise adds to it."""
        return self.noise.complete(self.shuffler.shuffle(self.randomized(rng), rng), rng)

    @cached_property
    def central(self) -> CentralDP | Missing:
        """The guarantee of the released batch for one person."""
        return self.noise.central(self.shuffler, self.people, delta=self.delta)

    def refuse_drowned(self, people: People | None = None) -> None:
        """UnsupportedError for a release of which the noise leaves nothing, with the people that it takes.

        Of all people, or of those who are asked.
        """
        told = self.question.too_few(self.noise, people or self.people) if self.question.drowns else None
        if told is not None:
            raise UnsupportedError(f"{told}, or a larger epsilon; nothing was drawn.")

    @cached_property
    def shuffler(self) -> Shuffler:
        """The shuffler fitted to the public columns."""
        found = Uniform(self.n) if self.fit is None else self.fit(self.survey.public)
        self.noise.refuse_shuffler(found)
        return found

    @property
    def categories(self) -> list[str] | None:
        """Names of the symbols; None for numbers."""
        return self.question.names

    @property
    def as_configured(self) -> bool:
        """True if a configuration asked for this randomizer and this shuffler."""
        origin = self.origin
        return (
            origin is not None
            and (origin.question, origin.noise) == (self.question, self.noise)
            and (origin.fit is self.fit)
        )

    def terms(self) -> bytes:
        """Everything that shapes the reports besides people, values and public columns: the ledger compares it.

        Those of the configuration while randomizer and shuffler are the ones that it asked for, else read off the
        objects: the randomizer's fields, the categories in their order, the shuffler, and who is grouped with whom.
        """
        if self.origin is not None and self.as_configured:
            return self.origin.terms
        made = {one.name: repr(getattr(self.randomizer, one.name)) for one in fields(self.randomizer)}  # type: ignore[arg-type]
        document = {
            "question": repr(self.question),
            "noise": repr(self.noise),
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


AnyDummies = Dummies | GaussianDummies | SeveralDummies | SparseDummies | Message | UserDummies


def noise_of(
    randomizer: Analyst,
    dummies: AnyDummies | None,
    *,
    symbols: int = 1,
    rounds: int = 1,
) -> Noise:
    """The noise of devices, with what the shuffler or people add to it.

    A person sends so many `symbols`; so many `rounds` about the same people keep one promise together.
    """
    made: Any = randomizer
    if dummies is not None and isinstance(randomizer, VectorRandomizer):
        raise ParameterError("dummies go with answers of a list and with numbers: leave out `dummies` for vectors.")
    if symbols > 1 and isinstance(dummies, Message):
        raise ParameterError(
            f"several symbols of a person, here {symbols}, go with other dummies than those of digits of a number."
        )
    if symbols > 1 and dummies is None:
        raise ParameterError(
            f"several symbols of a person, here {symbols}, go with dummies alone: under local noise each "
            "would cost a share of the budget."
        )
    match dummies:
        case None:
            return Local(randomizer)
        case Dummies():
            return ShufflerNoise(dummies, made, symbols, rounds)
        case GaussianDummies() | SeveralDummies():
            return GaussianNoise(dummies, made, symbols, rounds)
        case SparseDummies():
            return SparseNoise(dummies, made, symbols)
        case Message():
            return DigitNoise(dummies, made, rounds)
    return UserNoise(dummies, made, symbols)


def need_collection(collection: object) -> None:
    """Refuse what is no collection yet."""
    if not isinstance(collection, Collection):
        raise ParameterError(
            "`collection` must be one made by dt.Collection.of(table, private=.., randomizer=..), "
            f"got a value of type {type(collection).__name__}."
        )


def _need_randomizer(randomizer: object) -> None:
    if not isinstance(randomizer, FrequencyRandomizer | NumericRandomizer | VectorRandomizer):
        made = randomizer if isinstance(randomizer, type) else type(randomizer)
        example = "dt.KRR(k=2, epsilon=1.0)"
        raise ParameterError(f"`randomizer` must be one with its parameters, such as {example}, got {made.__name__}.")
