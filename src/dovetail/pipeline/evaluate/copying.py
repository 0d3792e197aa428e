"""Does a released table repeat its people: the test for data-copying on a simulated release of half of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, MissingExtraError, UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.copying.mixed_types import MixedTypes
from dovetail.pipeline.collection import Collection
from dovetail.pipeline.files.report_columns import to_columns
from dovetail.report.document import Missing

MOST, LEAST = 20_000, 80
NO_PUBLIC = "no public columns leave with the reports, so coincidences explain every released row"
NO_VALUES = "the reports of this randomizer are no values, so no released row can equal a private one"


def released_copies(collection: Collection, rng: Entropy) -> dict[str, Any] | Missing:
    """Release a random half of the people and compare with them and with the others, who are the fresh sample.

    Rows are the public columns with the report in the release, with the true value in the private table. Public
    columns leave as they are, so released rows are near to the people that they are about; the numbers say how near.
    """
    survey, randomizer, shuffler = collection.survey, collection.randomizer, collection.shuffler
    if not shuffler.keeps_places or not survey.public.width:
        return Missing(NO_PUBLIC)
    if isinstance(randomizer, FrequencyRandomizer) and not randomizer.names_values:
        return Missing(NO_VALUES)
    if survey.n < LEAST:
        return Missing(f"half of the people are held out as a fresh sample, which needs {LEAST}, got {survey.n:,}")
    if survey.n > MOST:
        return Missing(f"copying is measured for at most {MOST:,} people, got {survey.n:,}")
    here = np.zeros(survey.n, dtype=np.bool_)
    here[rng.permutation(survey.n)[: survey.n // 2]] = True
    try:
        some = shuffler.restrict(here)
        batch = some.shuffle(randomizer.randomize(survey.values[here], rng), rng)
        people, others = (_rows(collection, survey.values[who], who) for who in (here, ~here))
        reported = to_columns(randomizer, batch, collection.categories).to_series()
        released = people.with_columns(reported.cast(people[_VALUE].dtype).alias(_VALUE))
        constant = [name for name in people.columns if people[name].n_unique() == 1]
        mixed = MixedTypes.fit(
            people, others, ignore=constant, categories=texts(pl.concat([people, others]), constant)
        )
        prepared = CopyingTest.prepare(
            mixed.points(people, "train"), mixed.points(others, "fresh"), overlap="keep",
            widths=mixed.widths, seed=int(rng.below(1 << 31, 1)[0]),
        )  # fmt: skip
        found = prepared.test(mixed.points(released, "generated"), baselines=False)
    except (UnsupportedError, DataError, MissingExtraError) as error:
        return Missing(str(error))
    copies, coincidences = found.duplicates.generated / found.m, found.duplicates.fresh / found.n
    return {
        "released": found.m,
        "copies": copies,
        "coincidences": coincidences,
        "delta": {"value": found.overall.delta, "interval": list(found.interval)},
        "p_copying": found.overall.p_copying,
        "membership": found.membership.auc,
        "verdict": found.verdict,
    }


_VALUE = "the private value"


def texts(table: pl.DataFrame, ignored: list[str]) -> list[str]:
    """Columns that are compared as categories although some of their texts may be numbers, such as 60 and 60+."""
    return [
        name
        for name in table.columns
        if name not in ignored
        and table[name].dtype == pl.String
        and table[name].str.strip_chars().cast(pl.Float64, strict=False).null_count()
    ]


def _rows(collection: Collection, values: Any, who: Any) -> pl.DataFrame:
    """Public columns and the true value of some people."""
    if isinstance(collection.randomizer, NumericRandomizer) or collection.categories is None:
        column = pl.Series(_VALUE, np.asarray(values, dtype=np.float64))
    else:
        column = pl.Series(list(collection.categories), dtype=pl.String).gather(pl.Series(values)).alias(_VALUE)
    return collection.survey.public.filter(pl.Series(who)).with_columns(column)
