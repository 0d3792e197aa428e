"""`dovetail leak`: what a Bayesian adversary can guess."""

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.cli.output import Json, print_json, print_rows
from dovetail.core.channel import KRRChannel
from dovetail.core.checks import whole
from dovetail.core.errors import ParameterError
from dovetail.leak.vulnerability import vulnerability
from dovetail.randomize.krr import KRR


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("leak")(_leak)


def _leak(
    n: Annotated[float, typer.Option(help="People in the collection.")],
    k: Annotated[float, typer.Option(help="Values that a person can hold.")],
    p: Annotated[float | None, typer.Option(help="Probability that randomized response keeps the value.")] = None,
    epsilon0: Annotated[float | None, typer.Option(help="Local epsilon, instead of --p.")] = None,
    as_json: Json = False,
) -> None:
    """Exact Bayes vulnerability: the chance of guessing one person's value in one try.

    Before anything is sent (prior), from the person's own randomized report (randomized), from the unrandomized
    batch in random order (shuffled), and from randomized and shuffled reports (randomized_shuffled). k-ary
    randomized response, uniform prior, an adversary who knows nothing else.

    Example: dovetail leak --n 1000 --k 3 --p 0.8
    """
    if (p is None) == (epsilon0 is None):
        raise ParameterError("give either --p or --epsilon0.")
    values, people = whole("k", k, least=2), whole("n", n, least=1)
    channel = KRR(k=values, epsilon=epsilon0).channel() if epsilon0 is not None else KRRChannel.of(values, p or 0.0)
    answer = vulnerability(channel, n=people)
    document = {
        "prior": answer.prior,
        "randomized": answer.randomized,
        "shuffled": answer.shuffled,
        "randomized_shuffled": answer.randomized_shuffled,
        "error_bound": answer.error_bound,
        "method": answer.method,
        "rounding": answer.rounding,
        "source": answer.source,
        "adversary": "uninformed",
        "n": people,
        "k": values,
    }
    if as_json:
        print_json(document)
    else:
        names = ("prior", "randomized", "shuffled", "randomized_shuffled")
        rows = {name: f"{document[name]:.12g}" for name in names}
        rows["error_bound"] = f"{answer.error_bound:.1e} ({answer.rounding} rounding), {answer.method}"
        print_rows("Chance of guessing one person's value", rows)
