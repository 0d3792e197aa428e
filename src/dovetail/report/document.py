"""The privacy report: one collection, five lenses, as a value and as a JSON document.

What does not apply is `Missing` with its reason: never left out, never zero. Infinity is the string "inf".
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.core.display import Display, displayed_by
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP, LocalDP, OrderPrivacy
from dovetail.core.missing import Missing
from dovetail.core.stages import SECTIONS
from dovetail.core.verdict import warnings_of

if TYPE_CHECKING:
    import polars as pl

    from dovetail.leak.linkage import Linkage

SCHEMA_VERSION = 1


NO_TRUTH = Missing("an attack is measured against the truth, which a release does not look at")
NO_SECTIONS = Missing("whether released rows repeat people is measured for the chosen shuffler of a rehearsal")
IN_MEMORY = Missing("one process drew it in memory, from the operating system's entropy")
NOT_LINKED = Missing("the chance of naming a person's report is computed for one message of each person in one batch")
ONE_QUESTION = Missing("one private column: its estimates are those of the report")
NO_DIGEST = Missing("no digest was taken of this kind of table")
NO_ROUNDS = Missing("one table and no rounds: [data] names no column of stamps, `time`")


@dataclass(frozen=True)
class OrderEvaluation:
    """Order privacy: the guarantee, and the shuffler that was fitted for it."""

    guarantee: OrderPrivacy
    shuffler: str
    theta_n: float | Missing
    summary: dict[str, Any]


@dataclass(frozen=True)
class GuessAtHand:
    """Bayes vulnerability of one person's value for the shares at hand, beside the blind guess of the commonest one.

    `prior_law`: "empirical", the shares of the people of a rehearsal, or "estimated", those that a release estimates
    from its own reports, which reveals nothing further. `randomized` and `randomized_shuffled` are upper ends where
    `method` is "bracket".
    """

    prior_law: str
    prior: float
    randomized: float
    randomized_shuffled: float | Missing
    method: str


@dataclass(frozen=True)
class BayesLeakage:
    """Bayes vulnerability: probability that one person's value is guessed in one try, all values equally likely.

    `curve` holds the same numbers for smaller collections, to be drawn. `at_hand` are those for the shares at hand.
    """

    prior: float
    randomized: float
    shuffled: float | Missing
    randomized_shuffled: float | Missing
    error_bound: float | Missing
    method: str
    rounding: str
    source: str
    curve: dict[str, list[float]] | Missing
    at_hand: GuessAtHand | Missing = Missing("no estimate of the shares to take as a prior")
    prior_law: str = "uniform"


@dataclass(frozen=True)
class IntervalEstimates:
    """Estimated shares of the categories, or one mean, with intervals; `truth` in rehearsals only.

    `value` is unbiased and may be impossible, such as a share below 0; `possible` is the nearest that is possible.
    """

    labels: list[str]
    value: list[float]
    standard_error: list[float]
    population_error: list[float]
    interval: list[tuple[float, float]]
    possible: list[float]
    bias_bound: float
    n: int
    truth: list[float] | None = None
    by: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class BetterRandomizer:
    """Another randomizer with the same local epsilon and a smaller standard error of one share among many."""

    name: str
    standard_error: float
    here: float


@dataclass(frozen=True)
class Estimates:
    """The estimates: the utility that the privacy loss buys."""

    measure: str
    level: float
    overall: IntervalEstimates
    groups: list[IntervalEstimates] | Missing
    withheld: list[dict[str, Any]]
    estimator: dict[str, str] | Missing = Missing("shares have one estimator")
    better: BetterRandomizer | Missing = Missing("not asked of a stream")
    curve: dict[str, Any] | Missing = Missing("what is asked has no curve")
    beside: Mapping[str, Any] = field(default_factory=dict)  # what a question says of all numbers together, by name


@dataclass(frozen=True)
class MeasuredAttack:
    """Success of an attack on values, beside the blind guess: the commonest value of people with the same columns.

    `success` is that of the better of the two, which is `mounted`; the attack `alone` may do worse.
    `interval` is over repeated releases of this population, at `level`. `vulnerable` is the share of targets guessed
    right in at least `vulnerable_at` of the trials. `votes`: reports that are weighed for each guess, at most.
    `bound` is what no attacker who knows the same public columns exceeds on average, by the theorems `bound_by`.
    `guessed` says what is guessed, where it is no answer of a list.
    """

    name: str
    success: float
    chance: float
    interval: tuple[float, float]
    vulnerable: float
    targets: int
    trials: int
    votes: int | Missing
    level: float
    vulnerable_at: float
    mounted: str
    alone: float
    remark: str
    bound: float | Missing
    bound_by: str | Missing
    guessed: str = ""


@dataclass(frozen=True)
class Learnability:
    """Error of local estimates in the released order: 0 is perfect, 1 the uniform guess.

    `identity` and `uniform` are the ends: the same reports without a shuffle, and shuffled over everybody. Means over
    `draws` releases.
    """

    by: str
    error: float
    identity: float
    uniform: float
    groups: int
    draws: int


@dataclass(frozen=True)
class Evaluation:
    """Every metric of one shuffler."""

    shuffler: str
    local: LocalDP
    central: CentralDP | Missing
    order: OrderEvaluation
    leakage: BayesLeakage | Missing
    estimates: Estimates
    linkage: Linkage | Missing = NOT_LINKED
    attacks: dict[str, MeasuredAttack | Missing] | Missing = NO_TRUTH
    learnability: list[Learnability] | Missing = NO_TRUTH
    sections: dict[str, dict[str, Any] | Missing] | Missing = NO_SECTIONS  # by the names of `SECTIONS`

    @property
    def attack(self) -> MeasuredAttack | Missing:
        """The best attack; the first of those that do not apply where none does."""
        if isinstance(self.attacks, Missing):
            return self.attacks
        known = [found for found in self.attacks.values() if isinstance(found, MeasuredAttack)]
        return max(known, key=lambda found: found.alone) if known else next(iter(self.attacks.values()))


def today() -> str:
    """The day in UTC; SOURCE_DATE_EPOCH, in seconds, sets it where documents have to be the same again."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return (datetime.now(UTC) if given is None else datetime.fromtimestamp(int(given), UTC)).date().isoformat()


def _show(report: PrivacyReport) -> Display:
    from dovetail.report.notebook import show_report  # most programs show no report

    return show_report(report)


@displayed_by(_show)
@dataclass(frozen=True)
class PrivacyReport:
    """One collection through five lenses.

    Attributes
    ----------
    mode : "rehearsal" or "release"
    entropy : "device" or "simulation"
    evaluation : Evaluation
        Of the shuffler that was asked for.
    comparison : tuple of Evaluation
        Of every shuffler side by side, in rehearsals that ask for it.
    rounds, windows : dict or Missing
        Of a stream: the series of estimates with what it cost, and the answers to window queries.
    questions : list of dict or Missing
        Of several private columns: each with the keys of a report about it alone.
    sanitized : data frame or Missing
        The shuffled reports of a release; a rehearsal has none to give away.
    engine : dict or Missing
        Of a release in many files: what drew it, in how many partitions, and what was tried again.
    made : str
        The day, in UTC; that of SOURCE_DATE_EPOCH where it is set.
    table : str or Missing
        SHA-256 of the table that a rehearsal read; a release has that of its released rows.
    sanitized_description : dict
        What a later stage must know to read them; travels inside the file.

    Raises
    ------
    MissingExtraError
        From `plot`, without matplotlib.

    Examples
    --------
    >>> import polars as pl
    >>> import dovetail as dt
    >>> table = pl.DataFrame({"answer": ["no", "yes"] * 50})
    >>> asked = dt.Collection.of(table, private="answer", randomizer=dt.KRR(k=2, epsilon=1.0), rng=dt.simulation(1))
    >>> dt.rehearse(asked, rng=dt.simulation(2)).to_polars()["truth"].to_list()
    [0.5, 0.5]
    """

    title: str
    mode: str
    entropy: str
    seed: int | None
    version: str
    collection: dict[str, Any]
    randomizer: dict[str, Any]
    evaluation: Evaluation
    assumptions: tuple[str, ...]
    steps: tuple[dict[str, str], ...]
    config: dict[str, Any]
    release: dict[str, Any] | Missing
    sanitized: pl.DataFrame | Missing = field(repr=False)
    sanitized_description: dict[str, Any] = field(repr=False)
    comparison: tuple[Evaluation, ...] = ()
    rounds: dict[str, Any] | Missing = field(default=NO_ROUNDS, repr=False)
    windows: dict[str, Any] | Missing = field(default=NO_ROUNDS, repr=False)
    questions: list[dict[str, Any]] | Missing = field(default=ONE_QUESTION, repr=False)
    files: dict[str, Any] = field(default_factory=dict)
    engine: dict[str, Any] | Missing = field(default=IN_MEMORY, repr=False)
    made: str = field(default_factory=today, repr=False)
    table: str | Missing = field(default=NO_DIGEST, repr=False)

    @property
    def watermark(self) -> str | None:
        """The line that keeps a rehearsal from being mistaken for a release."""
        if self.mode == "release":
            return None
        drawn = "drawn from a simulation seed" if self.entropy == "simulation" else "drawn for planning"
        return f"REHEARSAL: contains the truth, {drawn}; protects nobody and must not leave the house."

    @cached_property
    def digests(self) -> dict[str, Any]:
        """SHA-256 of the configuration and of the table, whatever the order of its rows and columns.

        Of a release only the released rows: a digest of the private table would let anybody check a guess of it.
        """
        released = self.sanitized
        config = json.dumps(self.config, sort_keys=True, default=str).encode()
        table = self.table if isinstance(released, Missing) else digest_of_table(released)
        return {"configuration": sha256(config).hexdigest(), "table": table}

    def to_polars(self) -> pl.DataFrame:
        """One row for each estimate, of everybody first; `truth` in rehearsals only."""
        from dovetail.report.notebook import report_frame

        return report_frame(self)

    def to_pandas(self) -> Any:
        """The same as a data frame of pandas, where that is installed."""
        from dovetail.report.notebook import pandas_of

        return pandas_of(self.to_polars())

    def save(self, folder: str | Path, *, force: bool = False) -> PrivacyReport:
        """Write report.html and report.json, of a release its table too, into a new folder, all or nothing.

        `force` replaces a folder that is there. The report that is returned names its files.
        """
        from dovetail.report.notebook import save_report

        saved: PrivacyReport = save_report(self, Path(folder), force=force)
        return saved

    def plot(self) -> Any:
        """A matplotlib figure (extra `studies`) of what was learned, and of how often guesses are right."""
        from dovetail.report.notebook import draw_report

        return draw_report(self)

    def document(self) -> dict[str, Any]:
        """The report as JSON-ready dictionaries, `schema_version` first."""
        from dovetail.report.verdict import judged  # reads documents, and so stands above this module

        document = {
            "schema_version": SCHEMA_VERSION,
            "title": self.title,
            "mode": self.mode,
            "entropy": self.entropy,
            "seed": Missing("drawn from the operating system") if self.seed is None else self.seed,
            "watermark": Missing("a release contains no truth") if self.watermark is None else self.watermark,
            "version": self.version,
            "made": self.made,
            "digests": self.digests,
            "collection": self.collection,
            "randomizer": self.randomizer,
            **_evaluation(self.evaluation),
            "rounds": self.rounds,
            "windows": self.windows,
            "questions": self.questions,
            "comparison": [_evaluation(evaluation) for evaluation in self.comparison],
            "assumptions": list(self.assumptions),
            "steps": list(self.steps),
            "release": self.release,
            "engine": self.engine,
            "files": self.files,
            "config": self.config,
        }
        ready: dict[str, Any] = to_jsonable(document)
        ready["verdict"] = to_jsonable(judged(ready).document())
        return ready


def digest_of_table(table: pl.DataFrame) -> str:
    """SHA-256 of the content of a table, whatever the order of its rows and columns."""
    return sha256(table.select(sorted(table.columns)).sort(table.columns).write_csv().encode()).hexdigest()


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    local = evaluation.local
    return {
        "shuffler": evaluation.shuffler,
        "local": {
            "epsilon": local.epsilon,
            "delta": local.delta,
            "source": local.source,
            "caveats": list(local.caveats),
        },
        "central": central_document(evaluation.central),
        "order": _order(evaluation.order),
        "leakage": evaluation.leakage,
        "linkage": evaluation.linkage,
        "attack": evaluation.attack,
        "attacks": evaluation.attacks
        if isinstance(evaluation.attacks, Missing)
        else [{"name": name, **to_jsonable(found)} for name, found in evaluation.attacks.items()],
        "learnability": evaluation.learnability,
        **_sections(evaluation.sections),
        "estimates": evaluation.estimates,
    }


def _sections(found: dict[str, dict[str, Any] | Missing] | Missing) -> dict[str, Any]:
    """Every section by its name, also those that were not measured."""
    taken = {*PrivacyReport.__dataclass_fields__, *Evaluation.__dataclass_fields__} & {*SECTIONS.names()}
    if taken:
        raise UnsupportedError(f"section {min(taken)!r} has the name of another part of a report; give it another.")
    names = SECTIONS.names()
    return {name: found if isinstance(found, Missing) else found.get(name, NO_SECTIONS) for name in names}


def central_document(central: CentralDP | Missing) -> Any:
    """The JSON form of a central guarantee, with its three lines."""
    if isinstance(central, Missing):
        return central
    return {
        "epsilon": central.epsilon,
        "all": central.all,
        "honest": central.honest,
        "colluding": central.colluding,
        "delta": central.delta,
        "n": central.n,
        "honest_n": central.honest_n,
        "neighbours": central.neighbours,
        "trust": central.trust,
        "method": central.method,
        "source": central.source,
        "numeric_lower": central.numeric.lower,
        "attack_lower": central.attack_lower,
        "lines": list(central.lines()),
        "caveats": [*central.caveats, *warnings_of(central.delta, central.n)],
    }


def _order(order: OrderEvaluation) -> dict[str, Any]:
    return {
        "alpha": order.guarantee.alpha,
        "shuffler": order.shuffler,
        "theta_n": order.theta_n,
        "source": order.guarantee.source,
        "caveats": list(order.guarantee.caveats),
        "summary": order.summary,
    }


def to_jsonable(value: Any) -> Any:
    """JSON-ready: dataclasses as dictionaries, Missing as null with its reason, infinity as "inf"."""
    if isinstance(value, Missing):
        return {"value": None, "reason": value.reason}
    if isinstance(value, IntervalEstimates):
        return {key: to_jsonable(item) for key, item in asdict(value).items() if item is not None}
    if isinstance(value, Estimates):
        told = {name: getattr(value, name) for name in value.__dataclass_fields__ if name != "beside"}
        return to_jsonable({**told, **value.beside})
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_jsonable(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_jsonable(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
