"""The plan of several questions: what each way to ask them promises, and how accurate every answer is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.account.compose import Ask, questions_guarantee
from dovetail.core.checks import whole
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP
from dovetail.core.progress import Progress, silent
from dovetail.core.stages import FrequencyRandomizer, NumericRandomizer
from dovetail.estimate.accuracy import Z95, Accuracy, predict_accuracy
from dovetail.job.build import build_randomizer
from dovetail.job.questions import Question, QuestionsConfig, honest_in

WAYS: tuple[Ask, ...] = ("all", "joint", "one")
FAR = 12.0  # standard deviations, beyond which a binomial has less than 1e-30

Analyst = FrequencyRandomizer | NumericRandomizer


@dataclass(frozen=True)
class PlannedQuestion:
    """One question: how many answer it on average, and how far off its share or mean will be.

    `expected` is the number of people who are expected to answer.
    """

    column: str
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
    """Every way to ask these questions of n people; nobody's answers are needed.

    Parameters
    ----------
    smallest : int, 2 .. n
        People of the smallest group, where they are shuffled inside groups: that one is promised least.

    Raises
    ------
    ConfigError
        For a column whose categories are not declared, for more honest people than n, and for groups whose smallest
        one is not known.
    """
    people = whole("n", n, least=2, most=10**12)
    promise = asked.head.promise
    if promise.honest is not None and promise.honest > people:
        raise ConfigError(f"`promise.honest` must be at most n = {people:,}, got {promise.honest:,}.")
    batch = _smallest(asked, people, smallest)
    parts = [_randomizer(question, place) for place, question in enumerate(asked.questions, 1)]
    weights = [question.weight for question in asked.questions]
    found = []
    for done, ask in enumerate(WAYS):
        progress("ways to ask", done, len(WAYS))
        central = questions_guarantee(
            parts, ask=ask, n=batch, delta=promise.delta, honest=honest_in(batch, people, promise.honest),
            weights=weights if ask == "one" else (),
        )  # fmt: skip
        shares = [weight / sum(weights) if ask == "one" else 1.0 for weight in weights]
        questions = tuple(
            PlannedQuestion(question.column, part, people * share, predicted(part, people, share))
            for question, part, share in zip(asked.questions, parts, shares, strict=True)
        )
        found.append(PlannedWay(ask, len(parts) if ask == "all" else 1, central, questions))
    progress("ways to ask", len(WAYS), len(WAYS))
    return tuple(found)


def _smallest(asked: QuestionsConfig, people: int, smallest: int | None) -> int:
    """How many people are shuffled with somebody of the smallest group."""
    if asked.head.shuffle.groups is None:
        if smallest is not None:
            raise ConfigError("`smallest` is for groups, [shuffle] groups in the file: here everybody is one group.")
        return people
    if smallest is None:
        raise ConfigError(
            f"people are shuffled inside the groups of {asked.head.shuffle.groups.labels!r}: say how many the "
            "smallest one has, --smallest-group."
        )
    return whole("smallest", smallest, least=2, most=people)


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


def mean_inverse(n: int, share: float) -> float:
    """E[1/M] of a binomial M of n trials, given that it is not 0.

    >>> round(mean_inverse(2, 0.5), 6)  # (2/4 / 1 + 1/4 / 2) / (3/4)
    0.833333
    """
    far = FAR * math.sqrt(n * share * (1.0 - share)) + FAR
    middle = n * share
    m: NDArray[np.float64] = np.arange(max(1, math.floor(middle - far)), min(n, math.ceil(middle + far)) + 1.0)
    from scipy.stats import binom  # half a second

    mass = binom.pmf(m, n, share)
    return float((mass / m).sum() / mass.sum())


def _randomizer(question: Question, place: int) -> Analyst:
    data = question.settings.data
    names = None if data.categories is None else tuple(data.categories)
    if names is None and not data.numeric:
        raise ConfigError(f"question {place} ({question.column!r}): a plan needs its `categories`.")
    return build_randomizer(question.settings.randomize, data, names)
