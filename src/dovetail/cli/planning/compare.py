"""`dovetail compare`: which mechanism leaks least at the accuracy that is needed, and to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.console.output import Json, Seed, entropy_of, print_json
from dovetail.cli.console.progress import progress_bar
from dovetail.core.display.losses import guess_in_words, upward
from dovetail.report.number_format import ABSENT, percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dovetail.plan.compare.adversaries import AdversaryLeakage
    from dovetail.plan.compare.comparison import Adversary, MechanismComparison

_UPPER = ("sampled", "bracket")
_KNOWS = {
    "uninformed": "Uninformed adversary: knows nobody's value",
    "strong": "Strong adversary: knows the values of all others",
    "colluding": "Colluding shuffler: knows who sent which report",
}


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
    which report. One table for each, from the least leakage to the most: the vulnerability is the chance that the
    best guess at one person's value is right, uniform prior; the multiplicative leakage is the factor by which that
    exceeds the blind guess. Epsilon is what is promised against this adversary.

    Example: dovetail compare --n 1e4 --k 4 --error 0.03
    """
    from dovetail.plan.compare.mechanisms import compare_mechanisms

    asked: dict[str, Any] = {"n": n, "k": k, "error": error, "delta": delta, "honest": honest}  # 1e6 is whole
    with progress_bar(hidden=as_json) as progress:
        found = compare_mechanisms(
            **asked, rng=entropy_of(seed), progress=lambda done, total: progress("three adversaries", done, total)
        )
    if as_json:
        print_json(found.document())
    else:
        from rich.console import Console

        _print(found, Console())


def _print(found: MechanismComparison, console: Console) -> None:
    from dovetail.plan.compare.comparison import ADVERSARIES

    for line in _question(found):
        console.print(line, markup=False, highlight=False)
    for adversary in ADVERSARIES:
        console.print(_table(found, adversary))
    for note in _notes(found):
        console.print(note, markup=False, highlight=False)


def _question(found: MechanismComparison) -> Iterator[str]:
    people = f"{found.n:,} people" + ("" if found.honest == found.n else f" ({found.honest:,} honest)")
    yield f"{people}, {found.k:,} values, 95 % error of a share {found.error:g}, delta {found.delta:.3g}."
    yield f"Uniform prior: a blind guess is right with probability {percent(1 / found.k)}."
    yield ""


def _table(found: MechanismComparison, adversary: Adversary) -> Table:
    """From the least leakage to the most; what is not known comes last."""
    from rich import box
    from rich.table import Table

    promise = "epsilon0" if adversary == "colluding" else "epsilon"
    heads = ("rank", "mechanism", promise, "vulnerability", "multiplicative leakage")
    table = Table(
        title=_KNOWS[adversary], title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False,
        collapse_padding=True,
    )  # fmt: skip
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 1 else "right", max_width=14 if place == 4 else None)
    known = found.order(adversary)
    for one in (*known, *(one for one in found.mechanisms if one not in known)):
        bound = getattr(one, promise)
        rank = found.rank(one, adversary)
        table.add_row(
            ABSENT if rank is None else str(rank),
            one.name.replace("_", " "),
            ABSENT if isinstance(bound, str) else upward(bound),
            *_cells(one.leak(adversary)),
        )
    return table


def _cells(leak: AdversaryLeakage | str) -> tuple[str, str]:
    """Vulnerability and multiplicative leakage, rounded up."""
    if isinstance(leak, str):
        return ABSENT, ABSENT
    most = leak.ends.upper if leak.method in _UPPER else leak.additive
    guess = guess_in_words(min(1.0, leak.prior + most), leak.prior)
    return f"{'≤ ' if leak.method in _UPPER else ''}{guess.best}", guess.times


def _notes(found: MechanismComparison) -> Iterator[str]:
    if _some(found, lambda leak: leak.method in _UPPER):
        yield "≤: upper end of an interval, which decides the rank; intervals of neighbours may overlap."
    if len(found.notes) > 0:
        yield "A mechanism that leaks less to one adversary may leak more to another; --json lists every such pair."
    for reason, names in _absent(found).items():
        yield f"{ABSENT} {', '.join(names).replace('_', ' ')}: not computed. {reason}"


def _some(found: MechanismComparison, true: Callable[[AdversaryLeakage], bool]) -> bool:
    from dovetail.plan.compare.comparison import ADVERSARIES

    leaks = [one.leak(adversary) for one in found.mechanisms for adversary in ADVERSARIES]
    return any(true(leak) for leak in leaks if not isinstance(leak, str))


def _absent(found: MechanismComparison) -> dict[str, list[str]]:
    """Why numbers are missing, and in which rows."""
    from dovetail.plan.compare.comparison import ADVERSARIES

    reasons: dict[str, list[str]] = {}
    for one in found.mechanisms:
        for reason in dict.fromkeys(leak for leak in map(one.leak, ADVERSARIES) if isinstance(leak, str)):
            reasons.setdefault(reason, []).append(one.name)
    return reasons
