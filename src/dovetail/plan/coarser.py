"""The cost of ranges of a public column: fewer groups to tell apart, and more people to hide among in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dovetail.account.amplify import amplify
from dovetail.core.checks import positive
from dovetail.core.errors import DataError
from dovetail.core.extras import pl
from dovetail.estimate.accuracy import predict_accuracy
from dovetail.randomize.krr import KRR
from dovetail.table.data_section import Spellings
from dovetail.table.spelling import in_ranges


@dataclass(frozen=True)
class Coarser:
    """Groups of one width of range, each shuffled by itself.

    Parameters
    ----------
    width : float
        0 for the column as it is.
    groups, smallest, alone : int
        Groups, people of the smallest one, and people who are the only one of theirs.
    epsilon, median_epsilon : float
        What the shuffled batch promises to people of the smallest group, and of one of median size, of reports with
        two answers; with more answers it is somewhat more.
    error95 : float
        How far off, with probability 95 %, the share of one of two answers may be in a group of median size.
    """

    width: float
    groups: int
    smallest: int
    alone: int
    epsilon: float
    median_epsilon: float
    error95: float

    def document(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def coarser_groups(labels: pl.Series, widths: Sequence[float], *, epsilon: float, delta: float) -> list[Coarser]:
    """Costs of each width, the column as it is first.

    Parameters
    ----------
    labels : series (n,)
        Numbers, as numbers or as texts; what is no number stays a group of its own.
    widths : floats, above 0
    epsilon, delta : float
        Of one report, by k-ary randomized response with two answers; of the promise after shuffling.

    Raises
    ------
    DataError
        For a column without numbers, and for ranges so narrow that their number overflows.
    """
    krr, text = KRR(k=2, epsilon=epsilon), labels.cast(pl.String)
    wanted = [0.0, *sorted({positive("widths", width) for width in widths})]
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.is_not_null().sum() == 0:
        raise DataError(f"column {labels.name!r}: ranges are of numbers, and it has none.")
    for width in wanted[1:]:
        if not (numbers / width).drop_nulls().is_finite().all():
            raise DataError(f"column {labels.name!r}: ranges of width {width:g} are too narrow for its numbers.")
    found = []
    for width in wanted:
        sizes = (in_ranges(labels, width, Spellings()) if width else text).value_counts(sort=True)["count"].to_list()
        smallest, median = (
            amplify(krr, n=size, delta=delta).epsilon if size > 1 else epsilon
            for size in (sizes[-1], sizes[len(sizes) // 2])
        )
        error = predict_accuracy(krr, n=sizes[len(sizes) // 2]).error95
        found.append(Coarser(width, len(sizes), sizes[-1], sizes.count(1), smallest, median, error))
    return found
