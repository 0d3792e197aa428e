"""Several questions at once: against every collection of a few people, and against the channel of all answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, reduce
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy.optimize import nnls
from tests.oracles.test_everybody import exact_delta
from tests.tiers import EXHAUST

from dovetail.account.amplify import amplify, list_bounds
from dovetail.account.compose import Ask, compose, questions_guarantee
from dovetail.account.finite_channel import base_law, channel_exposures
from dovetail.account.mechanism_law import (
    attack_dataset,
    everybody_law,
    exposures_of,
    mechanism_attack,
    mechanism_law,
    pair_laws,
)
from dovetail.account.mechanisms.laplace import grid_laplace_exposures
from dovetail.account.mechanisms.several_questions import differing_ways, joint_exposures, one_exposures
from dovetail.account.privacy_blanket import Exposure, ShuffledLaw
from dovetail.account.questions import JointReport, OneQuestion, SampledBlock, SeveralQuestions
from dovetail.account.rounds import ShuffledRound
from dovetail.core.channel import Channel, DenseChannel, KRRChannel
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.core.special import Reals
from dovetail.core.stages import Randomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from dovetail.randomize.window import Window

Values = tuple[int, ...]

BINARY, TRIPLE = KRRChannel(2, 3, 1), KRRChannel(3, 4, 1)
SKEWED = DenseChannel([[0.6, 0.4], [0.3, 0.7]])
LAPLACE = Laplace(0.0, 1.0, epsilon=1.0, grid=0.5)


def rows_of(part: Randomizer | Channel) -> Reals:
    if isinstance(part, Laplace):  # reports outside the grid say no more than its ends
        return grid_laplace_exposures(part)[0].own
    if isinstance(part, Window):
        return np.exp(
            [part.log_density(np.arange(part.outputs), np.full(part.outputs, x)) for x in range(part.steps + 1)]
        )
    return part.matrix() if isinstance(part, Channel) else part.channel().matrix()  # type: ignore[attr-defined]


def whole_channel(several: SeveralQuestions) -> Reals:
    """Every tuple of values, every report."""
    parts = [rows_of(part) for part in several.parts]
    if isinstance(several, JointReport):
        return reduce(np.kron, parts)
    assert isinstance(several, OneQuestion)
    values = product(*(range(len(rows)) for rows in parts))
    return np.array(
        [np.concatenate([w * rows[x] for w, rows, x in zip(several.chances, parts, v, strict=True)]) for v in values]
    )


def worst(rows: Reals, n: int, e: float) -> float:
    inputs = range(len(rows))
    return max(
        exact_delta(rows, others, a, c, e)
        for others in combinations_with_replacement(inputs, n - 1)
        for a, c in permutations(inputs, 2)
    )


SMALL: list[tuple[SeveralQuestions, int]] = [
    (JointReport((BINARY, SKEWED)), 3),
    (OneQuestion((BINARY, SKEWED), (0.3, 0.7)), 3),
    (OneQuestion((BINARY, BINARY)), 4),
    (JointReport((BINARY, LAPLACE)), 2),
]
LARGER: list[tuple[SeveralQuestions, int]] = [
    (JointReport((BINARY, TRIPLE)), 3),
    (OneQuestion((TRIPLE, SKEWED), (0.8, 0.2)), 3),
    (JointReport((BINARY, BINARY, SKEWED)), 2),
    (OneQuestion((BINARY, LAPLACE)), 3),
    (JointReport((BINARY, BINARY)), 4),
]


@pytest.mark.parametrize(
    ("several", "n"), [*SMALL, *(pytest.param(*case, marks=EXHAUST) for case in LARGER)], ids=repr
)
def test_no_collection_of_a_few_people_is_more_exposed_than_the_laws_say(several: SeveralQuestions, n: int) -> None:
    rows, law = whole_channel(several), mechanism_law(several, n=n)[1]
    attack = ShuffledLaw(attack_dataset(several), n)
    for epsilon in (0.0, 0.2 * several.epsilon, 0.6 * several.epsilon):
        exact = worst(rows, n, math.exp(epsilon))
        assert attack.delta(epsilon).lower <= exact * (1 + 1e-9)
        assert exact <= law.delta(epsilon).upper * (1 + 1e-12)
        assert law.delta(epsilon).upper <= 3.5 * exact + 1e-9  # a blanket of a few people is not tight


def types_of(exposure: Exposure) -> set[tuple[tuple[float, ...], ...]]:
    """Each type as its atoms in an order of their own, equal ratios merged."""
    found = set()
    for mu, first, second, own in zip(exposure.mu, exposure.first, exposure.second, exposure.own, strict=True):
        merged: dict[tuple[float, ...], float] = {}
        for m, *laws in zip(mu, first, second, own, strict=True):
            if m == 0.0:
                continue
            key = tuple(round(float(law / m), 9) for law in laws)
            merged[key] = merged.get(key, 0.0) + float(m)
        found.add(tuple(sorted((*key, round(m, 9)) for key, m in merged.items())))
    return found


@pytest.mark.parametrize(
    "several",
    [
        JointReport((BINARY, SKEWED)),
        OneQuestion((BINARY, TRIPLE), (0.4, 0.6)),
        JointReport((TRIPLE, KRRChannel(4, 3, 1))),
        JointReport((SKEWED, Unary(2, 1.0).channel())),
        JointReport((SKEWED, BINARY, SKEWED)),
        OneQuestion((SKEWED, BINARY, SKEWED), (0.3, 0.4, 0.3)),
        OneQuestion((SKEWED, SKEWED), (0.3, 0.7)),
        pytest.param(OneQuestion((LAPLACE, TRIPLE)), marks=EXHAUST),
        pytest.param(JointReport((Hadamard(3, 1.0), BINARY)), marks=EXHAUST),
    ],
    ids=repr,
)
def test_every_pair_of_tuples_and_every_tuple_of_another_is_among_the_exposures(several: SeveralQuestions) -> None:
    known = [types_of(exposure) for exposure in exposures_of(several)]
    mirrored = [types_of(Exposure(one.mu, one.second, one.first, one.own)) for one in exposures_of(several)]
    for exposure in channel_exposures(whole_channel(several)):
        wanted = types_of(exposure)
        assert any(wanted <= types for types in [*known, *mirrored])


@pytest.mark.parametrize("kind", [JointReport, OneQuestion])
def test_the_promise_of_several_questions_is_close_to_an_attack(kind: type[SeveralQuestions]) -> None:
    for parts in ((KRR(2, 1.0), KRR(5, 0.5)), (KRR(3, 1.0), LocalHashing(100, 1.0))):
        found = amplify(kind(parts), n=10_000, delta=1e-6)
        assert found.attack_lower <= found.epsilon <= 1.002 * found.attack_lower
        assert found.colluding == kind(parts).epsilon


@EXHAUST
def test_one_report_of_all_answers_hides_less_than_answers_shuffled_by_themselves() -> None:
    krr = KRR(2, 2.0)
    joint = amplify(JointReport((krr, krr)), n=10**6, delta=1e-6).epsilon
    apart = compose([ShuffledRound.of(krr, 10**6, times=2)], delta=1e-6).epsilon
    either = amplify(OneQuestion((krr, krr)), n=10**6, delta=1e-6).epsilon
    assert apart is not None and either < apart < joint


def test_the_answers_of_a_tuple_add_their_local_promises() -> None:
    for kind in (JointReport, OneQuestion):
        rows = whole_channel(kind((BINARY, TRIPLE)))
        assert kind((BINARY, TRIPLE)).epsilon == pytest.approx(DenseChannel(rows).epsilon)


def test_the_exposure_of_a_joint_report_is_that_of_the_theory_note() -> None:
    for epsilon0, m, expected in ((1.0, 4, 2.03), (2.0, 2, 1.94)):
        krr = KRR(2, epsilon0)
        joint, alone = attack_dataset(JointReport((krr,) * m)).spread, attack_dataset(krr).spread
        assert math.sqrt(joint / (m * alone)) == pytest.approx(expected, rel=3e-3)


@EXHAUST
def test_rounds_of_several_questions_compose() -> None:
    found = compose([ShuffledRound.of(OneQuestion((KRR(2, 1.0), KRR(5, 0.5))), 10_000, times=8)], delta=1e-6)
    assert found.epsilon is not None and found.attack_lower <= found.epsilon <= 1.05 * found.attack_lower
    assert found.method == "privacy loss of the mechanisms"


def test_questions_of_many_unlike_pairs_have_the_bound_of_every_randomizer() -> None:
    rows = np.random.default_rng(5).uniform(1.0, 2.0, (5, 5))
    several = JointReport((DenseChannel(rows / rows.sum(axis=1, keepdims=True)),) * 3)
    with pytest.raises(UnsupportedError, match="laws to compare, more than 400"):
        mechanism_law(several, n=100)
    bounds = {bound.name: bound for bound in list_bounds(several, n=100, delta=1e-6)}
    assert bounds["mechanism law"].epsilon is None and bounds["stronger clones"].epsilon is not None
    assert amplify(several, n=100, delta=1e-6).epsilon <= several.epsilon
    assert mechanism_attack(several, n=100, delta=1e-6) >= 0.0


def hinges(first: Reals, second: Reals, mass: Reals, e: float, cuts: Reals) -> Reals:
    """E (Z_0 - e Z_1 - t)_+ at each t, Z = (0, 0) with what is left of the mass."""
    sums = np.append(first - e * second, 0.0)
    return np.maximum(sums - cuts[:, None], 0.0) @ np.append(mass, 1.0 - mass.sum())


def ratios(part: KRR | Channel, a: int, c: int) -> tuple[Reals, Reals, Reals]:
    """Z_0, Z_1 and mu of two values, from the matrix; of k-ary response all symbols but the two and one are one."""
    rows = rows_of(part)
    mu = rows.min(axis=0)
    first, second = rows[a] / mu, rows[c] / mu
    if isinstance(part, KRR):
        mu, first, second = np.append(mu[:2], mu[2:].sum()), first[:3], second[:3]
    return first, second, mu


DIFFERENT = tuple(KRR(3 + q, 0.3 + 0.05 * q) for q in range(8))


@pytest.mark.parametrize("most", [40, 1 << 13])
@pytest.mark.parametrize(
    "parts",
    [
        DIFFERENT[:4],
        (SKEWED, KRR(3, 1.0), SKEWED, DenseChannel([[0.2, 0.8], [0.6, 0.4]])),
        (Unary(2, 1.0).channel(), SKEWED, Hadamard(3, 1.0)),
        pytest.param(DIFFERENT[:7], marks=EXHAUST),
    ],
    ids=len,
)
def test_some_law_exceeds_every_pattern_of_differences_in_convex_order(
    parts: tuple[KRR, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it does for every number of people: E (G - t)_+ is no smaller for any t, of any two tuples of values."""
    monkeypatch.setattr("dovetail.account.mechanisms.several_questions.MOST_ATOMS", most)
    subject = JointReport(parts)
    known = pair_laws(subject)
    assert all(law.mass.size <= most for law in known)
    asked = [[(0, 1), (1, 0), (0, 0), (1, 1)] for _ in parts]
    if len(parts) == 7:
        asked = [[(0, 1), (0, 0)] for _ in parts]  # symbols of k-ary response are alike
    scale = math.exp(subject.epsilon)
    cuts = np.concatenate([np.linspace(-scale, scale, 41), np.linspace(-2.0, 2.0, 21)])
    factors = (1.0, math.exp(0.1 * subject.epsilon), math.exp(0.5 * subject.epsilon))
    ours = [[hinges(law.z0, law.z1, law.mass, e, cuts) for e in factors] for law in known]
    ours += [[hinges(law.z1, law.z0, law.mass, e, cuts) for e in factors] for law in known]
    for pairs in product(*asked):
        if all(a == c for a, c in pairs):
            continue
        z0, z1, mu = (
            reduce(np.kron, part) for part in zip(*map(ratios, parts, *zip(*pairs, strict=True)), strict=True)
        )
        exact = [hinges(z0, z1, mu, e, cuts) for e in factors]
        assert any(
            all(np.all(own >= one - 1e-12 * scale) for own, one in zip(law, exact, strict=True)) for law in ours
        ), pairs


@pytest.mark.parametrize("seed", range(20))
def test_two_values_that_differ_are_told_better_than_one_value_where_their_ratios_have_one_law(seed: int) -> None:
    """For all weights a, b: so the other questions may be answered in any way."""
    rng = np.random.default_rng(seed)
    mass, z = rng.dirichlet(np.ones(6)), rng.uniform(0.1, 3.0, 6)
    turned = rng.permutation(6)
    mass = np.full(6, mass.mean())  # any arrangement of equal masses has the same law
    for a, b in rng.uniform(0.0, 3.0, (20, 2)):
        cuts = rng.uniform(-5.0, 5.0, 30)
        differ = np.maximum(a * z - b * z[turned] - cuts[:, None], 0.0) @ mass
        agree = np.maximum((a - b) * z - cuts[:, None], 0.0) @ mass
        assert np.all(differ >= agree - 1e-12)


@pytest.mark.parametrize(("several", "n"), SMALL, ids=repr)
def test_reports_on_a_coarse_grid_keep_the_bound_above_and_the_attack_below(
    several: SeveralQuestions, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("MOST_ATOMS", 4), ("MOST_REPORTS", 2)):
        monkeypatch.setattr(f"dovetail.account.mechanisms.several_questions.{name}", most)
    rows, law = whole_channel(several), mechanism_law(several, n=n)[1]
    attack = ShuffledLaw(attack_dataset(several), n)
    for epsilon in (0.0, 0.2 * several.epsilon, 0.6 * several.epsilon):
        exact = worst(rows, n, math.exp(epsilon))
        assert attack.delta(epsilon).lower <= exact * (1 + 1e-9)
        assert exact <= law.delta(epsilon).upper * (1 + 1e-12)


@pytest.mark.parametrize("count", [9, pytest.param(12, marks=EXHAUST)])
@pytest.mark.parametrize("kind", [JointReport, OneQuestion])
def test_many_different_questions_are_judged_by_their_own_law(kind: type[SeveralQuestions], count: int) -> None:
    several = kind(tuple(KRR(2 + q, 0.3 + 0.05 * q) for q in range(count)))
    found = amplify(several, n=100_000, delta=1e-6)
    assert 0.0 < found.attack_lower <= found.epsilon < 0.6 * amplify(several.epsilon, n=100_000, delta=1e-6).epsilon
    assert found.epsilon <= 1.45 * found.attack_lower


class Approximate(KRR):
    """One that fails with a small probability."""

    @property
    def guarantee(self) -> LocalDP:
        return LocalDP(1.0, 1e-9, source="")


WRONG: Sequence[tuple[object, str]] = [
    ((), "`parts` must be 2 to 16 randomizers or channels"),
    ((BINARY,), "`parts` must be"),
    ((BINARY, 1.0), "`parts` must be"),
    ((BINARY,) * 17, "`parts` must be"),
    ((BINARY, JointReport((BINARY, BINARY))), "`parts` must be"),
]


@pytest.mark.parametrize(("parts", "words"), WRONG, ids=str)
def test_what_is_no_question_is_refused(parts: tuple[Channel, ...], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        JointReport(parts)


@pytest.mark.parametrize("chances", [(0.5,), (0.5, 0.6), (1.0, 0.0), (0.5, math.nan)], ids=str)
def test_chances_that_do_not_sum_to_one_are_refused(chances: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match="`chances` must be 2 numbers above 0 with sum 1"):
        OneQuestion((BINARY, SKEWED), chances)


def test_answers_with_a_local_delta_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="collect those with a local delta separately"):
        JointReport((KRR(2, 1.0), Approximate(2, 1.0)))


@EXHAUST
def test_one_block_of_many_is_as_exposed_as_one_question_and_covers_every_pattern() -> None:
    krr = KRR(3, 1.0)
    sampled, both = SampledBlock((krr,), blocks=2), OneQuestion((krr, krr))
    law = mechanism_law(sampled, n=3)[1]
    for epsilon in (0.0, 0.2, 0.6):
        exact = worst(whole_channel(both), 3, math.exp(epsilon))
        assert exact <= law.delta(epsilon).upper * (1 + 1e-12)
    hidden, several = (everybody_law(one, n=2000, delta=1e-6) for one in (sampled, both))
    for epsilon in (0.03, 0.1):
        assert several.upper(epsilon) * 0.999 <= hidden.upper(epsilon) <= several.upper(epsilon) * 1.05
    found = amplify(sampled, n=10_000, delta=1e-6)
    assert found.attack_lower <= found.epsilon <= 1.001 * found.attack_lower and found.colluding == sampled.epsilon


def test_exposures_of_a_block_hold_those_in_which_the_values_agree() -> None:
    krr = KRR(3, 1.0)
    [exposure] = exposures_of(SampledBlock((krr,), blocks=7))
    known = types_of(exposure)
    for one in exposures_of(krr):
        for value in (one.first, one.second):
            assert types_of(Exposure(one.mu, value, value, one.own)) <= known


def test_only_k_ary_response_is_sampled_by_blocks() -> None:
    for parts in ((SKEWED,), (KRR(2, 1.0), KRR(2, 1.0))):
        with pytest.raises(ParameterError, match="`parts` must be one KRR"):
            SampledBlock(parts, blocks=2)
    with pytest.raises(ParameterError, match="`blocks` must be"):
        SampledBlock((KRR(2, 1.0),), blocks=0)


def pattern_masses(kinds: Reals, ratio: float) -> Reals:
    """Mass of mu where each of the three laws is above it or not, (kinds, 8), from (kinds, 4, atoms)."""
    found = np.zeros((len(kinds), 8))
    for row, (mu, *laws) in zip(found, kinds, strict=True):
        held = sum(2**i * (law > 0.5 * (1.0 + ratio) * mu) for i, law in enumerate(laws))
        np.add.at(row, held[mu > 0.0], mu[mu > 0.0])
    return found


@pytest.mark.parametrize(("m", "width"), [(2, 2), (3, 2), (4, 3), (5, 2), (5, 4), (6, 3), (7, 5), (6, 6)])
def test_every_three_windows_are_a_mixture_of_those_that_are_compared_beside_other_answers(
    m: int, width: int
) -> None:
    """Overlapping windows of the two values, too: another answer may make them the more exposed ones."""
    window = Window(0.0, float(m), 1.3, window=width, grid=1.0)
    [exposure] = exposures_of(window)
    known = pattern_masses(
        np.stack([exposure.mu, exposure.first, exposure.second, exposure.own], axis=1), math.exp(1.3)
    )
    rows = rows_of(window)
    mu = rows.min(axis=0)
    every = [np.stack([mu, rows[a], rows[c], rows[t]]) for a, c, t in product(range(m + 1), repeat=3)]
    for asked in pattern_masses(np.array(every), math.exp(1.3)):
        _, away = nnls(np.vstack([known.T, np.ones(len(known))]), np.append(asked, 1.0))
        assert away < 1e-9


@pytest.mark.parametrize(
    ("window", "krr", "n", "delta"),
    [
        (Window(0.0, 3.0, 1.965, window=2, grid=1.0), KRR(3, 2.954), 6259, 1.77e-5),
        (Window(0.0, 4.0, 0.847, window=3, grid=1.0), KRR(3, 2.261), 30_825, 1.62e-6),
        pytest.param(Window(0.0, 4.0, 0.799, window=3, grid=1.0), KRR(3, 1.493), 1975, 4.6e-8, marks=EXHAUST),
    ],
)
def test_no_common_value_of_the_others_exposes_overlapping_windows_beside_another_answer_more_than_promised(
    window: Window, krr: KRR, n: int, delta: float
) -> None:
    promised = amplify(JointReport((window, krr)), n=n, delta=delta).epsilon
    rows = np.kron(rows_of(window), rows_of(krr))
    laws = [base_law(rows[t], rows[a], rows[c]) for a, c, t in product(range(len(rows)), repeat=3) if a != c]
    most = max(
        ShuffledLaw(law, n).epsilon_lower(delta, guess=promised)
        for law in sorted(laws, key=lambda law: -law.spread)[:6]
    )
    assert 0.99 * promised < most <= promised


@pytest.mark.parametrize(
    "several",
    [
        JointReport((KRR(2, 1.0), KRR(3, 2.0))),
        JointReport((KRR(4, 1.5), Unary(3, 1.0))),
        JointReport((KRR(3, 1.0),) * 3),
        JointReport((Hadamard(5, 1.5), KRR(2, 1.0))),
        OneQuestion((KRR(2, 1.0), KRR(3, 2.0)), (0.3, 0.7)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("held", [True, False])
def test_no_pattern_of_agreement_contributes_more_than_the_kinds_that_are_compared(
    several: JointReport | OneQuestion, held: bool
) -> None:
    """Of one slot, with any sum of the others: E (x w + s (A - E C))_+, w = R_t less (1 - s) mu."""
    exposures = joint_exposures if isinstance(several, JointReport) else one_exposures
    fewer = exposures(several, partial(differing_ways, same=held))
    every = exposures_of(several)
    assert len(fewer) < len(every)
    rng = np.random.default_rng(7)
    for _ in range(60):
        e = math.exp(rng.uniform(0.0, several.epsilon))
        missing = rng.uniform(0.0, 1.0) * (1.0 if held else min(1.0, e * math.exp(-several.epsilon)))
        x = rng.normal() * math.exp(rng.normal())

        found = []
        for some in (every, fewer):
            slots = [x * (r.own - missing * r.mu) + (1.0 - missing) * (r.first - e * r.second) for r in some]
            found.append(max(float(np.maximum(slot, 0.0).sum(axis=1).max()) for slot in slots))
        assert found[0] <= found[1] * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize(
    "several",
    [
        OneQuestion(tuple(KRR(2 + q, 0.5 + 0.1 * q) for q in range(8))),
        pytest.param(JointReport(tuple(KRR(3 + q, 0.5) for q in range(6))), marks=EXHAUST),
        pytest.param(JointReport(tuple(KRR(3, 0.2) for _ in range(16))), marks=EXHAUST),
    ],
    ids=lambda several: type(several).__name__,
)
def test_many_different_questions_and_sixteen_alike_hide_her_among_everybody(several: SeveralQuestions) -> None:
    found = amplify(several, n=20_000, delta=1e-6)
    assert found.method == "hidden among everybody" and found.epsilon < 1.005 * found.attack_lower


def of_separate_shuffles(parts: Sequence[KRR], others: tuple[Values, ...], a: Values, c: Values, e: float) -> float:
    """Exactly: everything that is released are the numbers of ones among the reports on each question."""
    laws = []
    for own in (a, c):
        counts = np.ones(1)
        for q, part in enumerate(parts):
            law = np.ones(1)
            for person in (own, *others):
                law = np.convolve(law, part.channel().matrix()[person[q]])
            counts = np.multiply.outer(counts, law)
        laws.append(counts)
    return float(np.maximum(laws[0] - e * laws[1], 0.0).sum())


@pytest.mark.parametrize("ask", ["all", "joint", "one"])
@pytest.mark.parametrize(("n", "delta"), [(3, 0.1), pytest.param(5, 0.03, marks=EXHAUST)])
def test_the_guarantee_of_a_run_holds_for_every_collection_of_two_questions(ask: Ask, n: int, delta: float) -> None:
    parts, weights = (KRR(2, 1.0), KRR(2, 0.5)), (3, 1)
    promised = questions_guarantee(parts, ask=ask, n=n, delta=delta, weights=weights if ask == "one" else ())
    assert promised.honest < promised.colluding == (1.0 if ask == "one" else 1.5)
    tuples = list(product(range(2), repeat=2))
    rows = whole_channel(JointReport(parts) if ask == "joint" else OneQuestion(parts, (0.75, 0.25)))
    exact = 0.0
    for others in combinations_with_replacement(range(4), n - 1):
        for a, c in permutations(range(4), 2):
            if ask == "all":
                known = tuple(tuples[one] for one in others)
                one = of_separate_shuffles(parts, known, tuples[a], tuples[c], math.exp(promised.honest))
            else:
                one = exact_delta(rows, others, a, c, math.exp(promised.honest))
            exact = max(exact, one)
    assert exact <= delta * (1 + 1e-9), (promised.honest, exact)
    assert exact >= 0.2 * delta  # not by far


def test_questions_are_asked_in_three_ways() -> None:
    with pytest.raises(ParameterError, match="`ask` must be 'all', 'joint' or 'one', got 'both'"):
        questions_guarantee([KRR(2, 1.0), KRR(2, 1.0)], ask="both", n=10, delta=1e-6)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="`weights` must be"):
        questions_guarantee([KRR(2, 1.0), KRR(2, 1.0)], ask="one", n=10, delta=1e-6, weights=(1, 0))
    honest = questions_guarantee([KRR(2, 1.0), KRR(3, 0.5)], ask="one", n=2000, delta=1e-6, honest=1000)
    assert (honest.n, honest.honest_n) == (2000, 1000) and honest.all < honest.honest


@pytest.mark.parametrize(
    "parts", [(KRR(2, 3.0), KRR(6, 3.0)), (KRR(3, 0.5), KRR(4, 2.0)), (KRR(2, 1.0), KRR(2, 1.0))]
)
def test_the_attack_is_the_worst_of_all_pairs_and_all_common_values(parts: tuple[KRR, ...]) -> None:
    rows = np.ones((1, 1))
    for part in parts:
        rows = np.kron(rows, part.channel().matrix())
    spread = max(float(((rows[a] - rows[c]) ** 2 / rows[t]).sum()) for a, c, t in product(range(len(rows)), repeat=3))
    assert attack_dataset(JointReport(parts)).spread == pytest.approx(spread, rel=1e-9)


def test_six_questions_alike_hide_her_among_everybody() -> None:
    """Which of them differ, and which of them another person shares, need not be told apart; the blanket has 1.28."""
    found = amplify(JointReport(tuple(KRR(3, 0.5) for _ in range(6))), n=20_000, delta=1e-6)
    assert found.method == "hidden among everybody" and found.epsilon < 1.005 * found.attack_lower


def test_seven_questions_in_one_report_are_answered_soon_and_below_the_clones() -> None:
    """Of the patterns of differing answers most are told by one exponential not to count."""
    joint = JointReport(tuple(KRR(10, 0.5) for _ in range(7)))
    found = amplify(joint, n=100_000, delta=1e-6)
    assert found.attack_lower <= found.epsilon < 0.2 * amplify(3.5, n=100_000, delta=1e-6).epsilon
    assert attack_dataset(joint).spread > 0.9 * attack_dataset(JointReport(joint.parts[:6])).spread
