"""`dovetail text plan`: which epsilon selects a good candidate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dovetail.cli.console.output import Json, print_json, print_rows
from dovetail.cli.text.options import SelectionName, UtilityName


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("plan")(_plan)


def _plan(
    candidates: Annotated[int, typer.Option(help="How many candidates there are.", min=1)],
    depth: Annotated[
        float, typer.Option(help="Lead of good candidates: as much as this many sentences can move.", min=0)
    ],
    probability: Annotated[float, typer.Option(help="How surely a good candidate shall be released.")] = 0.95,
    epsilon: Annotated[float | None, typer.Option(help="Asks how many good candidates it takes.")] = None,
    good: Annotated[
        int | None, typer.Option(help="Good candidates; asks which epsilon it takes. [default: 1]", min=1)
    ] = None,
    utility: UtilityName = "clipped",
    selection: SelectionName = "permute-and-flip",
    as_json: Json = False,
) -> None:
    """How many candidates must be good for an epsilon, or which epsilon finds some that are.

    Answers hold for the whole numbers by which `protect` draws: they ask a little more than the rule in real numbers
    of the paper's table. Good candidates lead all others by --depth sentences: in depth or votes,
    or by that many times the most that one sentence can move any other utility. For votes, candidates are clusters.
    --epsilon asks for b, --good (one, where neither is given) for epsilon, both for the probability.

    Example: dovetail text plan --candidates 5000 --depth 5 --probability 0.95 --epsilon 3
    """
    from dovetail.core.checks import probability as check_probability
    from dovetail.text.plan import drawn_probability, fewest_good, least_epsilon
    from dovetail.text.rules import SELECTIONS, UTILITIES, choose

    choose("utility", utility, UTILITIES)
    choose("selection", selection, SELECTIONS)
    check_probability("probability", probability)
    setting: dict[str, Any] = {"candidates": candidates, "lead": depth, "selection": selection}
    if epsilon is None:
        b = 1 if good is None else good
        spent = least_epsilon(good=b, sure=probability, **setting)
    else:
        spent = epsilon
        b = fewest_good(epsilon=spent, sure=probability, **setting) if good is None else good
    reached = drawn_probability(epsilon=spent, good=b, **setting)
    document = {
        "b": b, "epsilon": spent, "probability": reached, "candidates": candidates, "depth": depth,
        "utility": utility, "selection": selection,
    }  # fmt: skip
    if as_json:
        print_json(document)
    else:
        print_rows("Plan", {
            "good candidates": f"{b:,} of {candidates:,}, leading by {depth:g} sentences",
            "epsilon of a sentence": f"{spent:.6g}",
            "a good one is released with probability": f"{reached:.4f}",
        })  # fmt: skip
