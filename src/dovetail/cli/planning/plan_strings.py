"""`dovetail plan-strings`: which strings a search without a list of candidates would find."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.console.output import Force, Json, print_json, print_rows, write_whole

CHANCES = (0.5, 0.95, 0.99)


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("plan-strings")(_plan_strings)


def _plan_strings(
    n: Annotated[int, typer.Option(min=2, help="People who take part.")],
    epsilon: Annotated[float, typer.Option(help="Of the whole search, about one person's string; nats.")],
    delta: Annotated[float, typer.Option(help="Its slack.")] = 1e-6,
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
    from dovetail.pipeline.strings.recall import smallest_share
    from dovetail.report.number_format import upward
    from dovetail.shuffle.dummies.dummies import Dummies

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
    if as_json:
        print_json(document)
        return
    rows = {
        f"found with {chance:.0%}": f"held by {upward(100 * share)}% of the people, about {share * n:,.0f} of them"
        for chance, share in shares.items()
    }
    print_rows(f"Strings of {n:,} people", {
        **rows,
        "never found": "a string that nobody holds",
        "protection": verdict.sentence(),
        **numbered(warnings_of(delta, n)),
        "promise": f"ε = {epsilon:g} with δ = {delta:g} for the whole search; the shuffler makes the noise",
        "groups": f"{levels}, of about {n // levels:,} people; a beginning goes on from {dummies.reach + 1} reports",
        "messages": f"1 a person, and {257 * dummies.reach:,} dummies for each beginning that goes on",
    })  # fmt: skip


def _config(epsilon: float, delta: float, levels: int) -> str:
    return (
        'schema_version = 1\nmode = "rehearsal"\n\n[data]\npath = "table.csv"    # a row for each person\n'
        'person = "name"       # a hash of it says which byte she is asked for\nprivate = "string"\n\n'
        f'[strings]\ntrust = "shuffler"\nepsilon = {epsilon!r}\ndelta = {delta!r}\nlevels = {levels}\n'
    )
