"""`dovetail compare` and `dovetail compose`: which mechanism leaks least, and how to ask several questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.options import as_share, as_whole
from dovetail.cli.output import Grid, Json, Seed, entropy_of, show
from dovetail.cli.progress import progress_bar
from dovetail.core.display import downward, guess_in_words, upward
from dovetail.core.errors import ParameterError
from dovetail.report.number_format import ABSENT, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dovetail.account.mechanism_law import Mechanism
    from dovetail.core.stages import Randomizer
    from dovetail.plan.compare import Adversary, AdversaryLeakage, MechanismComparison


# `dovetail compare`: which mechanism leaks least at the accuracy that is needed, and to whom.


_UPPER = ("sampled", "bracket")
_KNOWS = {
    "uninformed": "Uninformed adversary: knows nobody's value",
    "strong": "Strong adversary: knows the values of all others",
    "colluding": "Colluding shuffler: knows who sent which report",
}


def _compare(
    n: Annotated[float, typer.Option(help="People who will answer, once each.")],
    k: Annotated[float, typer.Option(help="Values that a person can hold.")],
    error: Annotated[
        float, typer.Option(parser=as_share, help="How far one share may be off, with probability 95 %.")
    ],
    delta: Annotated[
        float | None,
        typer.Option(parser=as_share, help="delta of the central guarantee, well below 1/n; default 1/(100 n)."),
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
    from dovetail.plan.compare import compare_mechanisms

    asked: dict[str, Any] = {"n": n, "k": k, "error": error, "delta": delta, "honest": honest}  # 1e6 is whole
    with progress_bar(hidden=as_json) as progress:
        found = compare_mechanisms(
            **asked, rng=entropy_of(seed), progress=lambda done, total: progress("three adversaries", done, total)
        )
    show(found.document(), *_blocks(found), as_json=as_json)


def _blocks(found: MechanismComparison) -> Iterator[str | Grid]:
    from dovetail.plan.compare import ADVERSARIES

    yield from _question(found)
    for adversary in ADVERSARIES:
        yield _table(found, adversary)
    yield ""
    yield from _notes(found)


def _question(found: MechanismComparison) -> Iterator[str]:
    people = f"{found.n:,} people" + ("" if found.honest == found.n else f" ({found.honest:,} honest)")
    yield f"{people}, {found.k:,} values, 95 % error of a share {found.error:g}, delta {upward(found.delta)}."
    yield f"Uniform prior: a blind guess is right with probability {percent(1 / found.k)}."
    yield ""


def _table(found: MechanismComparison, adversary: Adversary) -> Grid:
    """From the least leakage to the most; what is not known comes last."""
    promise = "epsilon0" if adversary == "colluding" else "epsilon"
    known, rows = found.order(adversary), []
    for one in (*known, *(one for one in found.mechanisms if one not in known)):
        bound, rank = getattr(one, promise), found.rank(one, adversary)
        held = ABSENT if isinstance(bound, str) else upward(bound)
        place = ABSENT if rank is None else str(rank)
        rows.append((place, one.name.replace("_", " "), held, *_cells(one.leak(adversary))))
    heads = ("rank", "mechanism", promise, "vulnerability", "multiplicative\nleakage")
    return Grid(_KNOWS[adversary], heads, rows)


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
    from dovetail.plan.compare import ADVERSARIES

    leaks = [one.leak(adversary) for one in found.mechanisms for adversary in ADVERSARIES]
    return any(true(leak) for leak in leaks if not isinstance(leak, str))


def _absent(found: MechanismComparison) -> dict[str, list[str]]:
    """Why numbers are missing, and in which rows."""
    from dovetail.plan.compare import ADVERSARIES

    reasons: dict[str, list[str]] = {}
    for one in found.mechanisms:
        for reason in dict.fromkeys(leak for leak in map(one.leak, ADVERSARIES) if isinstance(leak, str)):
            reasons.setdefault(reason, []).append(one.name)
    return reasons


# `dovetail compose`: several questions to the same people, collected in four ways.


WORDS = {
    "separate": "each answer shuffled by itself",
    "joint": "all answers in one report",
    "chance": "one question each, drawn by chance",
    "groups": "one question each, public groups",
}


@dataclass(frozen=True)
class Question:
    """One question, and how many people answer it where groups are public."""

    name: str
    randomizer: Randomizer
    people: int | None


def _compose(
    question: Annotated[
        list[str],
        typer.Option(
            help="NAME:epsilon=NUMBER,.. of a randomizer, two times or more: k for frequencies (default 2), lower, "
            "upper and grid for numbers (default 0 to 1), and people, its group where groups are public."
        ),
    ],
    n: Annotated[float, typer.Option(help="Honest people, each of whom is asked.")],
    delta: Annotated[float, typer.Option(parser=as_share, help="delta of the central guarantee, in [0, 1).")],
    rounds: Annotated[float, typer.Option(help="How often everything is collected, each time shuffled afresh.")] = 1,
    as_json: Json = False,
) -> None:
    """Several questions to the same people: four ways to collect the answers, and what each promises a person.

    Each answer in a shuffle of its own; all answers of a person in one report, which keeps them linked; one question
    for each person, drawn by chance on the device and named in the report; or one question for each public group.
    Budget is what a person's reports promise together when the shuffler colludes; epsilon is the central guarantee;
    an attack reaches what stands beside it, so no proof can promise less.

    Examples:
    dovetail compose --question krr:k=16,epsilon=1 --question laplace:epsilon=0.5 --n 1e5 --delta 1e-6;
    dovetail compose --question krr:k=4,epsilon=1,people=2e4 --question unary:k=50,epsilon=1,people=8e4 --n 1e5
    --delta 1e-6 --rounds 12
    """
    from dovetail.core.checks import share, whole

    questions = [read_question(text, place) for place, text in enumerate(question, 1)]
    if len(questions) < 2:
        raise ParameterError("--question must be given two times or more; `dovetail account` answers for one.")
    people, times = whole("n", as_whole(n), least=1), whole("rounds", as_whole(rounds), least=1)
    with progress_bar(hidden=as_json) as progress:
        document = composition_document(questions, people, share("delta", delta), times, progress)
    show(document, *_ways(document), as_json=as_json)


def composition_document(
    questions: list[Question], n: int, delta: float, rounds: int, progress: Any
) -> dict[str, Any]:
    """The JSON document: budget, central epsilon and attack of each way."""
    from dovetail.account.questions import JointReport, OneQuestion
    from dovetail.core.verdict import warnings_of

    sizes = group_sizes(questions, n)
    parts = tuple(question.randomizer for question in questions)
    ways: dict[str, Any] = {}
    for done, way in enumerate(WORDS):
        progress("ways to collect", done, len(WORDS))
        if way == "separate":
            ways[way] = collected(parts, n, delta, rounds)
        elif way == "groups":
            ways[way] = _groups(questions, sizes, delta, rounds)
        else:
            ways[way] = collected([(JointReport if way == "joint" else OneQuestion)(parts)], n, delta, rounds)
    return {
        "n": n,
        "delta": delta,
        "rounds": rounds,
        "questions": [one.name for one in questions],
        "ways": ways,
        "notes": list(warnings_of(delta, min(sizes))),
    }


def collected(subjects: Sequence[Mechanism], n: int, delta: float, rounds: int) -> dict[str, Any]:
    """Budget, central epsilon and attack where each subject has a shuffle of its own in every round."""
    from dovetail.account.amplify import amplify
    from dovetail.account.compose import compose
    from dovetail.account.rounds import ShuffledRound
    from dovetail.core.verdict import Promise, judge

    made = [ShuffledRound.of(subject, n, times=rounds) for subject in subjects]
    found: Any = amplify(subjects[0], n=n, delta=delta) if rounds == len(made) == 1 else compose(made, delta=delta)
    assert found.epsilon is not None  # rounds of pure randomizers have at least the sum of their local promises
    budget = rounds * sum(part.epsilon0 for part in made)
    return {
        "epsilon": found.epsilon,
        "attack_lower": found.attack_lower,
        "method": found.method,
        "budget": budget,
        "n": n,
        "verdict": judge(Promise(budget), people=Promise(found.epsilon, delta), n=n).document(),
    }


def group_sizes(questions: list[Question], n: int) -> list[int]:
    """People of each public group: those given, or equal shares."""
    given = [question.people for question in questions]
    if all(size is None for size in given):
        if n < len(questions):
            raise ParameterError(f"n must be at least the number of questions, {len(questions)}, got {n}.")
        return [n // len(questions)] * len(questions)
    sizes = [size for size in given if size is not None]
    if len(sizes) < len(questions) or sum(sizes) > n:
        raise ParameterError(f"people must be given for every --question or for none, and sum to at most n = {n:,}.")
    return sizes


def _groups(questions: list[Question], sizes: list[int], delta: float, rounds: int) -> dict[str, Any]:
    """Each public group with its own question and its own people, and the weakest of them."""
    each: list[dict[str, Any]] = [
        {"question": question.name, **collected([question.randomizer], people, delta, rounds)}
        for question, people in zip(questions, sizes, strict=True)
    ]
    weakest = max(each, key=lambda one: float(one["epsilon"]))
    return {**weakest, "budget": max(float(one["budget"]) for one in each), "each": each}


def read_question(text: str, place: int) -> Question:
    """NAME:key=value,.. as a randomizer."""
    from dovetail.core.checks import whole
    from dovetail.core.stages import read_randomizer

    kind, given = read_randomizer(text, also=("people",))
    if "epsilon" not in given:
        raise ParameterError(f"--question {kind.name}: needs epsilon=NUMBER, its local promise.")
    people = given.pop("people", None)
    size = None if people is None else whole("people", as_whole(people), least=1)
    usual: dict[str, Any] = {"k": 2} if kind.question == "frequency" else {"lower": 0.0, "upper": 1.0}
    return Question(f"{place}. {kind.name}", kind(**(usual | given)), size)


def _ways(document: dict[str, Any]) -> Iterator[str | Grid]:
    times = "" if document["rounds"] == 1 else f", {document['rounds']:,} rounds"
    rows = []
    for way, found in document["ways"].items():
        rows.append((WORDS[way], *_composed_cells(found)))
        for one in found.get("each", ()):
            rows.append((f"  {one['question']}: {one['n']:,} people", *_composed_cells(one)))
    title = f"{document['n']:,} people, delta {upward(document['delta'])}{times}"
    yield Grid(title, ("collected", "budget", "epsilon", "attack", "protection"), rows)
    yield (
        "budget: what a person's reports promise if the shuffler colludes; attack: no proof can promise less; "
        "protection: with all of these people honest, and the shuffler."
    )
    yield from document["notes"]


def _composed_cells(found: dict[str, Any]) -> tuple[str, ...]:
    losses = (upward(found["budget"]), upward(found["epsilon"]), downward(found["attack_lower"]))
    return (*losses, found["verdict"]["word"])


VERBS = {"compare": _compare, "compose": _compose}
