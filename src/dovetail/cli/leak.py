"""`dovetail leak`: what a Bayesian adversary can guess."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.options import as_share
from dovetail.cli.output import (
    Csv,
    Facts,
    Force,
    Json,
    Plot,
    Seed,
    check_places,
    entropy_of,
    show,
    write_curve,
)
from dovetail.cli.progress import progress_bar
from dovetail.core.display import chance_in_words, guess_in_words
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.core.channel import Channel
    from dovetail.core.progress import Progress
    from dovetail.leak.linkage import Linkage
    from dovetail.leak.vulnerability import Vulnerability

_NAMES = ("prior", "randomized", "shuffled", "randomized_shuffled")
_POINTS = 13


@dataclass(frozen=True)
class Collection:
    """Who reports, and by which randomized response."""

    n: Annotated[float, typer.Option(help="People in the collection.")]
    k: Annotated[float, typer.Option(help="Values that a person can hold.")]
    p: Annotated[
        float | None, typer.Option(parser=as_share, help="Probability that randomized response keeps the value.")
    ] = None
    epsilon0: Annotated[float | None, typer.Option(help="Local epsilon, instead of --p.")] = None

    def people(self) -> int:
        """n, checked."""
        from dovetail.core.checks import whole

        return whole("n", self.n, least=1)

    def channel(self) -> Channel:
        """The law of one report."""
        from dovetail.core.channel import KRRChannel
        from dovetail.core.checks import whole
        from dovetail.leak.query import MOST_VALUES

        k = whole("k", self.k, least=2, most=MOST_VALUES)
        if self.epsilon0 is None:
            return KRRChannel.of(k, self.p or 0.0)
        from dovetail.randomize.krr import KRR

        return KRR(k=k, epsilon=self.epsilon0).channel()


@dataclass(frozen=True)
class Adversary:
    """Knowledge and gain function of the adversary."""

    adversary: Annotated[
        Literal["uninformed", "strong"], typer.Option(help="strong: knows others' values; see --known.")
    ] = "uninformed"
    known: Annotated[
        str | None,
        typer.Option(
            help="strong: how many others hold each value, separated by commas; fewer than n - 1 in all leaves the "
            "rest unknown. Without it: a certified interval for the worst that may be known."
        ),
    ] = None
    prior: Annotated[
        str | None, typer.Option(help="Probability of each value, separated by commas; default uniform.")
    ] = None
    tries: Annotated[int, typer.Option(help="Guesses that the adversary has.")] = 1
    gain: Annotated[
        Literal["distance"] | None, typer.Option(help="distance: 1 - |guess - value| / (k - 1), for ordered values.")
    ] = None
    certified: Annotated[
        bool, typer.Option("--certified", help="Prove every error bound (needs the extra `certified`).")
    ] = False

    def query(self, seed: int | None) -> dict[str, Any]:
        """Arguments of `vulnerability` besides the channel and n."""
        return {
            "prior": None if self.prior is None else _numbers("prior", self.prior),
            "adversary": self.adversary,
            "known": None if self.known is None else _numbers("known", self.known),
            "tries": self.tries,
            "gain": self.gain,
            "certified": self.certified,
            "rng": entropy_of(seed),
        }


@dataclass(frozen=True)
class Curve:
    """Smaller collections, and where their curve goes."""

    curve: Annotated[Literal["n"] | None, typer.Option(help="n: also for smaller collections.")] = None
    plot: Plot = None
    csv: Csv = None
    seed: Seed = None
    force: Force = False

    def check(self, known: str | None) -> None:
        """Refuse a curve that was not asked for, that does not fit, or that could not be written."""
        if (self.plot or self.csv) and self.curve is None:
            raise ParameterError("--plot and --csv draw a curve: add --curve n.")
        if self.curve and known is not None:
            raise ParameterError(
                "--curve n goes over smaller collections, where --known does not fit; drop one of them."
            )
        check_places(csv=self.csv, plot=self.plot, force=self.force)


def _leak(collection: Collection, adversary: Adversary, curve: Curve, as_json: Json = False) -> None:
    """Bayes vulnerability: the chance of guessing one person's value, exact wherever an exact sum is in reach.

    Before anything is sent (prior), from the person's own randomized report (randomized), from the unrandomized
    batch in random order (shuffled), and from randomized and shuffled reports (randomized_shuffled). k-ary
    randomized response. A strong adversary subtracts the values she knows: if she knows all others, a shuffle alone
    hides nothing. `method` says how the numbers were found; beyond every exact sum they are sampled, with an
    interval that holds up to a chance of one in a million, or bracketed, and the upper end is quoted.

    Beside it how often somebody names which report is hers: one who knows everybody's value (values_known, at most),
    or hers and the shares of the others' (shares_known), or nothing (blind).

    Example: dovetail leak --n 1000 --k 3 --p 0.8 --curve n --plot leak.svg
    """
    if (collection.p is None) == (collection.epsilon0 is None):
        raise ParameterError("give either --p or --epsilon0.")
    curve.check(adversary.known)
    from dovetail.leak.linkage import linkage
    from dovetail.leak.vulnerability import vulnerability

    channel, people, query = collection.channel(), collection.people(), adversary.query(curve.seed)
    with progress_bar(hidden=as_json) as progress:
        progress(f"exact sums for {people:,} people", 0, 1)
        answer = vulnerability(channel, n=people, **query)
        smaller = _smaller(channel, people=people, query=query, progress=progress) if curve.curve else {}
    document = _document(answer) | {"n": people, "k": channel.shape[0]}
    if curve.curve:
        table = _curve_table(smaller | {people: answer})
        places = {"csv": curve.csv, "plot": curve.plot}
        files = write_curve(table, "n", **places, force=curve.force, **_drawing(adversary.gain, adversary.tries))
        document |= {"curve": table, "files": files}
    named = linkage(channel, n=people, prior=query["prior"])
    document |= {"linkage": asdict(named)}
    show(document, _facts(answer, named, adversary.gain), as_json=as_json)


def _smaller(channel: Channel, *, people: int, query: dict[str, Any], progress: Progress) -> dict[int, Vulnerability]:
    """The answers for smaller collections, by their size."""
    import numpy as np

    from dovetail.leak.vulnerability import vulnerability

    sizes = [int(size) for size in np.unique(np.geomspace(1, people, num=_POINTS).round())[:-1]]
    found = {}
    for place, size in enumerate(sizes):
        progress("smaller collections", place, len(sizes))
        found[size] = vulnerability(channel, n=size, **query)
    return found


def _curve_table(answers: dict[int, Vulnerability]) -> dict[str, Any]:
    """The four numbers by number of people."""
    return {"n": list(answers)} | {name: [getattr(at, name) for at in answers.values()] for name in _NAMES}


def _facts(answer: Vulnerability, named: Linkage, gain: str | None) -> Facts:
    rows = {name: f"{getattr(answer, name):.12g}" for name in _NAMES}
    if not gain:
        blind = guess_in_words(answer.randomized_shuffled, answer.prior).blind
        words = {name: guess_in_words(getattr(answer, name), answer.prior).best for name in _NAMES} | {"prior": blind}
        rows = {name: f"{words[name]}  ({exact})" for name, exact in rows.items()}
    if answer.method in ("sampled", "bracket"):
        ends = answer.randomized_shuffled_bracket
        rows["randomized_shuffled"] += f" (between {ends.lower:.6g} and {ends.upper:.6g})"
    rows["error_bound"] = f"{answer.error_bound:.1e} ({answer.rounding} rounding), {answer.method}"
    hers = {"values_known": named.values_known, "shares_known": named.shares_known, "blind": named.blind}
    rows |= {f"her report, {name}": f"{chance_in_words(chance)}  ({chance:.12g})" for name, chance in hers.items()}
    return Facts("Expected gain of the best guess" if gain else "Chance of guessing one person's value", rows)


def _document(answer: Vulnerability) -> dict[str, Any]:
    ends = {name: getattr(answer, f"{name}_bracket") for name in ("shuffled", "randomized_shuffled")}
    return {
        **{name: getattr(answer, name) for name in _NAMES},
        **{f"{name}_bracket": [end.lower, end.upper] for name, end in ends.items()},
        "error_bound": answer.error_bound,
        "method": answer.method,
        "rounding": answer.rounding,
        "level": answer.level,
        "source": answer.source,
        "adversary": answer.adversary,
    }


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--{name} must be numbers separated by commas, got {text!r}.") from None


def _drawing(gain: str | None, tries: int) -> dict[str, Any]:
    chance = "chance" if tries == 1 else f"chance of a hit in {tries} tries"
    return {
        "labels": {
            "randomized_shuffled": "randomized and shuffled",
            "shuffled": "shuffled only",
            "randomized": "randomized only",
            "prior": "before any report",
        },
        "y": "expected gain" if gain else chance,
        "log_x": True,
        "log_y": False,
        "title": "Best guess of one person's value, by number of people",
    }


VERBS = {"leak": _leak}
