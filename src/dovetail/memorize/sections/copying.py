"""Does a released table repeat its people: the test for data-copying on a simulated release of half of them."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import polars as pl

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError, MissingExtraError, UnsupportedError
from dovetail.core.extras import require
from dovetail.core.missing import Missing
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer, ReportSection
from dovetail.job.collection import Collection
from dovetail.memorize.sample_files import MixedTypes
from dovetail.memorize.sections import LEAST, MOST, NO_PUBLIC, NO_VALUES, texts
from dovetail.report.number_format import percent
from dovetail.table.released import to_columns

_VALUE = "the private value"


@final
class Copying(ReportSection):
    """Rows of a release that repeat rows of the people in it, beyond coincidence."""

    name = "copying"
    label = "test for copied rows"

    @classmethod
    def measure(cls, collection: Collection, rng: Entropy) -> dict[str, Any] | Missing:
        """The test for data-copying on a release of half of the people; the others are the fresh sample.

        Rows are the public columns with the report in the release, with the true value in the private table.
        Public columns leave as they are, so released rows are near to the people that they are about; the numbers
        say how near.
        """
        survey, randomizer, shuffler = collection.survey, collection.randomizer, collection.shuffler
        if not shuffler.keeps_places or not survey.public.width:
            return Missing(NO_PUBLIC)
        if isinstance(randomizer, FrequencyRandomizer) and not randomizer.names_values:
            return Missing(NO_VALUES)
        if survey.n < LEAST:
            return Missing(
                f"half of the people are held out as a fresh sample, which needs {LEAST}, got {survey.n:,}"
            )
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
            seed = int(rng.below(1 << 31, 1)[0])  # drawn in any case: no later number depends on what is installed
            require("sklearn.cluster", extra="memorize")
            from dovetail.memorize.copying.data_copying import CopyingTest  # half a second

            prepared = CopyingTest.prepare(
                mixed.points(people, "train"), mixed.points(others, "fresh"), overlap="keep",
                widths=mixed.widths, seed=seed,
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

    @classmethod
    def notes(cls, found: dict[str, Any]) -> tuple[str, ...]:
        nearer = percent(1.0 - found["delta"]["value"])
        return (
            f"Copies: {percent(found['copies'])} of {found['released']:,} released rows equal somebody's public "
            f"columns and true value together; of people who are not in the release {percent(found['coincidences'])} "
            f"do. A released row is nearer to the people in the release than somebody else is with chance "
            f"{nearer} (half: no nearer); who is in it is told with an AUC of {found['membership']:.3f}. "
            "Public columns leave as they are.",
        )


def _rows(collection: Collection, values: Any, who: Any) -> pl.DataFrame:
    """Public columns and the true value of some people."""
    if isinstance(collection.randomizer, NumericRandomizer) or collection.categories is None:
        column = pl.Series(_VALUE, np.asarray(values, dtype=np.float64))
    else:
        column = pl.Series(list(collection.categories), dtype=pl.String).gather(pl.Series(values)).alias(_VALUE)
    return collection.survey.public.filter(pl.Series(who)).with_columns(column)
