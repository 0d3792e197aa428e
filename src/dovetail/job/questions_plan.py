"""The plan of several questions: what each way to ask them promises, and how accurate every answer is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dovetail.account.compose import Ask, questions_guarantee
from dovetail.core.checks import whole
from dovetail.core.errors import ConfigError
from dovetail.core.estimate import Z95
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import People
from dovetail.core.progress import Progress, silent
from dovetail.core.question import Question as Asked
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.estimate.accuracy import Accuracy, predict_accuracy
from dovetail.job.build import build_noises, build_question
from dovetail.job.messages import Part
from dovetail.job.questions import QuestionsConfig, composed_guarantee, drawn_guarantee, honest_in
from dovetail.job.together import Choices
from dovetail.noise.classes import EpsilonClasses
from dovetail.shuffle.uniform import Uniform

WAYS: tuple[Ask, ...] = ("all", "joint", "one")
FAR = 12.0  # standard deviations, beyond which a binomial has less than 1e-30

Analyst = FrequencyRandomizer | NumericRandomizer


@dataclass(frozen=True)
class PlannedQuestion:
    """One question: how many answer it on average, and how far off its share or mean will be.

    `expected` is the number of people who are expected to answer.
    """

    column: str
    measure: str
    randomizer: Analyst
    expected: float
    accuracy: Accuracy


@dataclass(frozen=True)
class PlannedWay:
    """One way to ask: messages of a person, one guarantee for her, and every question.

    The central guarantee is the one that `run` quotes.
    """

    ask: Ask
    messages: int
    central: CentralDP
    questions: tuple[PlannedQuestion, ...]


def plan_questions(
    asked: QuestionsConfig, n: int, *, smallest: int | None = None, progress: Progress = silent
) -> tuple[PlannedWay, ...]:
    """Every way to ask these questions of n people that goes with their noise; nobody's answers are needed.

    Parameters
    ----------
    smallest : int, 2 .. n
        People of the smallest group, where they are shuffled inside groups: that one is promised least.

    Raises
    ------
    ConfigError
        For a column whose categories are not declared, for more honest people than n, for groups whose smallest
        one is not known, and for epsilons by class, whose people are not known.
    """
    people = whole("n", n, least=2, most=10**12)
    promise = asked.head.promise
    if promise.honest is not None and promise.honest > people:
        raise ConfigError(f"`promise.honest` must be at most n = {people:,}, got {promise.honest:,}.")
    batch = _smallest(asked, people, smallest)
    noise, weights = asked.choices[1], asked.weights
    if noise == EpsilonClasses.name:
        raise ConfigError("epsilons by class: a plan does not know how many people each class has; `check` does.")
    ways = [ask for ask in WAYS if Choices(ask, noise, Uniform.name).refusal is None]
    found: list[PlannedWay] = []
    for done, ask in enumerate(ways):
        progress("ways to ask", done, len(ways))
        chances = asked.by(ask).chances
        try:
            parts = _parts(asked.by(ask), people)
        except ConfigError:  # combinations may be too many where answers by themselves are not
            if ask == asked.head.ask or ask != "joint":
                raise
            continue
        randomizers = [part.noise.randomizer for part in parts]
        if all(part.noise.accounted is not None for part in parts):
            central = questions_guarantee(
                randomizers, ask=ask, n=batch, delta=promise.delta, honest=honest_in(batch, people, promise.honest),
                weights=weights if ask == "one" else (),
            )  # fmt: skip
        else:
            everybody = People(people, pl.DataFrame(), promise.honest)
            each = [(part.noise, everybody) for part in parts]
            composed = (
                drawn_guarantee(each, chances, delta=promise.delta)
                if ask == "one"
                else composed_guarantee(each if ask == "all" else each[:1], Uniform(people), delta=promise.delta)
            )
            if not isinstance(composed, CentralDP):
                raise ConfigError(f"{people:,} people are too few: {composed.reason}.")
            central = composed
        questions = tuple(
            PlannedQuestion(
                part.column, part.question.measure, part.noise.randomizer, people * share,
                planned_error(part, people, share),
            )
            for part, share in zip(parts, chances, strict=True)
        )  # fmt: skip
        found.append(PlannedWay(ask, len(parts) if ask == "all" else 1, central, questions))
    progress("ways to ask", len(ways), len(ways))
    return tuple(found)


def _smallest(asked: QuestionsConfig, people: int, smallest: int | None) -> int:
    """How many people are shuffled with somebody of the smallest group."""
    if asked.head.shuffle.groups is None:
        if smallest is not None:
            raise ConfigError("`smallest` is for groups, [shuffle] groups in the file: here everybody is one group.")
        return people
    if smallest is None:
        raise ConfigError(
            f"people are shuffled inside the groups of {asked.head.shuffle.groups.columns[0]!r}: say how many the "
            "smallest one has, --smallest-group."
        )
    return whole("smallest", smallest, least=2, most=people)


def planned_error(part: Part, n: int, share: float) -> Accuracy:
    """The error of a question that each of n people answers with probability `share`, as the question itself says."""
    question, noise = part.question, part.noise
    if (
        noise.accounted is not None and type(question).error is Asked.error
    ):  # that of the noise, of which more is known
        return predicted(noise.randomizer, n, share)
    low, high = question.span or (0.0, 1.0)
    held, inverse = (high - low) ** 2 / 4.0, mean_inverse(n, share) if share < 1.0 else 1.0 / n
    # squares of errors fall with M, or with its square where there are dummies of the shuffler: E[1/M^2] bounds both
    fewer = n if share == 1.0 else math.floor(mean_inverse(n, share, power=2) ** -0.5)
    noisy = question.error(noise, People(max(2, fewer), pl.DataFrame()))
    drawing = held * (n * inverse - 1.0) / max(n - 1, 1)
    error, drawn = math.sqrt(noisy**2 + drawing), math.sqrt(noisy**2 + held * inverse)
    return Accuracy(error, Z95 * error, Z95 * drawn)


def predicted(randomizer: Analyst, n: int, share: float) -> Accuracy:
    r"""The error where each of n people answers with probability `share`, M of them in all.

    .. math:: \mathrm{se}^2 = E\Bigl[ \frac{1}{M} \Bigl( V + \frac{n - M}{n - 1}\, S \Bigr) \Bigm| M \ge 1 \Bigr]

    V as in `predict_accuracy`; S bounds the variance of what people hold: 1/4 for a share, a quarter of the squared
    range for a mean (Popoviciu 1935).
    """
    alone = predict_accuracy(randomizer, n=n)
    if share == 1.0:
        return alone
    width = randomizer.upper - randomizer.lower if isinstance(randomizer, NumericRandomizer) else 1.0
    rounding = alone.error95 - Z95 * alone.standard_error
    noise, held, inverse = alone.standard_error**2 * n, width**2 / 4.0, mean_inverse(n, share)
    drawing = held * (n * inverse - 1.0) / max(n - 1, 1)
    error, drawn = math.sqrt(noise * inverse + drawing), math.sqrt((noise + held) * inverse)
    return Accuracy(error, Z95 * error + rounding, Z95 * drawn + rounding)


def mean_inverse(n: int, share: float, *, power: int = 1) -> float:
    """E[1/M^power] of a binomial M of n trials, given that it is not 0.

    >>> round(mean_inverse(2, 0.5), 6)  # (2/4 / 1 + 1/4 / 2) / (3/4)
    0.833333
    """
    far = FAR * math.sqrt(n * share * (1.0 - share)) + FAR
    middle = n * share
    m: NDArray[np.float64] = np.arange(max(1, math.floor(middle - far)), min(n, math.ceil(middle + far)) + 1.0)
    from scipy.stats import binom  # half a second

    mass = binom.pmf(m, n, share)
    return float((mass / m**power).sum() / mass.sum())


def _parts(asked: QuestionsConfig, n: int) -> list[Part]:
    each = [question.settings for question in asked.questions]
    for place, (question, config) in enumerate(zip(asked.questions, each, strict=True), 1):
        if config.data.categories is None and not config.data.numeric:
            raise ConfigError(f"question {place} ({question.column!r}): a plan needs its `categories`.")
    questions = [build_question(config, config.data.categories) for config in each]
    noises = build_noises(each, questions, n=n, ask=asked.head.ask, chances=asked.chances)
    columns = [question.column for question in asked.questions]
    return [Part(*one) for one in zip(questions, noises, columns, strict=True)]
