"""What a collection of several questions promises: one local budget and one central guarantee for a person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from dovetail.account.amplify import amplify
from dovetail.account.compose import compose, compose_upper
from dovetail.account.composition.questions import JointReport, OneQuestion
from dovetail.account.composition.shuffled_round import ShuffledRound
from dovetail.core.bracket import Bracket
from dovetail.core.checks import refuse, whole
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.core.stages import Randomizer

Ask = Literal["all", "joint", "one"]
NEIGHBOURS = "replace one person's answers to all questions"


def local_guarantee(parts: Sequence[Randomizer], *, ask: Ask) -> LocalDP:
    """What a person's reports promise together, whoever looks at them: the sum, or for one question the largest.

    >>> from dovetail.randomize.krr import KRR
    >>> [local_guarantee([KRR(k=2, epsilon=1.0), KRR(k=5, epsilon=0.5)], ask=ask).epsilon for ask in ("all", "one")]
    [1.5, 1.0]
    """
    epsilons = [part.guarantee.epsilon for part in parts]
    caveats = tuple(dict.fromkeys(caveat for part in parts for caveat in part.guarantee.caveats))
    if ask == "one":
        source = "one question for each person, drawn by chance: the largest epsilon of a question"
        return LocalDP(max(epsilons), source=source, caveats=caveats)
    source = "answers with randomness of their own: epsilons of the questions add (Dwork et al. 2006)"
    return LocalDP(math.fsum(epsilons), source=source, caveats=caveats)


def questions_guarantee(
    parts: Sequence[Randomizer],
    *,
    ask: Ask,
    n: int,
    delta: float,
    honest: int | None = None,
    weights: Sequence[int] = (),
) -> CentralDP:
    """The central guarantee of one person's answers to all questions, from everything that is released.

    Parameters
    ----------
    parts : 2 .. 16 of Randomizer
        Everybody answers question q by parts[q].
    ask : "all", "joint" or "one"
        Every answer a report of its own, each question shuffled by itself; all answers in one report, which stay
        together; or one question for each person, drawn by chance and named.
    n : int
        People, each of whom is asked.
    honest : int, 1 .. n, optional
    weights : whole numbers, at least 1, optional
        For "one": how often a question is drawn, against the others; default all alike.

    Raises
    ------
    ParameterError
        For parameters outside their ranges.
    UnsupportedError
        For answers with a local delta.

    Examples
    --------
    >>> from dovetail.randomize.krr import KRR
    >>> both = [KRR(k=2, epsilon=1.0), KRR(k=5, epsilon=0.5)]
    >>> [round(questions_guarantee(both, ask=ask, n=10_000, delta=1e-6).epsilon, 3) for ask in ("joint", "one")]
    [0.04, 0.026]

    Source
    ------
    docs/theory/several-questions.md.
    """
    subject = JointReport(tuple(parts))  # checks the questions
    if ask == "all":
        return _shuffled_apart(parts, n=n, delta=delta, honest=honest)
    if ask == "joint":
        return replace(amplify(subject, n=n, delta=delta, honest=honest), neighbours=NEIGHBOURS)
    if ask != "one":
        raise refuse("ask", "'all', 'joint' or 'one'", ask)
    given = [whole("weights", weight, least=1) for weight in weights]
    chances = tuple(weight / sum(given) for weight in given)
    return replace(
        amplify(OneQuestion(tuple(parts), chances), n=n, delta=delta, honest=honest), neighbours=NEIGHBOURS
    )


def _shuffled_apart(parts: Sequence[Randomizer], *, n: int, delta: float, honest: int | None) -> CentralDP:
    """Each question is a round of its own: rounds compose."""
    people = whole("n", n, least=1)
    trusted = people if honest is None else whole("honest", honest, least=1, most=people)
    found = compose([ShuffledRound.of(part, trusted) for part in parts], delta=delta)
    whole_batches = [ShuffledRound.of(part, people) for part in parts]
    every = found if trusted == people else compose_upper(whole_batches, delta=delta)
    assert found.epsilon is not None and every.epsilon is not None  # pure local privacy: at most the sum
    local = local_guarantee(parts, ask="all")
    return CentralDP(
        all=min(every.epsilon, found.epsilon),
        honest=found.epsilon,
        colluding=local.epsilon,
        delta=delta,
        n=people,
        honest_n=trusted,
        method=found.method,
        source=found.source,
        numeric=Bracket(min(found.lower or 0.0, found.epsilon), found.epsilon),
        attack_lower=min(found.attack_lower, found.epsilon),
        caveats=local.caveats,
        neighbours=NEIGHBOURS,
    )
