"""`dovetail account`: what may be promised after shuffling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.console.account_groups import Groups, groups_document, print_groups
from dovetail.cli.console.account_table import print_account, print_inverse
from dovetail.cli.console.curves import Csv, Plot, check_places, write_curve
from dovetail.cli.console.option_groups import flatten
from dovetail.cli.console.options import as_whole
from dovetail.cli.console.output import Force, Json, print_json
from dovetail.cli.console.progress import progress_bar, tell
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.account.amplify import Subject
    from dovetail.account.bound import Bound
    from dovetail.account.compose import Composition
    from dovetail.core.verdict import Verdict

Axis = Literal["n", "epsilon0", "delta"]
RANGES: dict[str, tuple[float, float]] = {"n": (1e2, 1e8), "epsilon0": (0.1, 10.0), "delta": (1e-12, 1e-2)}
POINTS = 100
ANY, BINARY = "any", "binary"  # besides the names of randomizers: no randomizer in particular, and krr with k = 2


@dataclass(frozen=True)
class Shuffle:
    """What is shuffled, how often, and what people run."""

    delta: Annotated[float, typer.Option(help="delta of the central guarantee, in [0, 1).")]
    n: Annotated[float | None, typer.Option(help="Distinct valid reports that are shuffled together.")] = None
    epsilon0: Annotated[float | None, typer.Option(help="Local epsilon of one report, nats.")] = None
    honest: Annotated[float | None, typer.Option(help="People assumed honest; default all.")] = None
    randomizer: Annotated[
        str,
        typer.Option(
            help="What people run: any, binary or the name of a randomizer, whose own law may promise more than any "
            "randomizer with --epsilon0."
        ),
    ] = ANY
    k: Annotated[
        float | None, typer.Option(help="With a randomizer of frequencies: values that a person can hold.")
    ] = None
    delta0: Annotated[float, typer.Option(help="What the local promise may fail by, in [0, 1).")] = 0.0
    rounds: Annotated[float, typer.Option(help="Collections of the same people, each shuffled afresh.")] = 1
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Later randomizers may depend on earlier reports: the clones bound.")
    ] = False

    @property
    def people(self) -> Any:
        """n, as the whole number that it is."""
        if self.n is None:
            raise ParameterError("give --n (reports that are shuffled together), or --group for each public group.")
        return as_whole(self.n)

    @property
    def trusted(self) -> Any:
        """How many people are assumed honest."""
        from dovetail.core.checks import whole

        if self.honest is None:
            return self.people
        return whole("honest", as_whole(self.honest), least=1, most=whole("n", self.people, least=1))

    @property
    def batch(self) -> dict[str, Any]:
        """What the accountants of one round and of several are told alike."""
        return {
            "n": self.people,
            "delta": self.delta,
            "honest": self.trusted,
            "adaptive": self.adaptive,
            "delta0": self.delta0,
        }


@dataclass(frozen=True)
class Inverse:
    """The inverse question."""

    invert: Annotated[bool, typer.Option("--invert", help="Ask for the largest epsilon0 that reaches --epsilon.")] = (
        False
    )
    epsilon: Annotated[float | None, typer.Option(help="With --invert: the central epsilon wanted, nats.")] = None


@dataclass(frozen=True)
class Curve:
    """A range of one parameter, and where the curve goes."""

    along: Annotated[
        Axis | None, typer.Option("--curve", help="Also the central epsilon along a range of n, epsilon0 or delta.")
    ] = None
    start: Annotated[float | None, typer.Option("--from", help="With --curve: where it starts.")] = None
    end: Annotated[float | None, typer.Option("--to", help="With --curve: where it ends.")] = None
    csv: Csv = None
    plot: Plot = None
    force: Force = False


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("account")(flatten(_account))


def _account(shuffle: Shuffle, groups: Groups, inverse: Inverse, curve: Curve, as_json: Json = False) -> None:
    """Privacy amplification by shuffling: a certified upper bound on the central epsilon, or the largest epsilon0.

    Examples:
    dovetail account --epsilon0 2 --n 1e6 --delta 1e-8;
    dovetail account --epsilon0 2 --n 1e6 --delta 1e-8 --randomizer krr --k 16;
    dovetail account --epsilon0 1 --n 1e4 --delta 1e-6 --rounds 100;
    dovetail account --epsilon0 4 --n 1e5 --delta 1e-6 --rounds 16 --randomizer krr --k 1024;
    dovetail account --epsilon0 1 --delta 1e-6 --randomizer krr --k 4 --group town=20000 --group village=90;
    dovetail account --invert --epsilon 1 --n 1e5 --delta 1e-6;
    dovetail account --epsilon0 1 --n 1e5 --delta 1e-6 --curve n --plot curve.png --csv curve.csv
    """
    if curve.along is None and (curve.csv, curve.plot, curve.start, curve.end) != (None,) * 4:
        raise ParameterError("--csv, --plot, --from and --to go with --curve.")
    if groups.given and (shuffle.n is not None or shuffle.honest is not None or inverse.invert or curve.along):
        raise ParameterError("--group and --groups-file take no --n, --honest, --invert, --curve.")
    if inverse.invert:
        document = inverse_document(shuffle, inverse.epsilon, curve)
        print_json(document) if as_json else print_inverse(document)
        return
    if shuffle.epsilon0 is None or inverse.epsilon is not None:
        raise ParameterError("give --epsilon0 (local epsilon of one report), or --invert with --epsilon.")
    if groups.given:
        if shuffle.rounds != 1 or shuffle.adaptive or shuffle.delta0 != 0.0:
            raise ParameterError(
                "--group answers for one round of one pure randomizer: no --rounds, --adaptive, --delta0."
            )
        tell("guarantee of each group")
        subject = accounting_subject(shuffle, shuffle.epsilon0)
        document = groups_document(subject, shuffle.epsilon0, groups, delta=shuffle.delta)
        print_json(document) if as_json else print_groups(document)
        return
    document = forward_document(shuffle, shuffle.epsilon0, curve)
    print_json(document) if as_json else print_account(document)


# --- documents -----------------------------------------------------------------------------------------------------


def inverse_document(shuffle: Shuffle, epsilon: float | None, curve: Curve) -> dict[str, Any]:
    """The JSON document of the largest epsilon0 that reaches a central epsilon."""
    from dovetail.core.verdict import Promise, judge, warnings_of

    trusted = shuffle.trusted
    tell("search for the largest epsilon0")
    if epsilon is None or shuffle.epsilon0 is not None:
        raise ParameterError("--invert takes --epsilon (the central epsilon wanted) and no --epsilon0.")
    if curve.along is not None or shuffle.rounds != 1 or shuffle.delta0 != 0.0:
        raise ParameterError("--invert answers for one round of a pure randomizer: no --curve, --rounds, --delta0.")
    answer = invert(shuffle, epsilon)
    judged = judge(Promise(answer), people=Promise(epsilon, shuffle.delta), n=shuffle.people, honest=trusted)
    return {
        "epsilon0": answer,
        "epsilon": epsilon,
        "n": shuffle.people,
        "honest": trusted,
        "delta": shuffle.delta,
        "notes": list(warnings_of(shuffle.delta, shuffle.people, honest=trusted, epsilon0=answer)),
        "verdict": judged.document(),
    }


def forward_document(shuffle: Shuffle, epsilon0: float, curve: Curve) -> dict[str, Any]:
    """The JSON document of the central epsilon, with its curve where one is asked for."""
    from dovetail.core.checks import whole
    from dovetail.core.verdict import warnings_of

    batch = shuffle.batch
    tell("bounds on the central epsilon")
    check_places(csv=curve.csv, plot=curve.plot, force=curve.force)
    subject = accounting_subject(shuffle, epsilon0)
    if whole("rounds", as_whole(shuffle.rounds), least=1) == 1:
        document = round_document(subject, epsilon0, **batch)
    else:
        document = composition_document(subject, epsilon0, rounds=int(shuffle.rounds), **batch)
    if curve.along is not None:
        document |= curve_document(shuffle, epsilon0, curve.along, curve)
    document["notes"] = list(warnings_of(shuffle.delta, document["n"], honest=shuffle.trusted, epsilon0=epsilon0))
    document["verdict"] = _judged(document).document()
    return document


def _judged(document: dict[str, Any]) -> Verdict:
    """The verdict on one round or several, from the same numbers."""
    from dovetail.core.verdict import Promise, judge

    central = document["central"]
    known = not isinstance(central["epsilon"], dict)
    return judge(
        Promise(float(central["colluding"]), min(1.0, document["rounds"] * document["delta0"])),
        people=Promise(float(central["epsilon"]), document["delta"]) if known else None,
        n=central["n"],
        honest=central["honest_n"],
    )


def round_document(
    subject: Subject, epsilon0: float, *, n: Any, delta: float, honest: Any, adaptive: bool, delta0: float
) -> dict[str, Any]:
    """The JSON document of one round."""
    from dovetail.account.amplify import amplify, list_bounds
    from dovetail.account.clones.binomial_tail import without_compiled_loops
    from dovetail.report.document import central_document

    with without_compiled_loops():
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


def composition_document(
    subject: Subject,
    epsilon0: float,
    *,
    rounds: int,
    n: Any,
    delta: float,
    honest: Any,
    adaptive: bool,
    delta0: float,
) -> dict[str, Any]:
    """The JSON document of several rounds: a mechanism's own law composes, or the clone pairs."""
    from dovetail.account.compose import compose
    from dovetail.account.composition.shuffled_round import ShuffledRound

    kind: Any = "clones" if adaptive else None

    def compose_rounds(people: int) -> Composition:
        part = ShuffledRound(epsilon0, people, times=rounds, kind=kind, delta0=delta0)
        if not (isinstance(subject, float) or adaptive or delta0 > 0.0):
            part = ShuffledRound.of(subject, people, times=rounds)
        return compose([part], delta=delta)

    quoted = compose_rounds(honest)
    everybody = quoted if honest == n else compose_rounds(n)
    return {
        "epsilon": _value(quoted),
        "numeric_lower": quoted.lower,
        "attack_lower": quoted.attack_lower or {"value": None, "reason": "no attack is evaluated for these rounds"},
        "method": quoted.method,
        "source": quoted.source,
        "epsilon0": epsilon0,
        "delta0": delta0,
        "n": n,
        "delta": delta,
        "rounds": rounds,
        "central": {
            "epsilon": _value(quoted),
            "all": _value(everybody),
            "honest": _value(quoted),
            "colluding": rounds * epsilon0,
            "delta": delta,
            "n": n,
            "honest_n": honest,
            "neighbours": quoted.neighbours,
        },
        "bounds": {
            quoted.method: _value(quoted),
            **{other.name: _value(other) for other in (quoted.basic, quoted.advanced, quoted.renyi)},
        },
    }


def curve_document(shuffle: Shuffle, epsilon0: float, along: Axis, curve: Curve) -> dict[str, Any]:
    """The curve, and the files that it is written to."""
    if shuffle.rounds != 1 or shuffle.delta0 != 0.0 or shuffle.randomizer != ANY:
        raise ParameterError("--curve draws one round of any pure randomizer: no --rounds, --delta0, --randomizer.")
    point = {"epsilon0": epsilon0, "n": shuffle.trusted, "delta": shuffle.delta}
    table = curve_table(along, point, adaptive=shuffle.adaptive, ends=(curve.start, curve.end))
    files = write_curve(
        table,
        along,
        csv=curve.csv,
        plot=curve.plot,
        force=curve.force,
        labels={name: name for name in table if name not in (along, "lower")},
        y="central epsilon (upper bound)",
        log_x=True,
        log_y=True,
        title=_title(along, **point),
    )
    return {"curve": {name: column.tolist() for name, column in table.items()}, "files": files}


def curve_table(
    along: Axis, point: dict[str, Any], *, adaptive: bool, ends: tuple[float | None, float | None]
) -> dict[str, Any]:
    """The central epsilon along one axis, geometrically spaced: certified ends of the pair, and the other pair."""
    import numpy as np

    from dovetail.account.curve import curve
    from dovetail.core.checks import MOST_PEOPLE, real, refuse, whole

    first, last = (given if given is not None else usual for given, usual in zip(ends, RANGES[along], strict=True))
    if not 0.0 < real("--from", first) < real("--to", last):
        raise refuse("--to", f"above --from = {first:g}, which must be above 0", last)
    grid = np.geomspace(first, last, POINTS)
    if along == "n":
        whole("--to", as_whole(last), least=1, most=MOST_PEOPLE)
        grid = np.unique(np.rint(grid)).astype(np.int64)
    pairs = [adaptive] if adaptive else [False, True]
    found: list[list[Any]] = [[] for _ in pairs]
    with progress_bar(hidden=False) as progress:
        for done, place in enumerate(grid):
            progress("points of the curve", done, len(grid))
            for ends_here, clones in zip(found, pairs, strict=True):
                ends_here.append(curve(**{**point, along: place}, adaptive=clones))
    lower, *upper = (
        np.array([float(getattr(one, end)) for one in ends_here])
        for ends_here, end in ((found[0], "lower"), *((each, "upper") for each in found))
    )
    if adaptive:
        return {along: grid, "clones": upper[0], "lower": lower}
    return {along: grid, "stronger clones": upper[0], "lower": lower, "clones": upper[1]}


# --- questions -----------------------------------------------------------------------------------------------------


def accounting_subject(shuffle: Shuffle, epsilon0: float) -> Subject:
    """The randomizer that a name stands for; a float for any."""
    from dovetail.core.checks import privacy_budget
    from dovetail.core.registries import RANDOMIZERS

    name, k = shuffle.randomizer, as_whole(shuffle.k)
    kind: Any = None if name == ANY else RANDOMIZERS["krr" if name == BINARY else name]
    if (k is None) != (kind is None or kind.question != "frequency" or name == BINARY):
        raise ParameterError("--k goes with a --randomizer of frequencies, such as krr, which needs it.")
    privacy_budget("epsilon0", epsilon0)
    if kind is None:
        return epsilon0
    needed = [setting.name for setting in kind.settings() if setting.required]
    if needed:
        raise ParameterError(f"--randomizer {name} has settings without a default, {', '.join(needed)}; use any.")
    if kind.question == "mean":
        subject: Subject = kind(lower=0.0, upper=1.0, epsilon=epsilon0)
    else:
        subject = kind(k=k or 2, epsilon=epsilon0)
    return subject


def invert(shuffle: Shuffle, epsilon: float) -> float:
    """The largest epsilon0 for any randomizer, or for one kind by its own law."""
    from dovetail.account.calibrate import max_epsilon
    from dovetail.core.checks import privacy_budget

    if shuffle.randomizer == ANY or shuffle.adaptive or shuffle.delta == 0.0:
        return max_epsilon(epsilon=epsilon, n=shuffle.trusted, delta=shuffle.delta, adaptive=shuffle.adaptive)
    accounting_subject(shuffle, privacy_budget("epsilon", epsilon))
    return _invert_own_law(shuffle, epsilon)


def _invert_own_law(shuffle: Shuffle, epsilon: float) -> float:
    from dovetail.core.registries import RANDOMIZERS
    from dovetail.plan.families import families
    from dovetail.plan.requirements import Requirements
    from dovetail.plan.search import largest_epsilon0

    name = "krr" if shuffle.randomizer == BINARY else shuffle.randomizer
    question = RANDOMIZERS[name].question
    domain: dict[str, Any] = {"lower": 0.0, "upper": 1.0} if question == "mean" else {"k": as_whole(shuffle.k) or 2}
    wish = Requirements(
        question=question, n=shuffle.people, delta=shuffle.delta, honest=shuffle.trusted, epsilon=epsilon, **domain
    )
    family = next(family for family in families(wish) if family.name == name)
    return largest_epsilon0(family, wish, epsilon=epsilon, n=shuffle.people)


# --- words ---------------------------------------------------------------------------------------------------------


def _title(along: Axis, *, epsilon0: float, n: int, delta: float) -> str:
    facts = {"n": f"n = {n:,}", "epsilon0": f"epsilon0 = {epsilon0:g}", "delta": f"delta = {delta:g}"}
    return "After shuffling, " + ", ".join(words for name, words in facts.items() if name != along)


def _value(bound: Bound | Composition) -> Any:
    return bound.epsilon if bound.epsilon is not None else {"value": None, "reason": bound.reason}
