"""What a report on strings says: shares of those that were found, what is assumed, and what each step promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from dovetail.core.errors import UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.guarantee import CentralDP, LocalDP
from dovetail.pipeline.evaluate.estimates import LEVEL, shares_of
from dovetail.pipeline.evaluate.guarantees import order_evaluation
from dovetail.pipeline.strings.frequent_strings import FrequentString
from dovetail.pipeline.strings.recall import smallest_share
from dovetail.pipeline.strings.section import StringsSection
from dovetail.report.document import Estimates, Evaluation, Missing
from dovetail.report.number_format import percent, upward
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail.shuffle.uniform import Uniform

OTHERS = "(all other strings)"
NO_LIST = Missing("answers are strings without a list of categories")
NOT_LOCAL = "no local noise: shuffler and analyst together read every answer"
STRINGS = "Strings are asked for byte by byte: each person is in one of {levels} groups, by a hash of her name."
NONE_FALSE = (
    "A string that is found is held by somebody: a beginning is kept from {tau:g} reports on, which the dummies "
    "alone never reach. (If nobody among those who answer lies.)"
)
SOME_FALSE = "Local noise finds beginnings that nobody holds, about one in twenty levels, and their continuations."
BIASED = (
    "Shares are those of the last group, whose drawing is in their errors, and biased upwards: only large estimates "
    "are kept."
)


@dataclass(frozen=True)
class Search:
    """What was found, and what all of it promises."""

    found: list[FrequentString]
    local: LocalDP
    central: CentralDP
    last: int
    levels: int

    def is_found(self, one: FrequentString, text: str) -> bool:
        """Whether a text is the string that was found, or begins with it."""
        if one.complete:
            return text == one.text
        raw = text.encode()
        return len(raw) >= self.levels and raw[: self.levels].decode("utf-8", errors="replace") == one.text

    @property
    def randomizer(self) -> dict[str, Any]:
        """For the report: what each device does."""
        name, label = (
            ("none", "no local noise") if self.local.epsilon == inf else ("krr", "k-ary randomized response")
        )
        return {"name": name, "label": label, "epsilon": self.local.epsilon, "parameters": {}}


def evaluation_of(search: Search, n: int, truth: list[str] | None, provenance: str) -> Evaluation:
    shuffler = Uniform(n)
    lenses = ("attacks", "learnability", "copying", "label_inference")
    unmeasured: dict[str, Any] = {} if truth is None else dict.fromkeys(lenses, NO_LIST)
    noise = [one.standard_error for one in search.found]
    shares = np.array([one.share for one in search.found])
    shares = np.append(shares, 1.0 - shares.sum())
    drawn = np.sqrt(np.clip(shares * (1.0 - shares), 0.0, 0.25) / search.last)  # the last group is some of everybody
    error = np.hypot(np.append(noise, np.sqrt(np.sum(np.square(noise)))), drawn)
    labels = [one.text if one.complete else f"{one.text}..." for one in search.found] + [OTHERS]
    true = None if truth is None else _true_shares(search, truth)
    estimate = Estimate(shares, error, search.last, error)
    return Evaluation(
        shuffler=shuffler.name,
        local=search.local.drawn_from(provenance),
        central=search.central.drawn_from(provenance),
        order=order_evaluation(shuffler, provenance=provenance),
        leakage=NO_LIST,
        estimates=Estimates(
            "share", LEVEL, shares_of(estimate, labels, true), NO_LIST, withheld=[], better=NO_LIST,
        ),
        **unmeasured,
    )  # fmt: skip


def _true_shares(search: Search, truth: list[str]) -> list[float]:
    shares = [sum(search.is_found(one, text) for text in truth) / len(truth) for one in search.found]
    return [*shares, 1.0 - sum(shares)]


def assumptions_of(asked: StringsSection, n: int, search: Search, truth: list[str] | None) -> tuple[str, ...]:
    lines = [
        STRINGS.format(levels=asked.levels),
        "Each person sends exactly one report; names do not depend on strings.",
    ]
    if asked.trust == "shuffler":
        lines.append(NONE_FALSE.format(tau=Dummies(2, asked.epsilon, asked.delta).reach + 1))
        lines.append(
            "The shuffler is trusted with the noise: it draws the dummies of every level once, tells nobody their "
            "numbers, and the analyst sees the shuffled batches alone."
        )
        lines.append(_reach(asked, n))
    else:
        lines.append(SOME_FALSE)
    lines.append(BIASED)
    return tuple(lines + ([] if truth is None else _measured(asked, search, truth)))


def _reach(asked: StringsSection, n: int) -> str:
    """From which share on a string is found."""
    try:
        least = smallest_share(n=n, epsilon=asked.epsilon, delta=asked.delta, levels=asked.levels)
    except UnsupportedError as error:
        return str(error)[0].upper() + str(error)[1:]
    return (
        f"A string that {upward(100 * least)}% of the people hold is found with 95% probability, if its beginnings "
        f"are among the {asked.keep:,} most frequent ones of their length."
    )


def _measured(asked: StringsSection, search: Search, truth: list[str]) -> list[str]:
    """Recall and false strings of this rehearsal."""
    false = sum(not any(search.is_found(one, text) for text in truth) for one in search.found)
    lines = [f"In this rehearsal {len(search.found):,} strings were found, {false:,} of which nobody holds."]
    try:
        least = smallest_share(n=len(truth), epsilon=asked.epsilon, delta=asked.delta, levels=asked.levels)
    except UnsupportedError:
        return lines
    common = [text for text, count in Counter(truth).items() if count >= least * len(truth)]
    hit = sum(any(search.is_found(one, text) for one in search.found) for text in common)
    if common:
        lines.append(
            f"Of {len(common):,} strings that at least {upward(100 * least)}% of the people hold, {hit:,} were found "
            f"({percent(hit / len(common))})."
        )
    return lines


def steps_of(asked: StringsSection, search: Search) -> tuple[dict[str, str], ...]:
    bare = asked.trust == "shuffler"
    return (
        {
            "stage": "randomize",
            "what": "Each device sends the byte that it is asked for, under the analyst's key."
            if bare
            else "Each device answers through k-ary randomized response, before anything is sent.",
            "guarantee": "no local promise" if bare else f"{upward(search.local.epsilon)}-local differential privacy",
            "theorem": search.local.source,
        },
        {
            "stage": "shuffle",
            "what": "Each group's batch is shuffled uniformly."
            + (" The shuffler adds dummies of every answer." if bare else ""),
            "guarantee": f"({upward(search.central.epsilon)}, {upward(search.central.delta)}) for the whole search",
            "theorem": search.central.source,
        },
        {
            "stage": "estimate",
            "what": "Beginnings with enough reports go on to the next group; the last group's counts are the shares.",
            "guarantee": "post-processing: costs no privacy",
            "theorem": "docs/theory/accuracy.md, section D",
        },
    )  # fmt: skip
