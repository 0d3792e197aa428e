"""A collection: people's encoded values beside public columns, and what randomizes and shuffles them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, final

import polars as pl

from dovetail.core.checks import probability, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import ParameterError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, Shuffler
from dovetail.pipeline.config.parse import parse_section
from dovetail.pipeline.config.sections import DataSection, GroupsSection
from dovetail.pipeline.files.table import Survey, read_survey
from dovetail.shuffle.uniform import Uniform

Fit = Callable[[pl.DataFrame], Shuffler]


@final
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
    honest : int, optional
        People assumed honest; all by default.
    private : str
        What the private column is called.
    title : str
    inferred : bool
        Whether the categories were read off the private column, which only a rehearsal may do.
    asked : mapping
        The configuration that it came from, for the report.
    terms : bytes
        Everything that shapes the reports besides the table: the ledger compares it.
    """

    survey: Survey
    randomizer: FrequencyRandomizer | NumericRandomizer
    fit: Fit | None = None
    groups: GroupsSection | None = None
    delta: float = 1e-6
    honest: int | None = None
    private: str = "value"
    title: str = ""
    inferred: bool = False
    asked: Mapping[str, Any] = field(default_factory=dict)
    terms: bytes = b""

    def __post_init__(self) -> None:
        probability("delta", self.delta)
        if self.honest is not None:
            whole("honest", self.honest, least=1, most=self.survey.n)

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
        section: dict[str, Any] = {"private": private, "public": list(public), "person": person, "missing": missing}
        if isinstance(randomizer, NumericRandomizer):
            section |= {"lower": float(randomizer.lower), "upper": float(randomizer.upper)}
        else:
            section["categories"] = None if categories is None else list(categories)
        survey = read_survey(parse_section(DataSection, section, name="data"), entropy_or_system(rng), table=table)
        symbols = len(survey.categories or ())
        if isinstance(randomizer, FrequencyRandomizer) and symbols != randomizer.k:
            raise ParameterError(f"`randomizer` must be of the {symbols} categories, got k = {randomizer.k}.")
        return cls(
            survey, randomizer, shuffler, delta=delta, honest=honest, private=private, title=title,
            inferred=survey.categories is not None and categories is None,
            terms=f"{randomizer!r} {private} {list(public)}".encode(),
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of people."""
        return self.survey.n

    @cached_property
    def shuffler(self) -> Shuffler:
        """The shuffler fitted to the public columns."""
        return Uniform(self.n) if self.fit is None else self.fit(self.survey.public)

    @property
    def categories(self) -> list[str] | None:
        """Names of the symbols; None for numbers."""
        return None if self.survey.categories is None else list(self.survey.categories)

    def along(self, public: pl.DataFrame) -> Self:
        """The same collection with its rows as they were recorded, which have an order of their own."""
        return replace(self, survey=replace(self.survey, public=public))

    def through(self, fit: Fit) -> Self:
        """The same collection through another shuffler."""
        return replace(self, fit=fit)
