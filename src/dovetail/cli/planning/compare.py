"""`dovetail compare`: which mechanism leaks least at the accuracy that is needed, and to whom."""

from __future__ import annotations

from decimal import ROUND_CEILING
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.output import Json, Seed, entropy_of, print_json
from dovetail.report.number_format import ABSENT, Unit, round_up, upward

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dovetail.plan.compare.comparison import Adversary, ComparedMechanism, MechanismComparison

_UPPER = ("sampled", "bracket")


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("compare")(_compare)


def _compare(
    n: Annotated[float, typer.Option(help="People who will answer, once each.")],
    k: Annotated[float, typer.Option(help="Values that a person can hold.")],
    error: Annotated[float, typer.Option(help="How far one share may be off, with probability 95 %.")],
    delta: Annotated[
        float | None, typer.Option(help="delta of the central guarantee, well below 1/n; default 1/(100 n).")
    ] = None,
    honest: Annotated[float | None, typer.Option(help="People assumed honest; default all.")] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Mechanisms of equal accuracy, side by side: what each leaks to three adversaries.

    Every randomizer with the least epsilon0 that reaches the error, with its reports linked to their senders (only)
    and in uniformly random order (and shuffle), beside the bare values in random order (shuffle only). The
    uninformed adversary knows nobody's value, the strong one everybody else's, a colluding shuffler tells who sent
    which report. Each cell is the rank, the chance of guessing one person's value in one try, and the factor by
    which that exceeds a blind guess; "at most" marks the upper end of an interval.

    Example: dovetail compare --n 1e4 --k 4 --error 0.03
    """
    from dovetail.plan.compare.mechanisms import compare_mechanisms

    asked: dict[str, Any] = {"n": n, "k": k, "error": error, "delta": delta, "honest": honest}  # 1e6 is whole
    found = compare_mechanisms(**asked, rng=entropy_of(seed))
    if as_json:
        print_json(found.document())
    else:
        from rich.console import Console

        _print(found, Console())


def _print(found: MechanismComparison, console: Console) -> None:
    console.print(_table(found))
    for reason, names in _absent(found).items():
        console.print(f"{ABSENT} {', '.join(names)}: {reason}", soft_wrap=True, markup=False, highlight=False)
    for note in found.notes:
        console.print(f"* {note}", soft_wrap=True, markup=False, highlight=False)


def _table(found: MechanismComparison) -> Table:
    from rich import box
    from rich.table import Table

    from dovetail.plan.compare.comparison import ADVERSARIES

    people = f"{found.n:,} people" + ("" if found.honest == found.n else f" ({found.honest:,} honest)")
    title = (
        f"{people}, {found.k:,} values, error {found.error:g}, delta {found.delta:.3g}; blind guess {1 / found.k:.4g}"
    )
    heads = ("mechanism", "epsilon0", "epsilon", *ADVERSARIES)
    table = Table(*heads, title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for one in found.mechanisms:
        promises = (ABSENT if isinstance(value, str) else upward(value) for value in (one.epsilon0, one.epsilon))
        table.add_row(one.name, *promises, *(_cell(found, one, adversary) for adversary in ADVERSARIES))
    return table


def _cell(found: MechanismComparison, one: ComparedMechanism, adversary: Adversary) -> str:
    leak = one.leak(adversary)
    if isinstance(leak, str):
        return ABSENT
    most = leak.ends.upper if leak.method in _UPPER else leak.additive
    chance = Unit.of("share")(min(1.0, leak.prior + most), most, ROUND_CEILING)
    limit = "at most " if leak.method in _UPPER else ""
    return f"{found.rank(one, adversary)}. {limit}{chance}, x {round_up(1.0 + most / leak.prior, 3):g}"


def _absent(found: MechanismComparison) -> dict[str, list[str]]:
    """Why numbers are missing, and in which rows."""
    from dovetail.plan.compare.comparison import ADVERSARIES

    reasons: dict[str, list[str]] = {}
    for one in found.mechanisms:
        for reason in dict.fromkeys(leak for leak in map(one.leak, ADVERSARIES) if isinstance(leak, str)):
            reasons.setdefault(reason, []).append(one.name)
    return reasons
