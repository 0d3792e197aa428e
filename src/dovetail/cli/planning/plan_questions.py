"""`dovetail plan-questions`: several columns, asked in three ways, before anybody is asked."""

from __future__ import annotations

from decimal import ROUND_CEILING
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.options import as_whole
from dovetail.cli.console.output import Json, print_json
from dovetail.cli.console.progress import progress_bar
from dovetail.core.errors import ConfigError

if TYPE_CHECKING:
    from dovetail.pipeline.questions.plan import PlannedQuestion, PlannedWay

WORDS = {
    "all": "all, each answer shuffled by itself",
    "joint": "all, in one report",
    "one": "one each, drawn by chance",
}


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("plan-questions")(_plan_questions)


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
    from dovetail.pipeline.questions.config import questions_of
    from dovetail.pipeline.questions.plan import plan_questions

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
    print_json(document) if as_json else _print(document)


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


def _print(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from dovetail.core.display.losses import downward, upward
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
