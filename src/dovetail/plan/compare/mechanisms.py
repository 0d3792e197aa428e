"""Randomizers and shufflers of equal accuracy, listed by what each adversary learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from dovetail.core.bracket import Bracket
from dovetail.core.channel import KRRChannel
from dovetail.core.checks import MOST_PEOPLE, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.leak.vulnerability import vulnerability
from dovetail.plan.calibrated_randomizer import CalibratedRandomizer, calibrate
from dovetail.plan.compare.adversaries import (
    AdversaryLeakage,
    cap_leakage,
    linked_report_leakage,
    strong_adversary_leakage,
    uninformed_adversary_leakage,
)
from dovetail.plan.compare.comparison import ComparedMechanism, MechanismComparison
from dovetail.plan.families import families
from dovetail.plan.requirements import Requirements
from dovetail.plan.search import guaranteed_epsilon


def compare_mechanisms(
    *,
    n: int,
    k: int,
    error: float,
    delta: float | None = None,
    honest: int | None = None,
    rng: Entropy | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> MechanismComparison:
    r"""Which mechanism leaks least at a wanted accuracy, and to whom?

    Every kind of randomizer gets the least epsilon0 that reaches the error, once with its reports linked to their
    senders (the paper's N) and once in uniformly random order (NS); beside them the values themselves in random
    order (S), which has no error. The order can differ between adversaries: shuffling alone hides much from somebody
    who knows nobody, and nothing from somebody who knows all others.

    Parameters
    ----------
    n : int, 1 .. 1e12
        People who will answer, once each.
    k : int, 2 to 2^24
        Number of values.
    error : float, above 0, below 1
        What one share may be off with probability 95 %, whatever people hold.
    delta : float, at least 0, below 1, optional
        Of the central guarantee; default 1 / (100 n).
    honest : int, 1 .. n, optional
        People assumed to keep their reports secret: the crowd in which one hides; default all.
    rng : Entropy, optional
        Allows Monte Carlo where nothing exact is in reach.
    progress : function of the randomizers that are done and their number, optional

    Raises
    ------
    ParameterError
        For numbers outside these ranges.

    Notes
    -----
    Uninformed: exact for k-ary randomized response; enumerated or sampled for Hadamard response and unary encoding,
    up to 1e7 people and 64 kinds of report; not known for local hashing. Strong: the worst of all known histograms
    for k-ary randomized response while there are at most 64 of them; else a bracket whose upper end decides the
    rank: the smallest of the person's own report, the central guarantee, and a blanket bound. Seconds; n above 1e6
    with 3 to 9 values some thirty times what `vulnerability` takes.

    Examples
    --------
    >>> found = compare_mechanisms(n=1000, k=2, error=0.05)
    >>> [row.name for row in found.mechanisms if found.rank(row, "uninformed") == 1]  # the same law, with two values
    ['krr and shuffle', 'subset_selection and shuffle']
    >>> shuffle_only = found.mechanisms[-1]
    >>> [found.order(adversary)[-1] is shuffle_only for adversary in ("strong", "colluding")]
    [True, True]

    Source
    ------
    Jurado, Gonze, Alvim, Palamidessi (2023), Analyzing the Shuffle Model Through the Lens of Quantitative
    Information Flow, CSF, section VII (the comparison at a desired utility), Propositions 15, 20, 21 and equation 10.
    """
    if rng is not None:
        rng = entropy_or_system(rng)
    people = whole("n", n, least=1, most=MOST_PEOPLE)
    requirements = Requirements(
        "frequency",
        n=people,
        honest=people if honest is None else honest,
        delta=0.01 / people if delta is None else delta,
        k=k,
        error=error,
    )
    rows: list[ComparedMechanism] = []
    every = list(families(requirements))
    for done, family in enumerate(every):
        progress(done, len(every))
        rows += _rows(family.name, calibrate(family, requirements), requirements, rng)
    progress(len(every), len(every))
    return MechanismComparison(
        requirements.n,
        *_domain_and_error(requirements),
        requirements.delta,
        requirements.honest,
        (*rows, _shuffle_only(requirements)),
    )


def _domain_and_error(requirements: Requirements) -> tuple[int, float]:
    assert requirements.k is not None and requirements.error is not None  # a frequency for an error
    return requirements.k, requirements.error


def _rows(
    name: str, found: CalibratedRandomizer | str, requirements: Requirements, rng: Entropy | None
) -> Iterator[ComparedMechanism]:
    """One kind of randomizer, its reports linked to their senders and in uniformly random order."""
    if isinstance(found, str):
        for shuffler in ("none", "uniform"):
            yield ComparedMechanism(name, shuffler, *[found] * 6)
        return
    randomizer = found.randomizer
    assert isinstance(randomizer, FrequencyRandomizer)
    own, n = linked_report_leakage(randomizer), requirements.honest
    yield ComparedMechanism(name, "none", found.epsilon0, found.epsilon0, found.accuracy.error95, own, own, own)
    try:
        blind: AdversaryLeakage | str = uninformed_adversary_leakage(randomizer, n=n, rng=rng)
    except UnsupportedError as error:
        blind = str(error)
    lower = 0.0 if isinstance(blind, str) else blind.ends.lower
    informed = strong_adversary_leakage(randomizer, n=n, lower=lower, own=own.ends.upper)
    if not isinstance(blind, str):
        blind = cap_leakage(blind, informed.ends.upper)
    shuffled = guaranteed_epsilon(found.family, found.epsilon0, requirements, n=requirements.n)
    yield ComparedMechanism(name, "uniform", found.epsilon0, shuffled, found.accuracy.error95, blind, informed, own)


def _shuffle_only(requirements: Requirements) -> ComparedMechanism:
    """The values themselves in random order (Proposition 20); whoever knows all others subtracts them."""
    k, _ = _domain_and_error(requirements)
    seen = vulnerability(
        KRRChannel(k, keep=2, lie=1), n=requirements.honest
    )  # its shuffled part asks for k and n only
    ends = seen.shuffled_bracket
    blind = AdversaryLeakage(
        seen.prior,
        seen.shuffled_leakage,
        Bracket(max(0.0, ends.lower - seen.prior), max(seen.shuffled_leakage, ends.upper - seen.prior)),
        seen.method,
        "uniform prior, nobody's value is known",
    )
    everything = 1.0 - 1.0 / k
    told = AdversaryLeakage(
        1.0 / k, everything, Bracket(everything, everything), "closed form", "her value is all that is left"
    )
    return ComparedMechanism("none", "uniform", inf, inf, 0.0, blind, told, told)
