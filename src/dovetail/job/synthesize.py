"""A synthetic table of the people of a report on all two-way tables, and for which pairs of columns it is good."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dovetail.core.checks import instance, whole
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.estimate.tables import Pairs, consistent, synthetic, variation
from dovetail.report.document import PrivacyReport


@dataclass(frozen=True)
class PairFit:
    """How far the two-way table of two columns is off, as total variation distance.

    Parameters
    ----------
    columns : two names
    noise : float
        Of unbiased cells, by their noise alone, on average.
    fit : float
        Of the synthetic table from the cells that were made consistent.
    people : int
        From how many on a typical cell, of n / cells people, holds more than its noise.
    good : bool
        True if so many took part.
    """

    columns: tuple[str, str]
    noise: float
    fit: float
    people: int
    good: bool


@dataclass(frozen=True)
class SyntheticTable:
    """Made-up people, and for which pairs of columns they are good; there are no standard errors of it."""

    table: pl.DataFrame
    pairs: tuple[PairFit, ...]


def synthesize(report: PrivacyReport, *, people: int | None = None, seed: int = 0) -> pl.DataFrame:
    """A table of made-up people whose two-way tables are near those of the report; it costs no privacy.

    Good for tables of two columns. What three columns say together is an assumption of the model, and there are no
    standard errors: those of the report are of the cells. Write it with `.write_parquet(path)`.

    Parameters
    ----------
    report : PrivacyReport
        Of `[question] ask = "tables"`, or of a collection that asks `dt.Tables`.
    people : int, optional
        Rows; as many as took part by default.
    seed : int
        The same table for the same report and seed.

    Raises
    ------
    UnsupportedError
        For a report on another question.

    Examples
    --------
    >>> import dovetail as dt
    >>> table = pl.DataFrame({"a": ["x", "y"] * 4000, "b": ["p", "q"] * 4000})
    >>> config = {
    ...     "schema_version": 1,
    ...     "mode": "rehearsal",
    ...     "seed": 1,
    ...     "data": {"private": "a", "categories": ["x", "y"]},
    ...     "question": {"ask": "tables", "others": "b: p | q"},
    ...     "promise": {"trust": "shuffler", "epsilon": 1.0},
    ... }
    >>> made = synthesize(dt.run(config, table=table), people=100)
    >>> made.columns, made.height
    (['a', 'b'], 100)

    Source
    ------
    Zhang, Wang, Li, Honorio, Backes, He, Chen, Zhang (2021), PrivSyn: Differentially Private Data Synthesis, USENIX
    Security, section 5.
    """
    return synthetic_table(instance("report", report, PrivacyReport).document(), people=people, seed=seed).table


def synthetic_table(document: Mapping[str, Any], *, people: int | None = None, seed: int = 0) -> SyntheticTable:
    """The same of the document of a report, report.json, with how far each pair of columns is off.

    Raises
    ------
    DataError
        For a document that lacks its tables.
    UnsupportedError
        For a report on another question.
    """
    try:
        asked, overall = document["collection"], document["estimates"]["overall"]
        if asked["kind"] != "tables":
            raise UnsupportedError("a synthetic table is made of all two-way tables: ask for `tables`.")
        names, n = list(asked["columns"]), int(overall["n"])
        pairs = Pairs(tuple(len(values) for values in asked["values"]))
        cells, errors = (pairs.split(np.array(overall[key])) for key in ("value", "standard_error"))
    except (KeyError, TypeError, ValueError):
        raise DataError(
            "a report on `tables` must hold their columns and cells: write it with `dovetail run`."
        ) from None
    variances = {pair: float(one[0, 0]) ** 2 / (1.0 - 1.0 / one.size) for pair, one in errors.items()}
    tables = consistent({pair: n * one for pair, one in cells.items()}, pairs.sizes, n, variances)
    rows = n if people is None else whole("people", people, least=1)
    codes = synthetic(tables, pairs.sizes, rows, np.random.default_rng(seed))
    columns = zip(names, asked["values"], codes.T, strict=True)
    made = pl.DataFrame({name: [values[one] for one in column.tolist()] for name, values, column in columns})
    moved, noise = variation(pairs.counted(codes), tables), pairs.noise(overall["standard_error"])
    needed = pairs.needed(overall["standard_error"], n)
    return SyntheticTable(
        made,
        tuple(
            PairFit(
                columns=(names[i], names[j]),
                noise=0.5 * math.sqrt(2.0 / math.pi) * float(one.sum()),
                fit=moved[i, j],
                people=needed[i, j],
                good=noise[i, j] <= 1.0,
            )
            for (i, j), one in errors.items()
        ),
    )
