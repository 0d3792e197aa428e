"""`dovetail account`: what may be promised after shuffling."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dovetail.account.amplify import amplify
from dovetail.account.calibrate import max_epsilon
from dovetail.cli.output import Json, print_json, print_rows
from dovetail.core.checks import whole
from dovetail.core.errors import ParameterError
from dovetail.report.document import central_document


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("account")(_account)


def _account(
    n: Annotated[float, typer.Option(help="Distinct valid reports that are shuffled together.")],
    delta: Annotated[float, typer.Option(help="delta of the central guarantee, in [0, 1).")],
    epsilon0: Annotated[float | None, typer.Option(help="Local epsilon of one report, nats.")] = None,
    honest: Annotated[float | None, typer.Option(help="People assumed honest; default all.")] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Later randomizers may depend on earlier reports: the clones bound.")
    ] = False,
    invert: Annotated[
        bool, typer.Option("--invert", help="Ask for the largest epsilon0 that reaches --epsilon.")
    ] = False,
    epsilon: Annotated[float | None, typer.Option(help="With --invert: the central epsilon wanted, nats.")] = None,
    as_json: Json = False,
) -> None:
    """Privacy amplification by shuffling: a certified upper bound on the central epsilon, or the largest epsilon0.

    Example: dovetail account --epsilon0 2 --n 1e6 --delta 1e-8
    """
    if invert:
        if epsilon is None or epsilon0 is not None:
            raise ParameterError("--invert takes --epsilon (the central epsilon wanted) and no --epsilon0.")
        people = _whole(n) if honest is None else whole("honest", honest, least=1, most=whole("n", n, least=1))
        answer = max_epsilon(epsilon=epsilon, n=people, delta=delta, adaptive=adaptive)
        if as_json:
            print_json({"epsilon0": answer, "epsilon": epsilon, "n": _whole(n), "honest": people, "delta": delta})
        else:
            print_rows("Largest local epsilon", {"epsilon0": f"{answer:.6g}"})
        return
    if epsilon0 is None or epsilon is not None:
        raise ParameterError("give --epsilon0 (local epsilon of one report), or --invert with --epsilon.")
    document = accounted(epsilon0, n=_whole(n), delta=delta, honest=_whole(honest), adaptive=adaptive)
    if as_json:
        print_json(document)
    else:
        first, second, third = document["central"]["lines"]
        rows = {"all honest": first, "some honest": second, "colluding": third, "method": document["method"]}
        rows["numerics"] = f"this pair's own epsilon is at least {document['numeric_lower']:.6g}"
        rows["attack"] = (
            f"some randomizer with this epsilon0 gives away epsilon {document['attack_lower']:.6g}: a floor"
        )
        rows["source"] = document["source"]
        print_rows("After shuffling", rows)


def accounted(epsilon0: float, *, n: Any, delta: float, honest: Any, adaptive: bool) -> dict[str, Any]:
    """The JSON document of one question."""
    chosen = amplify(epsilon0, n=n, delta=delta, honest=honest, adaptive=adaptive)
    clones = amplify(epsilon0, n=n, delta=delta, honest=honest, adaptive=True)
    fixed: Any = chosen.epsilon
    if adaptive:
        fixed = {"value": None, "reason": "holds for one fixed randomizer only, not for adaptive use"}
    return {
        "epsilon": chosen.epsilon,
        "numeric_lower": chosen.numeric.lower,
        "attack_lower": chosen.attack_lower,
        "method": chosen.method,
        "source": chosen.source,
        "epsilon0": epsilon0,
        "n": chosen.n,
        "delta": delta,
        "central": central_document(chosen),
        "bounds": {"stronger clones": fixed, "clones": clones.epsilon},
    }


def _whole(value: float | None) -> Any:
    """1e6 as the whole number that it is; the accountant refuses what is none."""
    return int(value) if value is not None and float(value).is_integer() else value
