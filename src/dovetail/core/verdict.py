"""Verdicts on how well one person is protected, by whom one has to trust: the scale, its words, its warnings.

The one place where a promise becomes a word. Report, terminal, planner, browser, service and documentation take words
and warnings from here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any, Literal, NamedTuple

from dovetail.core.display import quantize, strip, upward
from dovetail.core.errors import ParameterError
from dovetail.core.guarantee import CentralDP, check_epsilon_delta

Word = Literal["strong", "moderate", "weak", "none"]
Trusted = Literal["nobody", "shuffler", "people"]

WORDS: tuple[Word, ...] = ("strong", "moderate", "weak", "none")  # from best to worst
LIMITS: dict[Word, tuple[float, float]] = {  # the largest epsilon and the largest delta of each word; none above
    "strong": (1.0, 1e-4),
    "moderate": (3.0, 1e-3),
    "weak": (5.0, 1e-2),
}
NOBODY = "protects nobody but by trust in the shuffler"
UP = 1.0 + 1e-12  # more than the rounding of a handful of operations


class Promise(NamedTuple):
    """An (epsilon, delta) promise about one person's answer."""

    epsilon: float
    delta: float = 0.0


def word_of(epsilon: float, delta: float = 0.0) -> Word:
    r"""Say in one word what (epsilon, delta) promises one person; the scale of the whole package.

    .. math:: V \le \frac{e^{\varepsilon} + \delta}{1 + e^{\varepsilon}}

    is how often a guess between two answers that were equally likely before is right at most (`guess_bound`),
    whatever else is known. The word is the first whose two limits both hold:

    ==========  =============  ============  =======================
    word        epsilon up to  delta up to   a guess is right at most
    ==========  =============  ============  =======================
    strong      1              1e-4          74 of 100 times
    moderate    3              1e-3          96 of 100 times
    weak        5              1e-2          99.4 of 100 times
    none        above          above         nearly always
    ==========  =============  ============  =======================

    delta enters twice: in the guess, and by limits of its own, because what lays one answer open with probability
    delta keeps the promise. It does not enter by 1/n: more people do not make one person's chance larger. A delta
    that is not below 1/n is warned of (`warnings_of`): then somebody among the n may be expected to be exposed.

    Raises
    ------
    ParameterError
        For an epsilon below 0, a delta outside [0, 1], and what is no number.

    Examples
    --------
    >>> word_of(1.0), word_of(2.0, 1e-6), word_of(4.0), word_of(9.0), word_of(0.1, 0.5)
    ('strong', 'moderate', 'weak', 'none', 'none')

    Source
    ------
    A convention and no theorem. Up to 1 is the first tier of Ponomareva and others (2023), How to DP-fy ML, Journal
    of Artificial Intelligence Research 77, 1113-1201. Their second, up to 10, is for models trained with central
    differential privacy; there a guess between two answers is right in 99.996 % of the cases, so that the limits 3
    and 5 are our own and stricter. That delta has to stay well below 1/n: Dwork and Roth (2014), The Algorithmic
    Foundations of Differential Privacy, section 2.3; its limits here are our own. Reading epsilon as the chance of a
    guess: Lee and Clifton (2011), How Much Is Enough? Choosing epsilon for Differential Privacy.
    """
    check_epsilon_delta(epsilon, delta)
    return next((word for word, (most, slack) in LIMITS.items() if epsilon <= most and delta <= slack), "none")


def guess_bound(epsilon: float, delta: float = 0.0, *, blind: float = 0.5) -> float:
    r"""Bound how often a guess at one person's answer is right; `blind` is the share of the likeliest answer before.

    .. math:: V \le \frac{b\, e^{\varepsilon} + (1 - b)\, \delta}{1 - b + b\, e^{\varepsilon}}

    for every prior whose likeliest answer has probability b, any number of answers, and whatever is known of others.
    Proof: let A_x be the outputs at which x is named. By the promise, P_x(A_x) is at most E times the mean of
    P_x'(A_x) over the other answers x', weighted by their prior, plus delta. Times pi_x, with pi_x / (1 - pi_x) at
    most b / (1 - b), and summed over x: V <= E b / (1 - b) (1 - V) + delta.

    Examples
    --------
    >>> round(guess_bound(2.0), 4), round(guess_bound(2.0, blind=0.9), 4), guess_bound(600.0)
    (0.8808, 0.9852, 1.0)

    Source
    ------
    The proof above; for two equally likely answers it is the symmetric point of the trade-off of Kairouz, Oh,
    Viswanath (2015), The Composition Theorem for Differential Privacy.
    """
    check_epsilon_delta(epsilon, delta)
    if not 0.0 <= blind <= 1.0:
        raise ParameterError(f"`blind` must lie in [0, 1], got {blind!r}.")
    inverse = math.exp(-epsilon)  # divided by E, so that nothing overflows
    return min(1.0, (blind + (1.0 - blind) * delta * inverse) / (blind + (1.0 - blind) * inverse) * UP)


def scale_sentences() -> tuple[str, ...]:
    """State the scale and its sources in words, with the limits that `word_of` has."""
    tiers = ", ".join(
        f"{word} up to ε = {most:g} and δ = {upward(slack)} (right in at most {percent_up(guess_bound(most, slack))})"
        for word, (most, slack) in LIMITS.items()
    )
    return (
        f"Scale, a convention and no theorem: {tiers}, none above. “Right” is a guess between two answers of one "
        "person that were equally likely before; blind it is right in 50%.",
        "Up to 1 is the first tier of Ponomareva and others (2023, How to DP-fy ML, Journal of Artificial "
        "Intelligence Research 77, 1113-1201); their second reaches to 10, where such a guess is right in 99.996%, "
        "so the other limits are our own and stricter.",
        "What lays one answer open with probability δ keeps the promise. δ should stay well below 1/n (Dwork and "
        "Roth, 2014, The "
        "Algorithmic Foundations of Differential Privacy, section 2.3); a larger one is warned of.",
    )


def warnings_of(delta: float, n: int, *, honest: int | None = None, epsilon0: float | None = None) -> Iterator[str]:
    """Warn of a report that is all but open, of a delta that is too large for n people, and of a person alone.

    >>> list(warnings_of(1e-6, 1000, epsilon0=2.0)), [text[:32] for text in warnings_of(0.5, 1, epsilon0=9.0)]
    ([], ['lower the epsilon of one report:', 'delta = 0.5 is not below 1/2: su', 'one person alone: no other repor'])
    """
    if epsilon0 is not None and math.isfinite(epsilon0) and word_of(epsilon0) == "none":
        yield f"lower the epsilon of one report: with {upward(epsilon0)} it is all but an open answer"
    if delta * n >= 1.0 or delta >= 0.5:
        least = f"1/n = {1 / n:.3g}" if delta * n >= 1.0 else "1/2"
        yield (
            f"delta = {delta:g} is not below {least}: such a guarantee allows publishing one person's report "
            "outright; take a delta well below 1/n"
        )
    if (n if honest is None else honest) <= 1:
        whom = "one person alone" if n <= 1 else f"only one of {n:,} people is assumed honest"
        yield f"{whom}: no other report hides hers, so shuffling adds nothing"


def numbered(notes: Iterable[str]) -> dict[str, str]:
    """Rows of a printed table, one for each warning.

    >>> numbered(["first", "second"])
    {'note 1': 'first', 'note 2': 'second'}
    """
    return {f"note {place}": note for place, note in enumerate(notes, start=1)}


@dataclass(frozen=True)
class TrustRow:
    """Verdict for one person if those named in `who` are honest.

    Parameters
    ----------
    trusted : "nobody", "shuffler" or "people"
    who : str
        In words.
    epsilon, delta : float
        The promise that holds then.
    best : Word
        The best word that is given; "moderate" where the answers lie open to those who see who sent what.
    everybody : bool
        Whether it counts on every one of several people, which nobody can know.
    """

    trusted: Trusted
    who: str
    epsilon: float
    delta: float
    best: Word = "strong"
    everybody: bool = False

    @property
    def word(self) -> Word:
        """The word on the scale, no better than `best`."""
        return max(word_of(self.epsilon, self.delta), self.best, key=WORDS.index)

    @property
    def guess(self) -> float:
        """Largest probability that a guess between two equally likely answers is right."""
        return guess_bound(self.epsilon, self.delta)

    def guess_from(self, blind: float) -> float:
        """The same where the likeliest answer has the share `blind` and that is known."""
        return guess_bound(self.epsilon, self.delta, blind=blind)

    @property
    def odds(self) -> float:
        """The factor by which odds may shift, up to delta."""
        return math.exp(self.epsilon) * UP if self.epsilon < 700.0 else math.inf

    def sentence(self) -> str:
        """The row in words."""
        return (
            f"a guess between two answers of one person is right: blind 50%, from this at most "
            f"{percent_up(self.guess)}; odds × {upward(self.odds)}"
        )


@dataclass(frozen=True)
class Verdict:
    """The rows by trust, the word that they come to, and under which trust it holds.

    Parameters
    ----------
    rows : tuple of TrustRow
        From no trust to most; one promise is never larger than that before.
    decides : TrustRow
        Of the rows that are not ruled out by an assumption, the worst; of rows with its word the one that trusts
        least.
    commonest : float, optional
        The share of the commonest answer, where it becomes known.
    """

    rows: tuple[TrustRow, ...]
    decides: TrustRow
    commonest: float | None = None

    @property
    def word(self) -> Word:
        """The word of the row that decides."""
        return self.decides.word

    def sentence(self) -> str:
        """The word with the assumption beside it, and what is left without."""
        first, most = self.rows[0], self.rows[-1]
        if self.decides is first:
            if first.word != "none":
                return f"{self.word}, even if all others cheat"
            return f"none: it {NOBODY}" if most is not first else "none: it protects nobody"
        left = f"it {NOBODY}" if first.word == "none" else f"{first.word} without that trust"
        only = "but only if" if self.decides.everybody else "if"
        return f"{self.word}, {only} {self.decides.who} {_verb(self.decides)} honest; {left}"

    def document(self) -> dict[str, Any]:
        """The same as JSON-ready dictionaries; infinity is the string "inf"."""
        return {
            "word": self.word,
            "sentence": self.sentence(),
            "rows": [
                {
                    "trusted": row.trusted,
                    "who": row.who,
                    "word": row.word,
                    "epsilon": _finite(row.epsilon),
                    "delta": row.delta,
                    "odds": _finite(row.odds),
                    "blind": 0.5,
                    "guess": row.guess,
                    "at_hand": {"value": None, "reason": "no share of an answer is known"}
                    if self.commonest is None
                    else {"blind": self.commonest, "guess": row.guess_from(self.commonest)},
                }
                for row in self.rows
            ],
        }


def judge(
    nobody: Promise,
    *,
    shuffler: Promise | None = None,
    people: Promise | None = None,
    n: int,
    honest: int | None = None,
    shuffled: bool = True,
    crowd: str = "people",
    commonest: float | None = None,
) -> Verdict:
    """Say how well one person is protected for each set of people whom one may trust.

    What holds with less trust holds with more, so each row is the best promise up to its own. The last row decides:
    whom it trusts stands beside the word. Where a shuffler that tells who sent what leaves no promise, no row gets
    the best word. The word never gets better where epsilon or delta grows.

    Parameters
    ----------
    nobody : Promise
        The local one: the shuffler tells who sent what.
    shuffler : Promise, optional
        The shuffler keeps the order to itself and adds its dummies; all other people tell what they sent.
    people : Promise, optional
        Besides, `honest` of the `n` people who are shuffled together keep what they sent to themselves.
    shuffled : bool
        Whether anything is shuffled at all; otherwise nobody can be trusted with anything.
    crowd : str
        What the `n` are called.
    commonest : float, optional
        The share of the commonest answer, where it becomes known; no word depends on it.

    Examples
    --------
    >>> open_answers = judge(Promise(600.0), people=Promise(600.0, 1e-6), n=4200)
    >>> open_answers.sentence()
    'none: it protects nobody but by trust in the shuffler'
    >>> judge(Promise(2.0), people=Promise(0.1, 1e-6), n=10_000, honest=9_000).sentence()
    'strong, if the shuffler and 9,000 of 10,000 people are honest; moderate without that trust'
    """
    rows = [TrustRow("nobody", "nobody", *nobody)]
    if shuffled:
        best: Word = "moderate" if rows[0].word == "none" else "strong"
        trusted = n if honest is None else honest
        others = f"all {n:,} {crowd}" if trusted >= n else f"{trusted:,} of {n:,} {crowd}"
        others = "the one person" if n == 1 else others
        rows.append(TrustRow("shuffler", "the shuffler", *_best(nobody, shuffler), best))
        most = _best(nobody, shuffler, people)
        rows.append(TrustRow("people", f"the shuffler and {others}", *most, best, everybody=trusted >= n > 1))
    return Verdict(tuple(rows), next(row for row in rows if row.word == rows[-1].word), commonest)


def judge_central(central: CentralDP, *, local_delta: float = 0.0) -> Verdict:
    """Say the same of a central guarantee, with what is left of it when the shuffler tells who sent what.

    `local_delta` is that of one report. Dummies of the shuffler that need no honest people hold without them.

    Examples
    --------
    >>> from dovetail.account.amplify import amplify
    >>> judge_central(amplify(9.0, n=1_000_000, delta=1e-6)).word
    'moderate'
    """
    promise = Promise(central.epsilon, central.delta)
    alone = central.trust == "shuffler" and central.honest_n == 1
    return judge(
        Promise(central.colluding, local_delta),
        shuffler=promise if alone else None,
        people=promise,
        n=central.n,
        honest=None if alone else central.honest_n,
    )


def _best(*promises: Promise | None) -> Promise:
    """The promise with the best word, and of those the one with the least guess."""
    return min(
        (one for one in promises if one is not None),
        key=lambda one: (WORDS.index(word_of(*one)), guess_bound(*one), one.epsilon),
    )


def _finite(number: float) -> float | str:
    return "inf" if math.isinf(number) else number


def _verb(row: TrustRow) -> str:
    return "is" if row.trusted == "shuffler" else "are"


def percent_up(chance: float) -> str:
    """A chance in percent, two decimals, rounded up; below 1 never shown as 100%.

    >>> percent_up(0.880797), percent_up(1.0 - 1e-9), percent_up(1.0)
    ('88.08%', 'nearly 100%', '100%')
    """
    shown = strip(quantize(Decimal(repr(float(chance))).scaleb(2), 2, ROUND_CEILING))
    return "nearly 100%" if shown == "100" and chance < 1.0 else f"{shown}%"
