"""The next round of a question that is asked in rounds, from what the last one has published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.core.errors import ConfigError, DataError, UnsupportedError
from dovetail.core.missing import Missing
from dovetail.job.build import build_question
from dovetail.job.config import parse_config
from dovetail.table.data_section import read_toml

SAME = ("kind", "private", "lower", "upper")  # of what both are about


def refine(config: Mapping[str, Any] | str | Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the next round: bins are cut where the intervals of the last round lie.

    It is made of what is published, and costs no privacy by itself. All rounds keep one promise, with fresh dummies
    each, where [promise] `rounds` says how many there may be: each person sends as many symbols in every round as in
    the first, one. Intervals cover whatever earlier rounds have told.

    Parameters
    ----------
    config : mapping, or path of a TOML file
        Of the last round.
    document : mapping
        Its report.json.

    Raises
    ------
    ConfigError
        For one round.
    UnsupportedError
        For a question that is asked once, for one whose next round takes another number of symbols, and where these
        people took part in as many releases as keep the promise.
    DataError
        For a document without intervals, and for a release's configuration with the report of a rehearsal.

    Examples
    --------
    >>> asked = {"ask": "distribution", "bins": 4, "quantiles": "0.5"}
    >>> config = {
    ...     "schema_version": 1, "mode": "rehearsal", "seed": 1, "question": asked,
    ...     "data": {"path": "a.csv", "private": "bytes", "lower": 0.0, "upper": 1024.0},
    ...     "promise": {"trust": "shuffler", "epsilon": 1.0, "delta": 1e-6, "rounds": 2, "dummies": "gaussian"},
    ... }
    >>> overall = {"labels": ["median"], "interval": [[256.0, 512.0]], "n": 900}
    >>> about = {"kind": "distribution", "private": "bytes", "lower": 0.0, "upper": 1024.0}
    >>> refine(config, {"collection": about, "estimates": {"overall": overall}})["question"]["ends"][:25]
    '0.0, 192.0, 256.0, 288.0,'
    """
    raw = dict(config) if isinstance(config, Mapping) else read_toml(Path(config))
    settings = parse_config(raw, name="configuration" if isinstance(config, Mapping) else str(config))
    if settings.question.ask is None:
        raise UnsupportedError("only questions of [question] `ask` have next rounds.")
    if settings.promise.rounds < 2:
        raise ConfigError("`promise.rounds` must say how many rounds keep the promise together, 2 or more.")
    question = build_question(settings, settings.data.categories)
    try:
        overall, about = document["estimates"]["overall"], dict(document["collection"])
        labels, (low, high) = list(overall["labels"]), np.array(overall["interval"], dtype=np.float64).T
        people = int(overall["n"])
        released = int(dict(document.get("release") or {}).get("releases", 1))
    except (KeyError, TypeError, ValueError):
        raise DataError(
            "a report must hold the intervals of what was learned: write it with `dovetail run`."
        ) from None
    if settings.mode == "release" and document.get("mode") != "release":
        raise DataError("the next round of a release takes the report of a release, and of no rehearsal.")
    if released >= settings.promise.rounds:  # as the ledger counts them
        raise UnsupportedError(
            f"these people took part in {released:,} releases, and `promise.rounds` = {settings.promise.rounds:,} "
            "keep the promise together: with a next one there would be none."
        )
    if low.shape != (len(labels),) or not (np.isfinite([low, high]).all() and (low <= high).all()):
        raise DataError("intervals in a report must be two finite numbers each, the lower one first.")
    asked = {"private": settings.data.private, **question.described(settings.data.private)}
    differs = [name for name in SAME if about.get(name) != asked.get(name)]
    if differs or labels != question.labels:
        raise DataError(
            f"the report must be of the question of the configuration; another one is its {(*differs, 'labels')[0]}."
        )
    found = question.after(low, high, people, document["estimates"].get("curve"))
    if isinstance(found, Missing):
        raise UnsupportedError(f"{found.reason}.")
    made = {**raw, "question": {"ask": settings.question.ask, **found}}
    if settings.seed is not None:
        made["seed"] = settings.seed + 1  # rounds of a rehearsal draw fresh noise, too
    then = build_question(parse_config(made, name="the next round"), settings.data.categories)
    if then.symbols != question.symbols:  # dummies are calibrated for as many symbols in all rounds
        raise UnsupportedError(
            f"the next round takes {then.symbols} symbol of a person and this one {question.symbols}, so that they "
            "keep no promise together: ask the first round with `question.levels` = 1."
        )
    return made
