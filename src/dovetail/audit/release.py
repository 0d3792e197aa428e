"""A released folder, checked from outside: what report.json and the released rows say, against each other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import binom

from dovetail.audit.claim import audit_claim
from dovetail.core.checks import not_negative, probability, refuse, whole
from dovetail.core.display import counted, downward, upward
from dovetail.core.errors import DataError, DovetailError, UnsupportedError
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question
from dovetail.core.stages import FrequencyRandomizer, Randomizer, Reports
from dovetail.report.document import digest_of_table
from dovetail.report.number_format import missing_reason

Result = Literal["holds", "fails", "not checked"]
STATISTICAL = 4  # checks that may raise a false alarm
SAME = 1e-9  # relative: two computations of one number
MOST_CELLS = 10**7  # of a channel that is looked at


@dataclass(frozen=True)
class Check:
    """One thing that an outsider checks.

    Parameters
    ----------
    name : str
    result : "holds", "fails" or "not checked"
    sentence : str
        What was compared, or why nothing was.
    power : str
        What the check would have seen.
    """

    name: str
    result: Result
    sentence: str
    power: str = ""


@dataclass(frozen=True)
class Release:
    """A released folder, as it was read.

    Parameters
    ----------
    document : dict
        report.json.
    table : data frame
        The released rows; public data.
    question, noise, people : optional
        What the file says of how its reports were made; None where it does not.
    reports : array, optional
    """

    document: dict[str, Any]
    table: pl.DataFrame = field(repr=False)
    question: Question | None = None
    noise: Noise | None = None
    people: People | None = None
    reports: Reports | None = field(default=None, repr=False)

    @property
    def randomizer(self) -> Randomizer | None:
        """Randomizer that each person ran, where everybody ran it and nothing else was added."""
        plain = self.noise is not None and self.noise.hidden is None and self.table.height == self.n
        return getattr(self.noise, "randomizer", None) if plain else None

    @property
    def once(self) -> bool:
        """True if each person sends one report: one question and one round."""
        several = [self.document.get(name) for name in ("rounds", "questions")]
        return all(isinstance(block, dict) and missing_reason(block) is not None for block in several)

    @property
    def n(self) -> int:
        """Number of people of the document."""
        return int(self.document["collection"]["n"])


def audit_release(
    release: Release, *, canaries: dict[str, Any] | None = None, false_alarm: float = 1e-9
) -> list[Check]:
    """Check a release from outside, each check with its power; all statistical ones together err with `false_alarm`.

    Nothing here looks at the private table, so nothing can show that people were treated as the document says: an
    audit of the device's code does (`audit_mechanism`).

    Raises
    ------
    DataError
        For a document that is none of a release.
    """
    if release.document.get("mode") != "release":
        raise DataError(f"report.json is of a {release.document.get('mode')}, not of a release: it protects nobody.")
    alpha = probability("false_alarm", false_alarm) / STATISTICAL
    checks: list[Callable[[Release], Iterator[Check]]] = [
        _digests, _people, _wording, _central, _ledger, _estimates,
        lambda release: _counts(release, alpha), lambda release: _free_laws(release, alpha),
    ]  # fmt: skip
    found: list[Check] = []
    for check in checks:
        try:
            found += check(release)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DovetailError):
                raise
            raise DataError(f"report.json lacks what an audit reads: {type(error).__name__}: {error}.") from None
    return [*found, *_canaries(release, canaries or {}, alpha)]


# The document against itself and against the rows: exact.


def _digests(release: Release) -> Iterator[Check]:
    stated = release.document["digests"]
    config = json.dumps(release.document["config"], sort_keys=True, default=str).encode()
    pairs = {"configuration": sha256(config).hexdigest()}
    if isinstance(stated["table"], str) and release.table.width:
        pairs["table"] = digest_of_table(release.table)
    wrong = [name for name, digest in pairs.items() if stated[name] != digest]
    names = " and ".join(pairs)
    changed = "a row or of the configuration" if "table" in pairs else "the configuration"
    power = f"any change of {changed} after the report was written, unless the report was changed too"
    if wrong:
        yield Check("digests", "fails", f"SHA-256 of the {' and '.join(wrong)} is not the one in the report.", power)
    else:
        yield Check("digests", "holds", f"SHA-256 of the {names} is the one in the report.", power)


def _people(release: Release) -> Iterator[Check]:
    rows, n = release.table.height, release.n
    added = release.noise is not None and release.noise.hidden is not None
    if added or not release.table.width or not release.once:
        why = "no released rows stand beside the report"
        if release.table.width:
            why = "rows of dummies stand among those of people" if added else "a person may have several rows"
        yield Check("people", "not checked", f"{why}.")
    elif rows == n:
        yield Check("people", "holds", f"{rows:,} released rows for {n:,} people.", "a row too many or too few")
    else:
        yield Check("people", "fails", f"{rows:,} released rows for {n:,} people.")


def _wording(release: Release) -> Iterator[Check]:
    central, local = release.document["central"], release.document["local"]
    if "epsilon" not in central:
        yield Check("wording", "not checked", f"no guarantee of the batch is claimed: {central.get('reason', '')}.")
        return
    wrong = []
    if central["delta"] >= 1.0 / max(1, central["n"]):
        wrong.append(f"delta {central['delta']:g} is at least 1/n: publishing one person in clear keeps it")
    if central["epsilon"] > float(central["colluding"]) * (1.0 + SAME) and central["delta"] >= local["delta"]:
        wrong.append("the batch is promised less than each report")
    if central["honest_n"] > central["n"]:
        wrong.append("more people are honest than there are")
    result: Result = "fails" if wrong else "holds"
    yield Check("wording", result, "; ".join(wrong) or "delta, people and both guarantees agree in kind.")


def _central(release: Release) -> Iterator[Check]:
    """The guarantee, as a claim about the randomizer that the document names."""
    central, randomizer = release.document["central"], release.randomizer
    if "epsilon" not in central:
        return
    if randomizer is None or central["trust"] != "local" or release.document["shuffler"] == "identity":
        yield Check("guarantee", "not checked", "no theorem here recomputes it for this noise and trust.")
        return
    judged = audit_claim(
        epsilon=central["epsilon"], delta=central["delta"], randomizer=randomizer, n=central["n"],
        honest=central["honest_n"],
    )  # fmt: skip
    result: Result = "fails" if judged.verdict == "impossible" else "holds"
    if judged.verdict not in ("impossible", "proved"):
        result = "not checked"
    words, many = judged.sentence, release.document["release"].get("releases", 1)
    if many > 1 and result == "holds":
        result, words = "not checked", f"it is the sum over {many} releases, of which this folder holds one."
    yield Check("guarantee", result, words, "any number below the attack's")


def _ledger(release: Release) -> Iterator[Check]:
    stated = release.document["release"]
    if "total_epsilon" not in stated:
        yield Check("ledger", "not checked", f"no entry is stated: {stated.get('reason', '')}.")
        return
    epsilon, total = release.document["randomizer"].get("epsilon"), float(stated["total_epsilon"])
    if epsilon is None or not math.isfinite(float(epsilon)):
        yield Check("ledger", "not checked", "people have different epsilons, or none of their own.")
        return
    alone = release.once and stated["releases"] == 1
    enough = math.isclose(total, epsilon, rel_tol=SAME) if alone else total >= epsilon * (1.0 - SAME)
    holds = enough and 1 <= stated["releases"] <= stated["number"]
    words = (
        f"{counted(stated['releases'], 'release')} about these people, in total epsilon {upward(total)}; "
        f"this one costs {upward(epsilon)}"
    )
    yield Check("ledger", "holds" if holds else "fails", f"{words}.", "a total that forgets this release")


def _estimates(release: Release) -> Iterator[Check]:
    """The estimates of everybody and their errors, once more from the released rows."""
    if release.randomizer is None or release.question is None or release.people is None or release.reports is None:
        yield Check("estimates", "not checked", "the file does not say how all of its rows were made.")
        return
    stated = release.document["estimates"]["overall"]
    assert release.noise is not None  # it has a randomizer
    again = release.question.learned(release.noise, release.noise.tally(release.reports), release.people)
    values, errors = (np.atleast_1d(np.asarray(part, dtype=float)) for part in (again.value, again.standard_error))
    if values.shape != np.shape(stated["value"]):
        yield Check("estimates", "not checked", "they are of another form.")
        return
    wrong = [
        name
        for name, found in (("value", values), ("standard_error", errors))
        if not np.allclose(found, stated[name], rtol=SAME, atol=SAME)
    ]
    if wrong and release.document["config"]["estimate"]["estimator"] == "best":
        yield Check("estimates", "not checked", "another estimator than the plain one was asked for.")
        return
    power = "an epsilon that is stated 5 percent off changes a standard error by about 7 percent (k = 10, epsilon 1)"
    if wrong:
        words = " and ".join(wrong).replace("_", " ")
        yield Check("estimates", "fails", f"{words} do not follow from the released rows and this epsilon.", power)
    else:
        words = "values and standard errors follow from the released rows and this epsilon"
        yield Check("estimates", "holds", f"{words}.", power)


# The rows against the randomizer that the document names: statistical.


def _law(release: Release) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """The channel, and how often each of its reports was released; None without a finite one."""
    randomizer = release.randomizer
    if not isinstance(randomizer, FrequencyRandomizer) or release.reports is None:
        return None
    try:
        channel = randomizer.channel()
        if math.prod(channel.shape) > MOST_CELLS:
            return None
        law = np.asarray(channel.matrix(), dtype=np.float64)
        return law, np.bincount(randomizer.columns(release.reports), minlength=law.shape[1])
    except UnsupportedError:
        return None


def _counts(release: Release, alpha: float) -> Iterator[Check]:
    """Each report y is counted between Bin(n, min_x R_x(y)) and Bin(n, max_x R_x(y)), whatever people hold."""
    found = _law(release)
    if found is None:
        yield Check("counts", "not checked", "no finite law of one report is named for all rows.")
        return
    law, counts = found
    n, level = int(counts.sum()), alpha / (2 * counts.size)
    least, most = law.min(axis=0), law.max(axis=0)
    low, high = binom.ppf(level, n, least), binom.isf(level, n, most)
    wrong = (counts < low) | (counts > high)
    rare = f"fewer than {int(low.min()):,} times, not {n * least.min():,.0f}"
    power = f"a report that nobody's value makes likely, sent {rare}"
    if wrong.any():
        y = int(np.flatnonzero(wrong)[0])
        words = f"report {y} stands there {counts[y]:,} times; expected are {low[y]:,.0f} to {high[y]:,.0f}"
        yield Check("counts", "fails", f"{words}, whatever people's values are.", power)
    else:
        yield Check(
            "counts",
            "holds",
            f"each of {counts.size:,} reports is as frequent as this randomizer can make it.",
            power,
        )


def _free_laws(release: Release, alpha: float) -> Iterator[Check]:
    """How many values a report supports has a law that no value changes, for most randomizers: it is compared."""
    found, randomizer = _law(release), release.randomizer
    try:
        if found is None or not isinstance(randomizer, FrequencyRandomizer):
            raise UnsupportedError("")
        sizes = np.asarray(randomizer.support(randomizer.all_reports()).sum(axis=1), dtype=np.int64)
    except UnsupportedError:
        yield Check("free laws", "not checked", "no part of a report is known to be free of the value.")
        return
    law, counts = found
    kinds = np.unique(sizes)
    laws = np.stack([law[:, sizes == kind].sum(axis=1) for kind in kinds], axis=1)  # (k, kinds)
    if kinds.size < 2 or not np.allclose(laws, laws[0], rtol=0.0, atol=1e-12):
        yield Check(
            "free laws", "not checked", "a report supports equally many values each time, or its value decides."
        )
        return
    seen = np.array([counts[sizes == kind].sum() for kind in kinds])
    n, level = int(counts.sum()), alpha / (2 * kinds.size)
    low, high = binom.ppf(level, n, laws[0]), binom.isf(level, n, laws[0])
    wrong = np.flatnonzero((seen < low) | (seen > high))
    power = f"a share of reports with so many supported values that is off by {float((high - low).max()) / n:.2g}"
    if wrong.size:
        kind = int(wrong[0])
        words = f"{seen[kind]:,} reports support {kinds[kind]} values; {low[kind]:,.0f} to {high[kind]:,.0f} would"
        yield Check("free laws", "fails", f"{words}, whatever people's values are.", power)
    else:
        yield Check("free laws", "holds", "reports support as many values as this randomizer lets them.", power)


# Reports that the auditor planted.


def _canaries(release: Release, canaries: dict[str, Any], alpha: float) -> Iterator[Check]:
    """Planted reports: do they stand near their arrival; is the order of pairs guessed too often."""
    unknown = [name for name in canaries if name not in ("places", "right", "guesses")]
    if unknown:
        raise refuse("canaries", "places, or right and guesses", unknown[0])
    if "places" in canaries:
        yield _places(canaries["places"], release, alpha)
    if "guesses" in canaries:
        yield _pairs(canaries, release, alpha)
    if not canaries:
        yield Check("canaries", "not checked", "no reports were planted: the order of the rows is taken on trust.")


def _places(given: Any, release: Release, alpha: float) -> Check:
    """A canary lands within L of its arrival with probability at most (2L + 1)/(n - m), given the others."""
    n = release.n
    try:
        places = np.array([[whole("place", one, least=1, most=n) for one in pair] for pair in given], dtype=np.int64)
        if places.ndim != 2 or places.shape[1] != 2 or not 0 < len(places) < n:
            raise ValueError
    except (TypeError, ValueError) as error:
        words = str(error) if isinstance(error, DovetailError) else "must be pairs [arrival, released row], from 1 on"
        raise DataError(f"canaries: places {words}") from None
    if release.document["shuffler"] != "uniform":
        return Check(
            "canaries' places", "not checked", "only a uniform shuffle promises that every place is as likely."
        )
    m = len(places)
    distance = np.abs(places[:, 0] - places[:, 1])
    worst = min(
        (float(binom.sf((distance <= reach).sum() - 1, m, min(1.0, (2 * reach + 1) / (n - m)))), int(reach))
        for reach in np.unique(distance)
    )
    needed = next((k for k in range(1, 200) if (3.0 / (n - m)) ** k * k < alpha), None)
    power = f"{needed} canaries that stay where they were" if needed and needed <= m else "nothing: too few canaries"
    if worst[0] * m < alpha:
        near = int((distance <= worst[1]).sum())
        return Check("canaries' places", "fails", f"{near} of {m} stand within {worst[1]:,} of their arrival.", power)
    return Check(
        "canaries' places",
        "holds",
        f"{m} canaries are as far from their arrival as a uniform shuffle puts them.",
        power,
    )


def _pairs(given: dict[str, Any], release: Release, alpha: float) -> Check:
    """Pairs of one group, swapped by the auditor's coin: right guesses are at most Bin(r, e^a / (1 + e^a))."""
    guesses = whole("guesses", given["guesses"], least=1)
    right = whole("right", given.get("right"), least=0, most=guesses)
    stated = release.document["order"].get("alpha")
    if stated in (None, "inf"):
        return Check("canaries' order", "not checked", "no promise about the order is claimed.")
    share = 1.0 / (1.0 + math.exp(-not_negative("alpha", stated)))
    chance = float(binom.sf(right - 1, guesses, share))
    words = (
        f"{right:,} of {guesses:,} pairs guessed right; alpha {stated:g} lets {100 * share:.3g} % be right on average"
    )
    seen = float(binom.isf(alpha, guesses, share)) + 1.0
    power = f"more than {downward(seen)} right guesses" if seen <= guesses else "nothing: too few pairs"
    return Check("canaries' order", "fails" if chance < alpha else "holds", f"{words}.", power)
