"""`dovetail account`: what may be promised after shuffling."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dovetail.cli.options import as_share, as_whole
from dovetail.cli.output import Csv, Facts, Force, Grid, Json, Plot, check_places, show, write_curve
from dovetail.cli.progress import progress_bar, tell
from dovetail.core.display import downward
from dovetail.core.errors import ParameterError

if TYPE_CHECKING:
    from dovetail.account.amplify import Subject
    from dovetail.account.bound import Bound
    from dovetail.account.compose import Composition
    from dovetail.core.verdict import Verdict


# `dovetail account` for people in public groups: what each group is promised, and what everybody is.


FORM = "NAME=PEOPLE or NAME=PEOPLE,HONEST, such as town=20000,15000"
COLUMNS = ("name", "n", "honest")


@dataclass(frozen=True)
class Groups:
    """Public groups that are shuffled by themselves."""

    group: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of --n: one public group (a class, an atom, a key), NAME=PEOPLE or NAME=PEOPLE,HONEST, "
            "once for each. It is promised what a shuffle of it alone promises."
        ),
    ] = None
    groups_file: Annotated[
        Path | None, typer.Option(help="Instead of --group: CSV with the columns name, n and, if wanted, honest.")
    ] = None

    @property
    def given(self) -> bool:
        """True if groups are asked about."""
        return bool(self.group) or self.groups_file is not None

    def sizes(self) -> dict[str, tuple[int, int]]:
        """People of each group, and those assumed honest."""
        from dovetail.core.checks import whole

        if self.group and self.groups_file is not None:
            raise ParameterError("give --group or --groups-file, not both.")
        rows = _read(self.groups_file) if self.groups_file is not None else [_row(text) for text in self.group or []]
        found: dict[str, tuple[int, int]] = {}
        for name, people, honest in rows:
            if not name or name in found:
                raise ParameterError(f"each group needs a name of its own, got {name!r}.")
            n = whole(f"n of {name}", _number(people), least=1)
            found[name] = n, n if not honest else whole(f"honest of {name}", _number(honest), least=1, most=n)
        return found


def groups_document(subject: Subject, epsilon0: float, groups: Groups, *, delta: float) -> dict[str, Any]:
    """The JSON document: every group with its guarantee, the weakest of which all people have."""
    from dovetail.account.clones import without_compiled_loops
    from dovetail.account.compose import ShuffledGroup, personal_guarantees
    from dovetail.core.verdict import judge_central, warnings_of

    sizes = groups.sizes()
    parts = {name: ShuffledGroup(subject, n, honest) for name, (n, honest) in sizes.items()}
    with without_compiled_loops():
        found = personal_guarantees(parts, delta=delta)
    smallest = min(n for n, _ in sizes.values())
    return {
        "epsilon": found.worst.epsilon,
        "weakest": found.weakest,
        "epsilon0": epsilon0,
        "n": sum(n for n, _ in sizes.values()),
        "delta": delta,
        "groups": [
            {
                "name": name,
                "n": one.n,
                "honest": one.honest_n,
                "epsilon": one.epsilon,
                "all": one.all,
                "colluding": one.colluding,
                "attack_lower": one.attack_lower,
                "method": one.method,
                "source": one.source,
            }
            for name, one in found.each.items()
        ],
        "notes": list(warnings_of(delta, smallest, honest=found.worst.honest_n, epsilon0=epsilon0)),
        "verdict": judge_central(found.worst).document(),
    }


def groups_blocks(document: dict[str, Any]) -> Iterator[Grid | str]:
    """A row for each group, and what everybody has."""
    from dovetail.report.number_format import upward

    rows = [
        (
            one["name"],
            one["method"],
            f"{one['n']:,}",
            f"{one['honest']:,}",
            upward(one["epsilon"]),
            downward(one["attack_lower"]),
        )
        for one in document["groups"]
    ]
    columns = ("group", "method", "people", "honest", "epsilon", "attack")
    yield Grid("What a person of each group is promised", columns, rows)
    yield f"everybody, whatever her group: {upward(document['epsilon'])}, as in {document['weakest']}"
    yield "Groups must be public and must not depend on private values; who looks may know everybody else's."
    yield f"protection: {document['verdict']['sentence']}"
    yield from document["notes"]


def _row(text: str) -> tuple[str, str, str]:
    name, mark, rest = text.rpartition("=")
    if not mark:
        raise ParameterError(f"--group must be {FORM}, got {text!r}.")
    people, _, honest = rest.partition(",")
    return name.strip(), people.strip(), honest.strip()


def _read(path: Path) -> list[tuple[str, str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            if not {"name", "n"} <= set(table.fieldnames or ()) <= set(COLUMNS):
                raise ParameterError(f"{path} must have the columns name, n and, if wanted, honest.")
            rows = [(row["name"] or "", row["n"] or "", row.get("honest") or "") for row in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise ParameterError(f"--groups-file {path} cannot be read: {why}.") from None
    if not rows:
        raise ParameterError(f"{path} must have a row for each group, got none.")
    return [(name.strip(), n.strip(), honest.strip()) for name, n, honest in rows]


def _number(text: str) -> Any:
    """A count as it is typed, such as 2e4; anything else as it is, for the message."""
    try:
        return as_whole(float(text))
    except ValueError:
        return text


# What `dovetail account` prints: the central epsilon, where the truth lies, and all bounds side by side.


WIDTH = 24  # characters of the bar


def inverse_blocks(document: dict[str, Any]) -> Iterator[Facts]:
    """The largest epsilon0, rounded down, and how well it protects one person."""
    from dovetail.core.verdict import numbered

    epsilon0 = f"{math.floor(document['epsilon0'] * 1e6) / 1e6:.6f}"
    rows = {"epsilon0": epsilon0, "protection": document["verdict"]["sentence"], **numbered(document["notes"])}
    yield Facts("Largest local epsilon", rows)


def account_blocks(document: dict[str, Any]) -> Iterator[Facts | Grid | str]:
    """The central epsilon with what it rests on, all bounds, and the files that were written."""
    from dovetail.core.verdict import numbered

    rows = {
        "protection": document["verdict"]["sentence"],
        "epsilon": _words(document["epsilon"]),
        **_central_rows(document),
        "method": document["method"],
    }
    if document["numeric_lower"] is not None:
        lower = downward(document["numeric_lower"])
        rows["numerics"] = f"the value of the theorem used lies between {lower} and epsilon"
    if not isinstance(document["attack_lower"], dict):
        reached = downward(document["attack_lower"])
        rows["attack"] = f"a collection exists whose reports reach {reached}: no proof can promise less"
        rows["truth"] = truth_bar(document["attack_lower"], document["epsilon"])
    rows["source"] = document["source"]
    rows |= numbered(document["notes"])
    yield Facts("After shuffling", rows)
    yield from _bounds(document["bounds"])
    for kind, place in document.get("files", {}).items():
        yield f"{kind}: {place}"


def truth_bar(attack: float, quoted: float) -> str:
    """Where the truth lies: beyond what an attack reaches, not beyond what is quoted.

    >>> truth_bar(0.5, 1.0)
    '0 ############------------ 1: # attacked, - the truth is here'
    """
    full = WIDTH if quoted <= 0.0 else min(WIDTH, math.floor(WIDTH * attack / quoted))
    return f"0 {'#' * full}{'-' * (WIDTH - full)} {_words(quoted)}: # attacked, - the truth is here"


def _central_rows(document: dict[str, Any]) -> dict[str, str]:
    central = document["central"]
    if "lines" in central:
        return dict(zip(("all honest", "some honest", "colluding"), central["lines"], strict=True))
    return {
        f"{document['rounds']} rounds": f"all {central['n']:,} honest: {_words(central['all'])}",
        "some honest": f"{central['honest_n']:,} of them: {_words(central['honest'])}",
        "colluding": f"the local guarantees add to epsilon {_words(central['colluding'])}",
    }


def _bounds(bounds: dict[str, Any]) -> Iterator[Grid | str]:
    from dovetail.report.number_format import ABSENT

    rows = [(name, ABSENT if isinstance(value, dict) else _words(value)) for name, value in bounds.items()]
    yield Grid("All bounds, side by side", ("bound", "epsilon"), rows)
    for name, value in bounds.items():
        if isinstance(value, dict):
            yield f"{ABSENT} {name}: {value['reason']}"


def _words(value: Any) -> str:
    from dovetail.report.number_format import upward

    return f"nothing: {value['reason']}" if isinstance(value, dict) else upward(value)


Axis = Literal["n", "epsilon0", "delta"]
RANGES: dict[str, tuple[float, float]] = {"n": (1e2, 1e8), "epsilon0": (0.1, 10.0), "delta": (1e-12, 1e-2)}
POINTS = 100
ANY, BINARY = "any", "binary"  # besides the names of randomizers: no randomizer in particular, and krr with k = 2


@dataclass(frozen=True)
class Shuffle:
    """The shuffle that is asked about: its people, rounds and randomizer."""

    delta: Annotated[float, typer.Option(parser=as_share, help="delta of the central guarantee, in [0, 1).")]
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
    delta0: Annotated[float, typer.Option(parser=as_share, help="What the local promise may fail by, in [0, 1).")] = (
        0.0
    )
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
        """Arguments that the accountants of one round and of several share."""
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
        show(document, *inverse_blocks(document), as_json=as_json)
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
        show(document, *groups_blocks(document), as_json=as_json)
        return
    document = forward_document(shuffle, shuffle.epsilon0, curve)
    show(document, *account_blocks(document), as_json=as_json)


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
    from dovetail.account.clones import without_compiled_loops
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
    from dovetail.account.rounds import ShuffledRound

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
        labels={name: name for name in table if name not in (along, "attack")},
        y="central epsilon (upper bound)",
        log_x=True,
        log_y=True,
        title=_title(along, **point),
    )
    return {"curve": {name: column.tolist() for name, column in table.items()}, "files": files}


def curve_table(
    along: Axis, point: dict[str, Any], *, adaptive: bool, ends: tuple[float | None, float | None]
) -> dict[str, Any]:
    """The central epsilon along one axis, geometrically spaced: of one randomizer for all, of several, an attack."""
    import numpy as np

    from dovetail.account.amplify import curve
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
        return {along: grid, "clones": upper[0], "attack": lower}
    return {along: grid, "one randomizer for all": upper[0], "attack": lower, "clones": upper[1]}


# --- questions -----------------------------------------------------------------------------------------------------


def accounting_subject(shuffle: Shuffle, epsilon0: float) -> Subject:
    """The randomizer that a name stands for; a float for any."""
    from dovetail.core.checks import privacy_budget
    from dovetail.core.stages import RANDOMIZERS
    from dovetail.plan.search import promising

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
        subject: Subject = promising(lambda epsilon: kind(lower=0.0, upper=1.0, epsilon=epsilon), epsilon0)
    else:
        subject = promising(lambda epsilon: kind(k=k or 2, epsilon=epsilon), epsilon0)
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
    from dovetail.core.stages import RANDOMIZERS
    from dovetail.plan.requirements import Requirements
    from dovetail.plan.search import families, largest_epsilon0

    name = "krr" if shuffle.randomizer == BINARY else shuffle.randomizer
    question: Any = RANDOMIZERS[name].question
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


VERBS = {"account": _account}
