"""`dovetail plan`: which epsilon for the accuracy that is needed, and what risk that is."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.options import Percent, as_share, as_whole, given, settings_group
from dovetail.cli.output import (
    Csv,
    Facts,
    Force,
    Full,
    Grid,
    Json,
    Plot,
    check_places,
    show,
    write_curve,
    write_text,
)
from dovetail.cli.progress import progress_bar, tell
from dovetail.core.display import counted, downward, guess_in_words
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.core.question import QUESTIONS
from dovetail.report.number_format import ABSENT, Unit, upward
from dovetail.report.plans import TITLES, plan_error, plan_objections, plan_rows, short_plan_rows, trusting_rows

PLANNED_APART = ("frequency", "mean")  # each with a search of its own

if TYPE_CHECKING:
    from dovetail.job.questions_plan import PlannedQuestion, PlannedWay
    from dovetail.plan.planner import CollectionPlan, TradeoffRow

    QuestionName = str
    QuestionSettings = Any
else:
    QuestionName = Literal[(*PLANNED_APART, *QUESTIONS.names())]
    QuestionSettings = settings_group("QuestionSettings", QUESTIONS)


# `dovetail plan --trust shuffler` and `users`: what dummies promise, against whom, and at what price.


def plan_dummies(asked: dict[str, Any], *, out: Path | None, full: bool, as_json: bool) -> None:
    """Plan, print, and write the configuration that was asked for."""
    from dovetail.plan.dummies import needs, plan_trusting

    trust = asked["trust"]
    of_a_mean = asked["question"] == "mean"
    known = needs(trust, asked["question"])
    for name, value in asked.items():
        if name not in known and value not in (None, "any"):
            raise ParameterError(f"--{name.replace('_', '-')} does not go with --trust {trust}.")
    needed = ("n", "lower", "upper") if of_a_mean else ("n", "k")
    if any(asked[name] is None for name in needed):
        options = " and ".join(f"--{name}" for name in needed)
        what = "a mean" if of_a_mean else "shares"
        raise ParameterError(f"--trust {trust} plans {what} for {options}: give them all.")
    plan = plan_trusting(**{name: asked[name] for name in known})
    document: dict[str, Any] = plan.document() | {"files": {}}
    if out is not None:
        from dovetail.job.plan_file import write_dummies_plan

        write_dummies_plan(plan, out)
        document["files"]["config"] = str(out)
    from dovetail.report.document import to_jsonable

    rows = _first(trusting_rows(plan), ("protection", "trust", "but", "epsilon", "error"), full=full)
    show(
        to_jsonable(document),
        Facts(f"Plan for {counted(plan.n, 'person', 'people')}, {TITLES[trust]}", rows),
        as_json=as_json,
    )


def _first(rows: dict[str, str], names: tuple[str, ...], *, full: bool) -> dict[str, str]:
    """The rows that decide and every warning, or all."""
    return {name: row for name, row in rows.items() if full or name in names or name.startswith("note ")}


# `dovetail plan --question covariance`, or another question of the registry: planned by its own predicted error.


TAKEN = {
    "n",
    "trust",
    "dummies",
    "rounds",
    "error",
    "epsilon",
    "epsilon0",
    "delta",
    "honest",
    "randomizer",
    "constant_values",
}
OF_DATA = ("lower", "upper", "grid", "k")


def plan_question_verb(
    asked: dict[str, Any], settings: dict[str, Any], *, out: Path | None, force: bool, full: bool, as_json: bool
) -> None:
    """Plan, print, and write the configuration that was asked for."""
    from dovetail.job.plan_file import question_toml
    from dovetail.job.question_plan import data_of, plan_question, question_document, question_rows

    ask = _checked(asked, settings)
    data = given({name: asked[name] for name in OF_DATA})
    plan = plan_question(ask, settings=settings, data=data_of(data), **{name: asked[name] for name in TAKEN})
    document = question_document(plan)
    if out is not None:
        write_text(out, question_toml(plan.config), force=force)
        document["files"] = {"config": str(out)}
    from dovetail.report.document import to_jsonable

    rows = _first(question_rows(plan), ("protection", "question", "epsilon0", "epsilon", "error"), full=full)
    show(
        to_jsonable(document), Facts(f"Plan for {counted(plan.people.n, 'person', 'people')}", rows), as_json=as_json
    )


def _checked(asked: dict[str, Any], settings: dict[str, Any]) -> str:
    """The question, unless an option does not go with it or is missing."""
    from dovetail.job.question_plan import left_out

    ask: str = asked["question"]
    known = QUESTIONS[ask].settings()
    of_data = () if QUESTIONS[ask].of_arrays else OF_DATA
    taken = {"question", *TAKEN, *of_data, *(one.name for one in known)}
    for name, value in {**asked, **settings}.items():
        if name not in taken and value not in (None, False, "any"):
            raise ParameterError(f"--{name.replace('_', '-')} does not go with --question {ask}.")
    missing = left_out(ask, given({**asked, **settings}))
    if missing:
        raise ParameterError(f"--question {ask} needs --{' and --'.join(missing).replace('_', '-')}.")
    return ask


@dataclass(frozen=True)
class Question:
    """The question, and the people who answer it."""

    question: Annotated[
        QuestionName,
        typer.Option(
            help="Shares of --k values, the mean of a number, that of vectors, or how two numbers go together."
        ),
    ]
    n: Annotated[
        float | None,
        typer.Option(help="People who will answer, once each; left out, the least n for two requirements."),
    ] = None
    delta: Annotated[
        float | None,
        typer.Option(
            parser=as_share,
            help="delta of the central guarantee; default: a power of ten, at most 1e-6 and 1/(100 n).",
        ),
    ] = None
    honest: Annotated[
        float | None,
        typer.Option(parser=as_share, help="People assumed honest, or their share, such as 0.9; default all."),
    ] = None
    shuffler: Annotated[
        str | None, typer.Option(help="Shuffle to plan for: everybody together (default), or inside groups.")
    ] = None
    groups: Annotated[float | None, typer.Option(help="Shuffled inside each of so many equal groups.")] = None
    smallest_group: Annotated[
        float | None, typer.Option(help="Shuffled inside groups of which the smallest has so many people.")
    ] = None
    k: Annotated[float | None, typer.Option(help="Frequency: values that a person can hold.")] = None
    lower: Annotated[float | None, typer.Option(help="Mean, covariance: least number that a person can hold.")] = None
    upper: Annotated[float | None, typer.Option(help="Mean, covariance: largest number that a person can hold.")] = (
        None
    )
    grid: Annotated[float | None, typer.Option(help="Mean: width of a grid step; default: what admits the most.")] = (
        None
    )


@dataclass(frozen=True)
class Targets:
    """Targets of the plan: accuracy, privacy and trust."""

    error: Annotated[
        float | None,
        typer.Option(
            parser=as_share, help="Wanted: how far one share or the mean may be off, with probability 95 %."
        ),
    ] = None
    epsilon: Annotated[
        float | None, typer.Option(help="Wanted: central epsilon, nats; with --error as well, its ceiling.")
    ] = None
    epsilon0: Annotated[list[str] | None, typer.Option(help="Wanted: local epsilon of one report, nats.")] = None
    randomizer: Annotated[
        str | None, typer.Option(help="Force one randomizer, by its name; a wrong name lists those that fit.")
    ] = None
    trust: Annotated[
        Literal["local", "shuffler", "users"],
        typer.Option(
            help="Who makes the noise: every person alone (local), a shuffler that adds dummies, or people who send "
            "dummies (users)."
        ),
    ] = "local"
    dummies: Annotated[
        str | None,
        typer.Option(
            help="With --trust shuffler, which dummies it adds: geometric, gaussian, digits (of a mean: a report of "
            "each digit) or sparse (few for a long list, no delta; frequent answers pay); default the best by error."
        ),
    ] = None
    rounds: Annotated[
        int | None,
        typer.Option(help="With --trust shuffler: releases about the same people that keep epsilon together."),
    ] = None
    constant_values: Annotated[
        bool,
        typer.Option(
            "--constant-values",
            help="With --trust local: nobody's value ever changes, so everybody draws one answer for all rounds, "
            "which together promise what one does.",
        ),
    ] = False
    shares: Annotated[
        Literal["any", "flat"],
        typer.Option(help="Frequency: the error holds whatever people hold (any), or for equally frequent values."),
    ] = "any"


def _plan(
    question: Question,
    settings: QuestionSettings,
    targets: Targets,
    out: Annotated[
        Path | None, typer.Option(help="Write a configuration for `dovetail run` with the plan's numbers (TOML).")
    ] = None,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Plan a collection: how many people, which epsilon, how accurate, and what risk that is.

    Any one of --n, --error and --epsilon (or --epsilon0) may be left out, and is solved for. Recommends a randomizer;
    says what may be promised if the shuffler and everybody, only some people, or nobody is honest, and what an
    attacker can guess. Infeasible requirements are refused, with what to relax.

    Example: dovetail plan --question frequency --k 4 --error 0.02 --epsilon 0.1
    """
    check_places(csv=csv, plot=plot, out=out, force=force)
    asked = {**_people(question), **{**vars(targets), "epsilon0": _one(targets.epsilon0)}}
    if isinstance(targets.error, Percent):
        _refuse_percent(asked["question"])
    own = given({**vars(settings)})
    if asked["question"] not in PLANNED_APART:
        asked |= {"csv": csv, "plot": plot}
        plan_question_verb(asked, own, out=out, force=force, full=full, as_json=as_json)
        return
    for name in own:
        takers = [kind.name for kind in QUESTIONS if name in {one.name for one in kind.settings()}]
        raise ParameterError(f"--{name.replace('_', '-')} goes with --question {' or '.join(takers)}.")
    trust, constant = asked["trust"], asked.pop("constant_values")
    if trust != "local" and constant:
        raise ParameterError("--constant-values goes with --trust local: dummies are drawn for each round.")
    if trust != "local":
        plan_dummies({**asked, "csv": csv, "plot": plot}, out=out, full=full, as_json=as_json)
        return
    del asked["trust"]
    for name in ("dummies", "rounds"):
        if asked.pop(name) is not None:
            raise ParameterError(f"--{name} goes with --trust shuffler.")
    from dovetail.account.clones import without_compiled_loops
    from dovetail.plan.planner import plan_collection
    from dovetail.report.plans import plan_document

    with without_compiled_loops():
        with progress_bar(hidden=as_json) as progress:
            plan = plan_collection(**asked, progress=progress)
        tell("what it costs to be more accurate")
        document = plan_document(plan)
    document["files"] = write_curve(
        [asdict(step) for step in plan.tradeoff], "error95", csv=csv, plot=plot, force=force, **_drawing(plan)
    )
    if out is not None:
        from dovetail.job.plan_file import write_plan

        write_plan(plan, out, constant_values=constant)
        document["files"]["config"] = str(out)
    from dovetail.noise.local import Local
    from dovetail.noise.memoized import Memoized
    from dovetail.report.document import to_jsonable

    once = Memoized(Local(plan.randomizer)).repeated(plan.randomizer.guarantee)[:1] if constant else ()
    document |= {"constant_values": True} if constant else {}
    show(to_jsonable(document), *_blocks(plan, out=out, full=full), *once, as_json=as_json)


def _people(question: Question) -> dict[str, Any]:
    """The arguments of the planner: whole numbers where they are counts, and the shuffle by its groups."""
    from dovetail.plan.requirements import SAME, check_shuffle

    given = {**vars(question), "question": SAME.get(question.question, question.question)}
    shuffler = given.pop("shuffler")
    if shuffler is not None:
        check_shuffle(shuffler, grouped=question.groups is not None or question.smallest_group is not None)
    whole = {name: as_whole(given[name]) for name in ("n", "k", "groups", "smallest_group")}
    honest: Any = question.honest
    if isinstance(honest, Percent) and honest == 1.0:
        honest = None  # all of them, and not one
    a_share = honest is not None and (isinstance(honest, Percent) or 0.0 < honest < 1.0)
    return {**given, **whole, "honest": honest if a_share else as_whole(honest)}


def _refuse_percent(question: str) -> None:
    """ParameterError for a question whose error is no share."""
    kind = QUESTIONS[{"frequency": "shares", "mean": "number"}.get(question, question)]
    if (kind.planned_measure or kind.measure) != "share":
        raise ParameterError(f"--error of {kind.label} must be a number, not a percentage.")


def _drawing(plan: CollectionPlan) -> dict[str, Any]:
    return {
        "labels": {"epsilon": "shuffled batch (central ε)", "epsilon0": "one report (local ε)"},
        "y": "epsilon (nats)",
        "log_x": True,
        "log_y": True,
        "title": f"Price of accuracy: {plan.randomizer.label}, n = {plan.requirements.n:,}",
    }


def _with_a_table(out: Path | None) -> str:
    """How a plan goes on."""
    place, before = ("plan.toml", "--out plan.toml keeps it, then: ") if out is None else (shlex.quote(str(out)), "")
    return f"With a table: {before}dovetail check TABLE --private COLUMN --plan {place}"


def _blocks(plan: CollectionPlan, *, out: Path | None, full: bool) -> Iterator[str | Facts | Grid]:
    title = f"Plan for {counted(plan.requirements.n, 'person', 'people')}"
    if not full:
        yield Facts(title, short_plan_rows(plan))
        yield "--full prints the trade-off, other randomizers and every error."
        yield _with_a_table(out)
        return
    yield Facts(title, plan_rows(plan))
    yield _tradeoff(plan)
    if plan.alternatives:
        yield _alternatives(plan)
        for why, names in plan_objections(plan).items():
            yield f"{', '.join(names)}: {why}"


def _tradeoff(plan: CollectionPlan) -> Grid:
    rows = []
    for step in plan.tradeoff:
        guess = (ABSENT, ABSENT) if step.vulnerability is None else _risk_cells(plan, step)
        rows.append((upward(step.epsilon0), upward(step.epsilon), plan_error(plan, step.error95), *guess))
    chosen = next((i for i, step in enumerate(plan.tradeoff) if step.epsilon0 == plan.epsilon0), None)
    return Grid("Trade-off", ("epsilon0", "epsilon", "95 % error", "best guess", "gain"), rows, chosen)


def _risk_cells(plan: CollectionPlan, step: TradeoffRow) -> tuple[str, str]:
    assert plan.risk.exact is not None and step.vulnerability is not None
    guess = guess_in_words(step.vulnerability, plan.risk.exact.prior)
    return guess.best, guess.times


def _alternatives(plan: CollectionPlan) -> Grid:
    """Numbers alone: what speaks against a randomizer stands below, where it needs no narrow cell."""
    rows = []
    for row in plan.alternatives:
        numbers: tuple[str, ...] = (ABSENT,) * 4
        if None not in (row.epsilon0, row.epsilon, row.error95, row.report_bits):
            error = plan_error(plan, row.error95)  # type: ignore[arg-type]
            numbers = (upward(row.epsilon0), upward(row.epsilon), error, f"{row.report_bits:,}")
        rows.append((row.randomizer, *numbers))
    return Grid("Other randomizers", ("randomizer", "epsilon0", "epsilon", "95 % error", "report bits"), rows)


def _one(texts: list[str] | None) -> Any:
    """The number behind an option; several are handed on, to be refused with the reason."""
    if not texts:
        return None
    try:
        values = [float(part) for text in texts for part in text.split(",")]
    except ValueError:
        from dovetail.core.checks import refuse

        raise refuse("epsilon0", "a number", ", ".join(texts)) from None
    return values[0] if len(values) == 1 else values


# `dovetail plan-questions`: several columns, asked in three ways, before anybody is asked.


WORDS = {
    "all": "all, each answer shuffled by itself",
    "joint": "all, in one report",
    "one": "one each, drawn by chance",
}


def _plan_questions(
    config: Annotated[Path, typer.Argument(help="TOML file with [[questions]], as `dovetail run` reads it.")],
    n: Annotated[float, typer.Option(help="People, each of whom is asked.")],
    smallest_group: Annotated[
        float | None, typer.Option(help="People of the smallest group, where [shuffle] groups has groups.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Several columns of the same people: what each way to ask them promises a person, and how accurate it is.

    `ask` in the file is "all", "joint" or "one"; all three stand side by side. Budget is what a person's reports
    promise together, epsilon what everything that is released promises her, attack what no proof can
    promise less than. The table itself is not read; epsilons and errors are those of `run`.

    Example: dovetail plan-questions survey.toml --n 1e5
    """
    from dovetail.core.verdict import warnings_of
    from dovetail.job.questions import questions_of
    from dovetail.job.questions_plan import plan_questions
    from dovetail.report.document import to_jsonable

    asked = questions_of(config)
    if asked is None:
        raise ConfigError(f"{config}: has no [[questions]]; `dovetail plan` is for one column.")
    with progress_bar(hidden=as_json) as progress:
        ways = plan_questions(
            asked,
            as_whole(n),
            smallest=None if smallest_group is None else as_whole(smallest_group),
            progress=progress,
        )
    central = ways[0].central
    honest = central.n if central.trust == "shuffler" else central.honest_n  # whose dummies hide without any of them
    document = {
        "schema_version": 1, "n": as_whole(n), "smallest": central.n, "honest": honest,
        "delta": central.delta, "ask": asked.head.ask, "ways": {way.ask: _way(way) for way in ways},
        "notes": list(warnings_of(central.delta, central.n, honest=honest)),
    }  # fmt: skip
    show(to_jsonable(document) if as_json else document, *_question_blocks(document), as_json=as_json)


def _way(way: PlannedWay) -> dict[str, Any]:
    from dovetail.core.verdict import judge_central

    central = way.central
    return {
        "messages": way.messages,
        "budget": central.colluding,
        "epsilon": central.epsilon,
        "attack_lower": central.attack_lower,
        "method": central.method,
        "verdict": judge_central(central).document(),
        "questions": [_question(one) for one in way.questions],
    }


def _question(one: PlannedQuestion) -> dict[str, Any]:
    return {
        "column": one.column, "measure": one.measure, "epsilon0": one.randomizer.guarantee.epsilon,
        "answers": one.expected, "standard_error": one.accuracy.standard_error, "error95": one.accuracy.error95,
        "population_error95": one.accuracy.population_error95,
    }  # fmt: skip


def _question_blocks(document: dict[str, Any]) -> Iterator[str | Grid]:
    group = "" if document["smallest"] == document["n"] else f", {document['smallest']:,} in the smallest group"
    honest = "" if document["honest"] == document["smallest"] else f", {document['honest']:,} of them honest"
    columns = [one["column"] for one in next(iter(document["ways"].values()))["questions"]]
    rows = []
    for ask, way in document["ways"].items():
        errors = [Unit.of(one["measure"])(one["error95"], one["error95"], ROUND_CEILING) for one in way["questions"]]
        losses = (upward(way["budget"]), upward(way["epsilon"]), downward(way["attack_lower"]))
        rows.append((WORDS[ask], *losses, way["verdict"]["word"], *errors))
    heads = ("asked", "budget", "epsilon", "attack", "protection", *(f"± {column}" for column in columns))
    chosen = list(document["ways"]).index(document["ask"])
    yield Grid(f"{document['n']:,} people{group}{honest}, delta {upward(document['delta'])}", heads, rows, chosen)
    yield (
        "budget: what a person's reports promise if the shuffler colludes; attack: no proof can promise less; "
        "protection: if the shuffler and the people counted on are honest; ±: how "
        "far a share or mean of these people is off with 95 % probability at most. Bold: what the file asks."
    )
    yield from document["notes"]


# `dovetail plan-strings`: which strings a search without a list of candidates would find.


CHANCES = (0.5, 0.95, 0.99)


def _plan_strings(
    n: Annotated[int, typer.Option(min=2, help="People who take part.")],
    epsilon: Annotated[float, typer.Option(help="Of the whole search, about one person's string; nats.")],
    delta: Annotated[float, typer.Option(parser=as_share, help="Its slack.")] = 1e-6,
    levels: Annotated[int, typer.Option(min=1, max=64, help="Bytes of a string that are asked for.")] = 8,
    keep: Annotated[int, typer.Option(min=1, max=1024, help="Beginnings that go on to the next byte.")] = 256,
    trust: Annotated[Literal["shuffler", "users"], typer.Option(help="Who makes dummies.")] = "shuffler",
    dummies: Annotated[
        Literal["geometric", "gaussian", "sparse"], typer.Option(help="Which ones the shuffler adds.")
    ] = "geometric",
    out: Annotated[Path | None, typer.Option(help="Write the configuration of such a rehearsal.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Which strings a search without a list of candidates finds: how many people must hold one.

    The shuffler or people are trusted with the noise, as their dummies hide exact counts. Where numbers of dummies
    have an end (geometric, gaussian) no string is found that nobody holds; releases take no others.
    What is planned is what `run` does with [strings].

    Example: dovetail plan-strings --n 100000 --epsilon 1 --levels 8
    """
    import numpy as np

    from dovetail.core.noise import NOISES, People
    from dovetail.core.verdict import Promise, judge, numbered, warnings_of
    from dovetail.job.strings import least_share, section_of, threshold_of, widest

    terms: dict[str, Any] = {
        "epsilon": epsilon, "delta": delta, "levels": levels, "keep": keep, "trust": trust, "dummies": dummies,
    }  # fmt: skip
    asked = section_of(**terms)
    shares = {chance: least_share(asked, n, wanted=chance) for chance in CHANCES}
    (noise, symbols), bounded = widest(asked, n), NOISES[asked.noise].bounded
    threshold = math.ceil(threshold_of(noise, symbols, n // levels))
    added = 257 * noise.expected(np.zeros(symbols), People(n // levels)).counts[0]
    if out is not None:
        write_text(out, _config(terms), force=force)
    promise = Promise(epsilon, 0.0 if asked.dummies == "sparse" else delta)
    hidden = promise if trust == "shuffler" else None
    verdict = judge(Promise(math.inf), shuffler=hidden, people=promise, n=n if hidden else n // levels)
    document = {
        "schema_version": 1, "verdict": verdict.document(),
        "n": n, **terms, "group": n // levels, "threshold": threshold,
        "found": [{"chance": chance, "share": share, "people": share * n} for chance, share in shares.items()],
        "beginnings": symbols // 257, "dummies_a_beginning": round(added),
        "files": {"config": {"value": None, "reason": "name a file with --out"} if out is None else str(out)},
    }  # fmt: skip
    rows = {
        f"found with {chance:.0%}": f"held by {upward(100 * share)}% of the people, about {share * n:,.0f} of them"
        for chance, share in shares.items()
    }
    rows |= {
        "never found" if bounded else "found with 5%, at most": "a string that nobody holds",
        "protection": verdict.sentence(),
        **numbered(warnings_of(promise.delta, n)),
        "promise": f"ε = {upward(epsilon)} with δ = {upward(promise.delta)} for the whole search; "
        f"{'the shuffler makes' if hidden else 'people make'} the noise",
        "groups": f"{levels}, of about {n // levels:,} people; a beginning goes on from {threshold} reports",
        "beginnings": f"{symbols // 257:,} go on, at most",
        "messages": f"1 a person, and {round(added):,} dummies for each beginning that goes on",
    }  # fmt: skip
    show(document, Facts(f"Strings of {n:,} people", rows), as_json=as_json)


def _config(terms: dict[str, Any]) -> str:
    return (
        'schema_version = 1\nmode = "rehearsal"\n\n[data]\npath = "table.csv"    # a row for each person\n'
        'person = "name"       # a hash of it says which byte she is asked for\nprivate = "string"\n\n'
        "[strings]\n" + "".join(f"{name} = {value!r}\n" for name, value in terms.items())
    )


VERBS = {"plan": _plan, "plan-questions": _plan_questions, "plan-strings": _plan_strings}
