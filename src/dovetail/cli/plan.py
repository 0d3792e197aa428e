"""`dovetail plan`: which epsilon for the accuracy that is needed, and what risk that is."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.options import Percent, add_verbs, as_share, as_whole
from dovetail.cli.output import (
    Csv,
    Facts,
    Force,
    Full,
    Json,
    Plot,
    check_places,
    print_json,
    print_rows,
    show,
    write_curve,
    write_whole,
)
from dovetail.cli.progress import progress_bar, tell
from dovetail.core.display import guess_in_words
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.report.number_format import ABSENT, Unit, upward
from dovetail.report.plans import TITLES, plan_error, plan_objections, plan_rows, short_plan_rows, trusting_rows

if TYPE_CHECKING:
    from rich.table import Table

    from dovetail.job.questions_plan import PlannedQuestion, PlannedWay
    from dovetail.job.vector_plan import VectorPlan
    from dovetail.plan.planner import CollectionPlan, TradeoffRow


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
    show(to_jsonable(document), Facts(f"Plan for {plan.n:,} people, {TITLES[trust]}", rows), as_json=as_json)


def _first(rows: dict[str, str], names: tuple[str, ...], *, full: bool) -> dict[str, str]:
    """The rows that decide and every warning, or all."""
    return {name: row for name, row in rows.items() if full or name in names or name.startswith("note ")}


# `dovetail plan --question vector-mean`: how many people, which epsilon, and how far off the mean of vectors is.


NEEDS = {"n", "error", "epsilon", "epsilon0", "delta", "honest", "dimension", "clip", "randomizer"}
NO_GUESS = "vectors have no list of values that could be guessed"
_CONFIG = """\
# A plan. Replace what says FILL IN, then: dovetail run THIS_FILE
schema_version = 1
mode = "rehearsal" # "rehearsal" knows the truth and is for trying; "release" is what leaves the house

[data]
path = "FILL IN.parquet" # beside this file: a column of arrays in Parquet, or .npy, or .npz
private = "FILL IN" # the column of arrays

[vector]
dimension = {dimension}
clip = {clip!r} # Euclidean length to which vectors are shortened
randomizer = "{randomizer}"
epsilon = {epsilon0!r} # of one report
delta = {delta!r} # planned for {n:,} people: central epsilon {epsilon!r}
{more}"""


def plan_vectors_verb(asked: dict[str, Any], *, out: Path | None, force: bool, full: bool, as_json: bool) -> None:
    """Plan, print, and write the configuration that was asked for."""
    usual = {"question": "vector-mean", "trust": "local", "shares": "any"}
    for name, value in asked.items():
        if name not in NEEDS and value not in (None, usual.get(name)):
            raise ParameterError(f"--{name.replace('_', '-')} does not go with --question vector-mean.")
    for name in ("dimension", "clip"):
        if asked[name] is None:
            raise ParameterError(f"--question vector-mean needs --{name}.")
    from dovetail.job.vector_plan import plan_vectors

    with progress_bar(hidden=as_json) as progress:
        plan = plan_vectors(**{name: asked[name] for name in NEEDS}, progress=progress)
    document = _document(plan)
    if out is not None:
        text = _vectors_config(plan)
        write_whole(out, lambda place: _write(place, text), force=force)
        document["files"] = {"config": str(out)}
    from dovetail.report.document import to_jsonable

    rows = _first(_rows(plan), ("protection", "randomizer", "epsilon0", "epsilon", "error"), full=full)
    show(to_jsonable(document), Facts(f"Plan for {plan.n:,} people", rows), as_json=as_json)


def _write(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")


def _vectors_config(plan: VectorPlan) -> str:
    mechanism, honest = plan.mechanism, plan.central.honest_n
    chosen = {one.name: getattr(mechanism, one.name) for one in mechanism.settings()}
    more = "".join(f"{name} = {value!r}\n" for name, value in chosen.items() if value is not None)
    more += f"honest = {honest}\n" if honest < plan.n else ""
    return _CONFIG.format(
        dimension=mechanism.d, clip=float(mechanism.radius), randomizer=mechanism.name, epsilon0=plan.epsilon0,
        delta=plan.central.delta, n=plan.n, epsilon=plan.central.epsilon, more=more,
    )  # fmt: skip


def _document(plan: VectorPlan) -> dict[str, Any]:
    from dovetail.core.verdict import judge_central
    from dovetail.job.vector_plan import VectorPlan
    from dovetail.report.document import Missing, central_document

    return {
        **_numbers(plan),
        "n": plan.n,
        "dimension": plan.mechanism.d,
        "clip": plan.mechanism.radius,
        "local": {"epsilon": plan.mechanism.guarantee.epsilon, "delta": plan.mechanism.guarantee.delta},
        "central": central_document(plan.central),
        "verdict": judge_central(plan.central, local_delta=plan.mechanism.guarantee.delta).document(),
        "vulnerability": Missing(NO_GUESS),
        "alternatives": [
            {"randomizer": name, **(_numbers(one) if isinstance(one, VectorPlan) else {"reason": one})}
            for name, one in plan.others.items()
        ],
        "files": {},
    }


def _numbers(plan: VectorPlan) -> dict[str, Any]:
    mechanism = plan.mechanism
    return {
        "randomizer": mechanism.name,
        "epsilon0": plan.epsilon0,
        "epsilon": plan.central.epsilon,
        "delta": plan.central.delta,
        "error95": plan.error95,
        "standard_error": mechanism.error(plan.n),
        "coordinate_error": mechanism.coordinate_error(plan.n),
        "bias": mechanism.bias,
        "report_bits": mechanism.report_bits,
    }


def _rows(plan: VectorPlan) -> dict[str, str]:
    from dovetail.core.verdict import judge_central, numbered, warnings_of
    from dovetail.job.vector_plan import VectorPlan

    unit, mechanism, central = Unit.of("mean"), plan.mechanism, plan.central
    error, coordinate = plan.error95, mechanism.coordinate_error(plan.n)
    slack = "" if mechanism.guarantee.delta == 0.0 else f", delta {upward(mechanism.guarantee.delta)}"
    rows = {
        "protection": judge_central(central, local_delta=mechanism.guarantee.delta).sentence(),
        "question": f"mean of vectors of {mechanism.d:,} numbers, each shortened to length {mechanism.radius:g}",
        "randomizer": f"{mechanism.name} ({mechanism.label}), {mechanism.report_bits:,} bits a report",
        "epsilon0": f"{upward(plan.epsilon0)}{slack}: one report, whoever reads it",
        "epsilon": f"{upward(central.epsilon)} with delta {upward(central.delta)}: the shuffled batch, "
        f"{central.honest_n:,} of {plan.n:,} people honest",
        "error": f"{unit(error, error, ROUND_CEILING)} in Euclidean length, with 95 % probability",
        "one coordinate": f"standard error {unit(coordinate, coordinate, ROUND_CEILING)}",
    }
    rows |= numbered(warnings_of(central.delta, plan.n, honest=central.honest_n, epsilon0=plan.epsilon0))
    for name, one in plan.others.items():
        rows[f"or {name}"] = (
            f"epsilon0 {upward(one.epsilon0)}, epsilon {upward(one.central.epsilon)}, error "
            f"{unit(one.error95, one.error95, ROUND_CEILING)}, {one.mechanism.report_bits:,} bits"
            if isinstance(one, VectorPlan)
            else one
        )
    return rows


@dataclass(frozen=True)
class Question:
    """What is asked of whom."""

    question: Annotated[
        Literal["frequency", "mean", "vector-mean"],
        typer.Option(help="Shares of --k values, the mean of a number, or that of vectors."),
    ]
    n: Annotated[
        float | None, typer.Option(help="People who will answer, once each; left out, the least n for two wishes.")
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
    lower: Annotated[float | None, typer.Option(help="Mean: least number that a person can hold.")] = None
    upper: Annotated[float | None, typer.Option(help="Mean: largest number that a person can hold.")] = None
    grid: Annotated[float | None, typer.Option(help="Mean: width of a grid step; default: what admits the most.")] = (
        None
    )
    dimension: Annotated[float | None, typer.Option(help="Vector-mean: how many numbers a vector has.")] = None
    clip: Annotated[
        float | None, typer.Option(help="Vector-mean: Euclidean length to which longer vectors are shortened.")
    ] = None


@dataclass(frozen=True)
class Targets:
    """What is wanted."""

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
    shares: Annotated[
        Literal["any", "flat"],
        typer.Option(help="Frequency: the error holds whatever people hold (any), or for equally frequent values."),
    ] = "any"


def _plan(
    question: Question,
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
    if question.question != "frequency" and isinstance(targets.error, Percent):
        raise ParameterError("--error of a mean must be a number, not a percentage.")
    asked = {**_people(question), **{**vars(targets), "epsilon0": _one(targets.epsilon0)}}
    if question.question == "vector-mean":
        plan_vectors_verb({**asked, "csv": csv, "plot": plot}, out=out, force=force, full=full, as_json=as_json)
        return
    for name in ("dimension", "clip"):
        if asked.pop(name) is not None:
            raise ParameterError(f"--{name} goes with --question vector-mean.")
    trust = asked["trust"]
    if trust != "local":
        plan_dummies({**asked, "csv": csv, "plot": plot}, out=out, full=full, as_json=as_json)
        return
    del asked["trust"]
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

        write_plan(plan, out)
        document["files"]["config"] = str(out)
    if as_json:
        from dovetail.report.document import to_jsonable

        print_json(to_jsonable(document))
    else:
        _print(plan, full=full)


def _people(question: Question) -> dict[str, Any]:
    """The arguments of the planner: whole numbers where they are counts, and the shuffle by its groups."""
    given = vars(question).copy()
    shuffler = given.pop("shuffler")
    if shuffler is not None:
        from dovetail.plan.requirements import check_shuffle

        check_shuffle(shuffler, grouped=question.groups is not None or question.smallest_group is not None)
    whole = {name: as_whole(given[name]) for name in ("n", "k", "groups", "smallest_group", "dimension")}
    honest: Any = question.honest
    if isinstance(honest, Percent) and honest == 1.0:
        honest = None  # all of them, and not one
    a_share = honest is not None and (isinstance(honest, Percent) or 0.0 < honest < 1.0)
    return {**given, **whole, "honest": honest if a_share else as_whole(honest)}


def _drawing(plan: CollectionPlan) -> dict[str, Any]:
    return {
        "labels": {"epsilon": "shuffled batch (central ε)", "epsilon0": "one report (local ε)"},
        "y": "epsilon (nats)",
        "log_x": True,
        "log_y": True,
        "title": f"Price of accuracy: {plan.randomizer.name}, n = {plan.requirements.n:,}",
    }


def _print(plan: CollectionPlan, *, full: bool) -> None:
    from rich.console import Console

    title = f"Plan for {plan.requirements.n:,} people"
    if not full:
        print_rows(title, short_plan_rows(plan))
        typer.echo("--full prints the trade-off, other randomizers and every error.")
        return
    print_rows(title, plan_rows(plan))
    console = Console()
    console.print(_tradeoff(plan))
    if plan.alternatives:
        console.print(_alternatives(plan))
        for why, names in plan_objections(plan).items():
            console.print(f"{', '.join(names)}: {why}", markup=False, highlight=False)


def _tradeoff(plan: CollectionPlan) -> Table:
    table = _grid("Trade-off", ("epsilon0", "epsilon", "95 % error", "best guess", "gain"))
    for step in plan.tradeoff:
        guess = (ABSENT, ABSENT) if step.vulnerability is None else _risk_cells(plan, step)
        chosen = "bold" if step.epsilon0 == plan.epsilon0 else ""
        table.add_row(
            upward(step.epsilon0), upward(step.epsilon), plan_error(plan, step.error95), *guess, style=chosen
        )
    return table


def _risk_cells(plan: CollectionPlan, step: TradeoffRow) -> tuple[str, str]:
    assert plan.risk.exact is not None and step.vulnerability is not None
    guess = guess_in_words(step.vulnerability, plan.risk.exact.prior)
    return guess.best, guess.times


def _alternatives(plan: CollectionPlan) -> Table:
    """Numbers alone: what speaks against a randomizer stands below, where it needs no narrow cell."""
    table = _grid("Other randomizers", ("randomizer", "epsilon0", "epsilon", "95 % error", "report bits"))
    for row in plan.alternatives:
        if row.epsilon0 is None or row.epsilon is None or row.error95 is None or row.report_bits is None:
            table.add_row(row.randomizer, *(ABSENT,) * 4)
            continue
        numbers = (upward(row.epsilon0), upward(row.epsilon), plan_error(plan, row.error95), f"{row.report_bits:,}")
        table.add_row(row.randomizer, *numbers)
    return table


def _grid(title: str, columns: tuple[str, ...]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        *columns, title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for column in table.columns:
        column.overflow = "fold"
    table.columns[0].no_wrap = True
    return table


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
    promise together whoever looks, epsilon what everything that is released promises her, attack what no proof can
    promise less than. The table itself is not read; epsilons and errors are those of `run`.

    Example: dovetail plan-questions survey.toml --n 1e5
    """
    from dovetail.core.verdict import warnings_of
    from dovetail.job.questions import questions_of
    from dovetail.job.questions_plan import plan_questions

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
    document = {
        "schema_version": 1, "n": as_whole(n), "smallest": ways[0].central.n, "honest": ways[0].central.honest_n,
        "delta": ways[0].central.delta, "ask": asked.head.ask, "ways": {way.ask: _way(way) for way in ways},
        "notes": list(warnings_of(ways[0].central.delta, ways[0].central.n, honest=ways[0].central.honest_n)),
    }  # fmt: skip
    print_json(document) if as_json else _print_questions(document)


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
    measure = "share" if one.randomizer.question == "frequency" else "mean"
    return {
        "column": one.column, "measure": measure, "epsilon0": one.randomizer.guarantee.epsilon,
        "answers": one.expected, "standard_error": one.accuracy.standard_error, "error95": one.accuracy.error95,
        "population_error95": one.accuracy.population_error95,
    }  # fmt: skip


def _print_questions(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from dovetail.core.display import downward
    from dovetail.report.number_format import Unit

    group = "" if document["smallest"] == document["n"] else f", {document['smallest']:,} in the smallest group"
    honest = "" if document["honest"] == document["smallest"] else f", {document['honest']:,} of them honest"
    title = f"{document['n']:,} people{group}{honest}, delta {document['delta']:g}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    columns = [one["column"] for one in document["ways"]["all"]["questions"]]
    for heading in ("asked", "budget", "epsilon", "attack", "protection", *(f"± {column}" for column in columns)):
        left = heading in ("asked", "protection")
        table.add_column(heading, justify="left" if left else "right", overflow="fold")
    for ask, way in document["ways"].items():
        errors = [Unit.of(one["measure"])(one["error95"], one["error95"], ROUND_CEILING) for one in way["questions"]]
        losses = [
            upward(way["budget"]),
            upward(way["epsilon"]),
            downward(way["attack_lower"]),
            way["verdict"]["word"],
        ]
        table.add_row(WORDS[ask], *losses, *errors, style="bold" if ask == document["ask"] else "")
    console = Console()
    console.print(table)
    console.print(
        "budget: what a person's reports promise if the shuffler colludes; attack: no proof can promise less; "
        "protection: if the shuffler and the people counted on are honest; ±: how "
        "far a share or mean of these people is off with 95 % probability at most. Bold: what the file asks.",
        style="dim",
    )
    for note in document["notes"]:
        console.print(note, markup=False, highlight=False)


# `dovetail plan-strings`: which strings a search without a list of candidates would find.


CHANCES = (0.5, 0.95, 0.99)


def _plan_strings(
    n: Annotated[int, typer.Option(min=2, help="People who take part.")],
    epsilon: Annotated[float, typer.Option(help="Of the whole search, about one person's string; nats.")],
    delta: Annotated[float, typer.Option(parser=as_share, help="Its slack.")] = 1e-6,
    levels: Annotated[int, typer.Option(min=1, max=64, help="Bytes of a string that are asked for.")] = 8,
    out: Annotated[Path | None, typer.Option(help="Write the configuration of such a rehearsal.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Which strings a search without a list of candidates finds: how many people must hold one.

    The shuffler is trusted with the noise: its dummies hide exact counts, and no string is found that nobody holds.
    What is planned is what `run` does with [strings].

    Example: dovetail plan-strings --n 100000 --epsilon 1 --levels 8
    """
    from dovetail.core.verdict import Promise, judge, numbered, warnings_of
    from dovetail.job.strings import smallest_share
    from dovetail.report.number_format import upward
    from dovetail.shuffle.sampling.dummies import Dummies

    shares = {
        chance: smallest_share(n=n, epsilon=epsilon, delta=delta, levels=levels, wanted=chance) for chance in CHANCES
    }
    dummies = Dummies(2, epsilon, delta)
    if out is not None:

        def write(place: Path) -> None:
            place.write_text(_config(epsilon, delta, levels))

        write_whole(out, write, force=force)
    promise = Promise(epsilon, delta)
    verdict = judge(Promise(math.inf), shuffler=promise, people=promise, n=n)
    document = {
        "schema_version": 1, "verdict": verdict.document(),
        "n": n, "epsilon": epsilon, "delta": delta, "levels": levels, "trust": "shuffler",
        "group": n // levels, "threshold": dummies.reach + 1,
        "found": [{"chance": chance, "share": share, "people": share * n} for chance, share in shares.items()],
        "dummies_a_beginning": 257 * dummies.reach,
        "files": {"config": {"value": None, "reason": "name a file with --out"} if out is None else str(out)},
    }  # fmt: skip
    rows = {
        f"found with {chance:.0%}": f"held by {upward(100 * share)}% of the people, about {share * n:,.0f} of them"
        for chance, share in shares.items()
    }
    rows |= {
        "never found": "a string that nobody holds",
        "protection": verdict.sentence(),
        **numbered(warnings_of(delta, n)),
        "promise": f"ε = {epsilon:g} with δ = {delta:g} for the whole search; the shuffler makes the noise",
        "groups": f"{levels}, of about {n // levels:,} people; a beginning goes on from {dummies.reach + 1} reports",
        "messages": f"1 a person, and {257 * dummies.reach:,} dummies for each beginning that goes on",
    }  # fmt: skip
    show(document, Facts(f"Strings of {n:,} people", rows), as_json=as_json)


def _config(epsilon: float, delta: float, levels: int) -> str:
    return (
        'schema_version = 1\nmode = "rehearsal"\n\n[data]\npath = "table.csv"    # a row for each person\n'
        'person = "name"       # a hash of it says which byte she is asked for\nprivate = "string"\n\n'
        f'[strings]\ntrust = "shuffler"\nepsilon = {epsilon!r}\ndelta = {delta!r}\nlevels = {levels}\n'
    )


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    add_verbs(app, {"plan": _plan, "plan-questions": _plan_questions, "plan-strings": _plan_strings})
