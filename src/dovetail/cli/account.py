"""`dovetail account`: what may be promised after shuffling."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from dovetail.account.amplify import Subject, amplify, list_bounds
from dovetail.account.bound import Bound
from dovetail.account.calibrate import max_epsilon
from dovetail.account.clones.stronger_clones import MOST_PEOPLE
from dovetail.account.compose import Composition, compose
from dovetail.account.composition.shuffled_round import ShuffledRound
from dovetail.account.curve import curve
from dovetail.cli.console.curves import Csv, Plot, check_places, write_curve
from dovetail.cli.console.options import as_whole
from dovetail.cli.console.output import Force, Json, print_json, print_rows
from dovetail.core.checks import privacy_budget, real, refuse, whole
from dovetail.core.errors import ParameterError
from dovetail.plan.families import families
from dovetail.plan.planner import delta_notes
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import largest_epsilon0
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.report.document import central_document
from dovetail.report.number_format import upward

Kind = Literal["any", "binary", "krr", "hadamard", "laplace"]
Axis = Literal["n", "epsilon0", "delta"]
RANGES: dict[str, tuple[float, float]] = {"n": (1e2, 1e8), "epsilon0": (0.1, 10.0), "delta": (1e-12, 1e-2)}
POINTS = 100


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("account")(_account)


def _account(
    n: Annotated[float, typer.Option(help="Distinct valid reports that are shuffled together.")],
    delta: Annotated[float, typer.Option(help="delta of the central guarantee, in [0, 1).")],
    epsilon0: Annotated[float | None, typer.Option(help="Local epsilon of one report, nats.")] = None,
    honest: Annotated[float | None, typer.Option(help="People assumed honest; default all.")] = None,
    randomizer: Annotated[
        Kind, typer.Option(help="What people run: its own law may promise more than any randomizer with --epsilon0.")
    ] = "any",
    k: Annotated[float | None, typer.Option(help="With krr or hadamard: values that a person can hold.")] = None,
    delta0: Annotated[float, typer.Option(help="What the local promise may fail by, in [0, 1).")] = 0.0,
    rounds: Annotated[float, typer.Option(help="Collections of the same people, each shuffled afresh.")] = 1,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Later randomizers may depend on earlier reports: the clones bound.")
    ] = False,
    invert: Annotated[
        bool, typer.Option("--invert", help="Ask for the largest epsilon0 that reaches --epsilon.")
    ] = False,
    epsilon: Annotated[float | None, typer.Option(help="With --invert: the central epsilon wanted, nats.")] = None,
    along: Annotated[
        Axis | None, typer.Option("--curve", help="Also the central epsilon along a range of n, epsilon0 or delta.")
    ] = None,
    start: Annotated[float | None, typer.Option("--from", help="With --curve: where it starts.")] = None,
    end: Annotated[float | None, typer.Option("--to", help="With --curve: where it ends.")] = None,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Privacy amplification by shuffling: a certified upper bound on the central epsilon, or the largest epsilon0.

    Examples:
    dovetail account --epsilon0 2 --n 1e6 --delta 1e-8;
    dovetail account --epsilon0 2 --n 1e6 --delta 1e-8 --randomizer krr --k 16;
    dovetail account --epsilon0 1 --n 1e4 --delta 1e-6 --rounds 100;
    dovetail account --invert --epsilon 1 --n 1e5 --delta 1e-6;
    dovetail account --epsilon0 1 --n 1e5 --delta 1e-6 --curve n --plot curve.png --csv curve.csv
    """
    people = as_whole(n)
    trusted = (
        people if honest is None else whole("honest", as_whole(honest), least=1, most=whole("n", people, least=1))
    )
    if along is None and (csv, plot, start, end) != (None,) * 4:
        raise ParameterError("--csv, --plot, --from and --to go with --curve.")
    if invert:
        if epsilon is None or epsilon0 is not None:
            raise ParameterError("--invert takes --epsilon (the central epsilon wanted) and no --epsilon0.")
        if along is not None or rounds != 1 or delta0 != 0.0:
            raise ParameterError(
                "--invert answers for one round of a pure randomizer: no --curve, --rounds, --delta0."
            )
        answer = inverted(
            epsilon, n=people, honest=trusted, delta=delta, kind=randomizer, k=as_whole(k), adaptive=adaptive
        )
        if as_json:
            print_json({"epsilon0": answer, "epsilon": epsilon, "n": people, "honest": trusted, "delta": delta})
        else:
            print_rows("Largest local epsilon", {"epsilon0": f"{math.floor(answer * 1e6) / 1e6:.6f}"})
        return
    if epsilon0 is None or epsilon is not None:
        raise ParameterError("give --epsilon0 (local epsilon of one report), or --invert with --epsilon.")
    check_places(csv=csv, plot=plot, force=force)
    subject = subject_of(randomizer, epsilon0, k=as_whole(k))
    if whole("rounds", as_whole(rounds), least=1) == 1:
        document = accounted(
            subject, epsilon0, n=people, delta=delta, honest=trusted, adaptive=adaptive, delta0=delta0
        )
    else:
        document = composed(
            epsilon0, rounds=int(rounds), n=people, delta=delta, honest=trusted, adaptive=adaptive, delta0=delta0
        )
    if along is not None:
        if rounds != 1 or delta0 != 0.0 or randomizer != "any":
            raise ParameterError(
                "--curve draws one round of any pure randomizer: no --rounds, --delta0, --randomizer."
            )
        table = drawn(along, epsilon0, n=trusted, delta=delta, adaptive=adaptive, ends=(start, end))
        labels = {name: name for name in table if name not in (along, "lower")}
        document["curve"] = {name: column.tolist() for name, column in table.items()}
        document["files"] = write_curve(
            table, along, csv=csv, plot=plot, force=force, labels=labels, y="central epsilon (upper bound)",
            log_x=True, log_y=True, title=_title(along, epsilon0, trusted, delta),
        )  # fmt: skip
    document["notes"] = list(delta_notes(delta, document["n"]))
    if as_json:
        print_json(document)
    else:
        _print(document)


def subject_of(kind: Kind, epsilon0: float, *, k: Any) -> Subject:
    """The randomizer that a name stands for; a float for any."""
    if (k is None) != (kind not in ("krr", "hadamard")):
        raise ParameterError("--k goes with --randomizer krr or hadamard, and both need it.")
    privacy_budget("epsilon0", epsilon0)
    if kind == "binary":
        return KRR(k=2, epsilon=epsilon0)
    if kind == "krr":
        return KRR(k=k, epsilon=epsilon0)
    if kind == "hadamard":
        return Hadamard(k=k, epsilon=epsilon0)
    return Laplace(0.0, 1.0, epsilon=epsilon0) if kind == "laplace" else epsilon0


def inverted(epsilon: float, *, n: Any, honest: Any, delta: float, kind: Kind, k: Any, adaptive: bool) -> float:
    """The largest epsilon0 for any randomizer, or for one kind by its own law."""
    if kind == "any" or adaptive or delta == 0.0:
        return max_epsilon(epsilon=epsilon, n=honest, delta=delta, adaptive=adaptive)
    subject_of(kind, privacy_budget("epsilon", epsilon), k=k)
    if kind == "laplace":
        requirements = Requirements(
            question="mean", n=n, delta=delta, honest=honest, lower=0.0, upper=1.0, epsilon=epsilon
        )
    else:
        requirements = Requirements(question="frequency", n=n, delta=delta, honest=honest, k=k or 2, epsilon=epsilon)
    name = "krr" if kind == "binary" else kind
    family = next(family for family in families(requirements) if family.name == name)
    return largest_epsilon0(family, requirements, epsilon=epsilon, n=n)


def accounted(
    subject: Subject, epsilon0: float, *, n: Any, delta: float, honest: Any, adaptive: bool, delta0: float
) -> dict[str, Any]:
    """The JSON document of one round."""
    chosen = amplify(subject, n=n, delta=delta, honest=honest, adaptive=adaptive, delta0=delta0)
    bounds = list_bounds(subject, n=chosen.honest_n, delta=delta, adaptive=adaptive, delta0=delta0)
    return {
        "epsilon": chosen.epsilon,
        "numeric_lower": chosen.numeric.lower,
        "attack_lower": chosen.attack_lower,
        "method": chosen.method,
        "source": chosen.source,
        "epsilon0": epsilon0,
        "delta0": delta0,
        "n": chosen.n,
        "delta": delta,
        "rounds": 1,
        "central": central_document(chosen),
        "bounds": {bound.name: _value(bound) for bound in bounds},
    }


def composed(
    epsilon0: float, *, rounds: int, n: Any, delta: float, honest: Any, adaptive: bool, delta0: float
) -> dict[str, Any]:
    """The JSON document of several rounds: the clone pairs compose, whatever the mechanism."""
    kind: Any = "clones" if adaptive else None

    def asked(people: int) -> Composition:
        return compose([ShuffledRound(epsilon0, people, times=rounds, kind=kind, delta0=delta0)], delta=delta)

    quoted = asked(honest)
    everybody = quoted if honest == n else asked(n)
    bound = Bound(quoted.method, quoted.epsilon, quoted.source, quoted.reason)
    return {
        "epsilon": _value(bound),
        "numeric_lower": quoted.lower,
        "attack_lower": {"value": None, "reason": "attacks over several rounds are not evaluated"},
        "method": quoted.method,
        "source": quoted.source,
        "epsilon0": epsilon0,
        "delta0": delta0,
        "n": n,
        "delta": delta,
        "rounds": rounds,
        "central": {
            "epsilon": _value(bound),
            "all": _value(Bound("", everybody.epsilon, "", everybody.reason)),
            "honest": _value(bound),
            "colluding": rounds * epsilon0,
            "delta": delta,
            "n": n,
            "honest_n": honest,
            "neighbours": quoted.neighbours,
        },
        "bounds": {
            bound.name: _value(bound),
            **{other.name: _value(other) for other in (quoted.basic, quoted.advanced, quoted.renyi)},
        },
    }


def drawn(
    along: Axis, epsilon0: float, *, n: int, delta: float, adaptive: bool, ends: tuple[float | None, float | None]
) -> dict[str, Any]:
    """The central epsilon along one axis, geometrically spaced: certified ends of the pair, and the other pair."""
    first, last = (given if given is not None else usual for given, usual in zip(ends, RANGES[along], strict=True))
    if not 0.0 < real("--from", first) < real("--to", last):
        raise refuse("--to", f"above --from = {first:g}, which must be above 0", last)
    grid = np.geomspace(first, last, POINTS)
    if along == "n":
        whole("--to", as_whole(last), least=1, most=MOST_PEOPLE)
        grid = np.unique(np.rint(grid)).astype(np.int64)
    point: dict[str, Any] = {"epsilon0": epsilon0, "n": n, "delta": delta, along: grid}
    pair = curve(**point, adaptive=adaptive)
    if adaptive:
        return {along: grid, "clones": pair.upper, "lower": pair.lower}
    clones = curve(**point, adaptive=True)
    return {along: grid, "stronger clones": pair.upper, "lower": pair.lower, "clones": clones.upper}


def _title(along: Axis, epsilon0: float, n: int, delta: float) -> str:
    facts = {"n": f"n = {n:,}", "epsilon0": f"epsilon0 = {epsilon0:g}", "delta": f"delta = {delta:g}"}
    return "After shuffling, " + ", ".join(words for name, words in facts.items() if name != along)


def _value(bound: Bound) -> Any:
    return bound.epsilon if bound.epsilon is not None else {"value": None, "reason": bound.reason}


def _print(document: dict[str, Any]) -> None:
    rows = {"epsilon": _words(document["epsilon"])}
    central = document["central"]
    if "lines" in central:
        rows |= dict(zip(("all honest", "some honest", "colluding"), central["lines"], strict=True))
    else:
        rows |= {
            f"{document['rounds']} rounds": f"all {central['n']:,} honest: {_words(central['all'])}",
            "some honest": f"{central['honest_n']:,} of them: {_words(central['honest'])}",
            "colluding": f"the local guarantees add to epsilon {_words(central['colluding'])}",
        }
    rows["method"] = document["method"]
    if document["numeric_lower"] is not None:
        rows["numerics"] = f"this method's own epsilon is at least {document['numeric_lower']:.6g}"
    if not isinstance(document["attack_lower"], dict):
        rows["attack"] = f"an attack reaches epsilon {document['attack_lower']:.6g}: a floor"
    rows["source"] = document["source"]
    for note in document["notes"]:
        rows["note"] = note
    print_rows("After shuffling", rows)
    table = Table(title="All bounds, side by side", title_justify="left", title_style="bold", box=None)
    for column in ("bound", "epsilon", "why not"):
        table.add_column(column, overflow="fold")
    for name, value in document["bounds"].items():
        table.add_row(name, *(("-", value["reason"]) if isinstance(value, dict) else (_words(value), "")))
    Console().print(table)
    for kind, place in document.get("files", {}).items():
        typer.echo(f"{kind}: {Path(place)}")


def _words(value: Any) -> str:
    return f"nothing: {value['reason']}" if isinstance(value, dict) else upward(value)
