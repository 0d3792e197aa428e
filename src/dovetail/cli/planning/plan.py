"""`dovetail plan`: which epsilon for the accuracy that is needed, and what risk that is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.console.curves import Csv, Plot, check_places, write_curve
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.options import as_whole
from dovetail.cli.console.output import Force, Json, print_json, print_rows
from dovetail.cli.console.progress import progress_bar, tell
from dovetail.cli.planning.plan_dummies import plan_dummies
from dovetail.cli.planning.plan_vectors import plan_vectors_verb
from dovetail.core.display.losses import guess_in_words, upward
from dovetail.core.errors import ParameterError
from dovetail.report.number_format import ABSENT
from dovetail.report.sections.plans.plan_rows import plan_error, plan_objections, plan_rows

if TYPE_CHECKING:
    from rich.table import Table

    from dovetail.plan.planner import CollectionPlan, TradeoffRow


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
        typer.Option(help="delta of the central guarantee; default: a power of ten, at most 1e-6 and 1/(100 n)."),
    ] = None
    honest: Annotated[
        float | None, typer.Option(help="People assumed honest, or their share, such as 0.9; default all.")
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
    grid: Annotated[float | None, typer.Option(help="Mean: width of a grid step; default: fine enough.")] = None
    dimension: Annotated[float | None, typer.Option(help="Vector-mean: how many numbers a vector has.")] = None
    clip: Annotated[
        float | None, typer.Option(help="Vector-mean: Euclidean length to which longer vectors are shortened.")
    ] = None


@dataclass(frozen=True)
class Targets:
    """What is wanted."""

    error: Annotated[
        float | None, typer.Option(help="Wanted: how far one share or the mean may be off, with probability 95 %.")
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


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("plan")(flatten(_plan))


def _plan(
    question: Question,
    targets: Targets,
    out: Annotated[
        Path | None, typer.Option(help="Write a configuration for `dovetail run` with the plan's numbers (TOML).")
    ] = None,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
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
    if question.question == "vector-mean":
        plan_vectors_verb({**asked, "csv": csv, "plot": plot}, out=out, force=force, as_json=as_json)
        return
    for name in ("dimension", "clip"):
        if asked.pop(name) is not None:
            raise ParameterError(f"--{name} goes with --question vector-mean.")
    trust = asked["trust"]
    if trust != "local":
        plan_dummies({**asked, "csv": csv, "plot": plot}, out=out, as_json=as_json)
        return
    del asked["trust"]
    from dovetail.account.clones.binomial_tail import without_compiled_loops
    from dovetail.plan.planner import plan_collection
    from dovetail.report.sections.plans.plan_document import plan_document

    with without_compiled_loops():
        with progress_bar(hidden=as_json) as progress:
            plan = plan_collection(**asked, progress=progress)
        tell("what it costs to be more accurate")
        document = plan_document(plan)
    document["files"] = write_curve(
        [asdict(step) for step in plan.tradeoff], "error95", csv=csv, plot=plot, force=force, **_drawing(plan)
    )
    if out is not None:
        from dovetail.pipeline.config.plan_file import write_plan

        write_plan(plan, out)
        document["files"]["config"] = str(out)
    if as_json:
        from dovetail.report.document import to_jsonable

        print_json(to_jsonable(document))
    else:
        _print(plan)


def _people(question: Question) -> dict[str, Any]:
    """The arguments of the planner: whole numbers where they are counts, and the shuffle by its groups."""
    given = vars(question).copy()
    shuffler = given.pop("shuffler")
    if shuffler is not None:
        from dovetail.plan.shuffles import check_shuffle

        check_shuffle(shuffler, grouped=question.groups is not None or question.smallest_group is not None)
    whole = {name: as_whole(given[name]) for name in ("n", "k", "groups", "smallest_group", "dimension")}
    a_share = question.honest is not None and 0.0 < question.honest < 1.0
    return {**given, **whole, "honest": question.honest if a_share else as_whole(question.honest)}


def _drawing(plan: CollectionPlan) -> dict[str, Any]:
    return {
        "labels": {"epsilon": "shuffled batch (central ε)", "epsilon0": "one report (local ε)"},
        "y": "epsilon (nats)",
        "log_x": True,
        "log_y": True,
        "title": f"Price of accuracy: {plan.randomizer.name}, n = {plan.requirements.n:,}",
    }


def _print(plan: CollectionPlan) -> None:
    from rich.console import Console

    print_rows(f"Plan for {plan.requirements.n:,} people", plan_rows(plan))
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
