"""What a device sends of a vector, a word or a block of signs: its law, against every collection of a few people."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from tests.oracles.test_several_questions import worst
from tests.randomize.test_rotated_blocks import report_law
from tests.statistics import rng_of

from dovetail.account.amplify import amplify, sent_law
from dovetail.account.finite_channel import base_law
from dovetail.account.mechanism_law import attack_dataset, mechanism_law
from dovetail.account.mechanisms.chosen_word import word_dataset, word_law
from dovetail.account.mechanisms.several_questions import _rate
from dovetail.account.privacy_blanket import BlanketLaw, ShuffledLaw
from dovetail.account.questions import ChosenWord, SampledBlock
from dovetail.core.errors import ParameterError
from dovetail.core.special import Reals
from dovetail.randomize.krr import KRR
from dovetail.randomize.vectors.closest_direction import ClosestDirection
from dovetail.randomize.vectors.rotated_blocks import RotatedBlocks

EPSILONS = (0.0, 0.1, 0.4, 0.9)


def sent_words(response: KRR, *, words: int, rules: int, seed: str) -> Reals:
    """Laws of what is sent when each value picks by a rule of its own, drawn at random: (rules, 2 words)."""
    rng, m = rng_of(seed), response.k // 2
    law, lies = np.zeros((rules, 2 * words)), response.channel().matrix()
    for drawn in product(range(words), repeat=m):
        picked = rng.below(response.k, rules)
        picked[0], picked[1] = 2 * int(np.argmax(drawn)), 2 * int(np.argmax(drawn)) + 1  # opposite values
        for symbol in range(response.k):
            law[:, 2 * drawn[symbol >> 1] + (symbol & 1)] += lies[picked, symbol] / words**m
    return law


@pytest.mark.parametrize(("m", "words", "n"), [(1, 3, 2), (2, 2, 3), (2, 3, 2), (3, 2, 3), (4, 2, 2)])
def test_whatever_rule_picks_a_word_no_collection_is_more_exposed_than_is_said(m: int, words: int, n: int) -> None:
    response = KRR(2 * m, 1.2)
    law = sent_words(response, words=words, rules=4, seed=f"rules {m} {words}")
    bound = mechanism_law(ChosenWord((response,)), n=n)[1]
    exact = [worst(law, n, math.exp(epsilon)) for epsilon in EPSILONS]
    assert all(one <= bound.delta(e).upper * (1 + 1e-12) for one, e in zip(exact, EPSILONS, strict=True))
    assert exact[0] > 0.5 * bound.delta(0.0).upper


@cache
def _world(m: int, epsilon0: float, turn: float, ranks: int) -> BlanketLaw:
    """Exact law where words have one of so many values of either coordinate of the plane in which all vectors lie."""
    response = KRR(2 * m, epsilon0)
    channel = response.channel()
    lie, p = channel.lie / channel.total, channel.keep / channel.lie
    one = ndtri((np.arange(ranks) + 0.5) / ranks)
    x, y = (axis.ravel() for axis in np.meshgrid(one, one))

    def sent(vector: tuple[float, float]) -> Reals:
        along = vector[0] * x + vector[1] * y
        picked = np.where(along > 0.0, (2.0 * ndtr(np.abs(along)) - 1.0) ** (m - 1), 0.0)
        return np.asarray(1.0 + (p - 1.0) * picked / (picked.mean() * 2.0 * m))

    sides = [sent((sign * math.cos(turn), math.sin(turn))) for sign in (1.0, -1.0)]
    return base_law(*(2.0 * m * lie / ranks**2 * law for law in (sent((0.0, -1.0)), *sides)))


@pytest.mark.parametrize("n", [2, 30])
@pytest.mark.parametrize("planar", [False, True])
def test_the_attack_on_words_is_below_the_exact_delta_of_a_world_of_words_and_the_law_above(
    n: int, planar: bool
) -> None:
    response, ranks = KRR(4, 2.0), 60
    word = ChosenWord((response,), planar=planar)
    turns = np.radians(np.arange(0.0, 46.0, 2.5)).tolist() if planar else [0.0]
    world = ShuffledLaw(max((_world(2, 2.0, turn, ranks) for turn in turns), key=lambda one: one.spread), n)
    attack, law = ShuffledLaw(attack_dataset(word), n), ShuffledLaw(word_law(word), n)
    for epsilon in EPSILONS:
        exact = world.delta(epsilon)
        # so few places tell less than all: by a share of their squared width
        assert attack.delta(epsilon).lower <= exact.upper * (1.0 + 4.0 / ranks**2)
        assert exact.lower <= law.delta(epsilon).upper
        assert attack.delta(epsilon).lower >= 0.98 * exact.lower


def test_nearly_opposite_values_expose_more_than_opposite_ones() -> None:
    for k, epsilon0, n, delta, most in ((18, 1.0, 1000, 1e-5, 1.007), (18, 4.0, 10**5, 1e-6, 1.016)):
        opposite, found = (
            amplify(ChosenWord((KRR(k, epsilon0),), planar=planar), n=n, delta=delta) for planar in (False, True)
        )
        assert opposite.attack_lower < 0.98 * found.attack_lower < found.epsilon == opposite.epsilon
        assert found.epsilon <= most * found.attack_lower


def test_vectors_of_one_coordinate_are_in_no_plane() -> None:
    assert sent_law(ClosestDirection(1, 1.0, 4.0)) == ChosenWord((KRR(16, 4.0),), planar=False)
    assert sent_law(ClosestDirection(2, 1.0, 4.0, axes=8)) == ChosenWord((KRR(16, 4.0),))


def test_coarser_cells_bound_from_the_safe_side() -> None:
    word = ChosenWord((KRR(18, 4.0),))
    upper = [ShuffledLaw(word_law(word, cells=cells), 1000).delta(1.0) for cells in (8, 32, 128)]
    lower = [ShuffledLaw(word_dataset(word, cells=cells), 1000).delta(1.0) for cells in (8, 32)]
    assert upper[0].upper > upper[1].upper > upper[2].upper > lower[1].upper > lower[0].upper


@pytest.mark.exhaust
def test_a_word_alone_is_far_less_than_the_set_that_it_was_picked_from() -> None:
    noise = ClosestDirection(1000, 1.0, 4.0)
    found = amplify(noise, n=100_000, delta=1e-6)
    of_set = amplify(SampledBlock((noise.response,), blocks=5), n=100_000, delta=1e-6)
    assert 0.0722 < found.attack_lower < 0.0723 < 0.0733 < found.epsilon < 0.07331 < 0.75 * of_set.epsilon
    stronger = ClosestDirection(1000, 1.0, 4.59)
    assert amplify(stronger, n=100_000, delta=1e-6).epsilon < of_set.epsilon
    assert stronger.error(1) < 0.875 * noise.error(1)


def test_a_single_word_is_binary_response_to_it() -> None:
    noise = ClosestDirection(3, 1.0, 1.0, axes=1)
    assert sent_law(noise) == SampledBlock((noise.response,), blocks=1 << 62)


BLOCKS = [
    RotatedBlocks(2, 1.0, 1.5, signs=1),
    RotatedBlocks(2, 1.0, 1.5, signs=2),
    RotatedBlocks(3, 1.0, 1.0, signs=2),
    RotatedBlocks(4, 1.0, 2.0, signs=1),
]


@pytest.mark.parametrize("noise", BLOCKS, ids=str)
@pytest.mark.parametrize("n", [2, 3])
def test_no_collection_of_vectors_is_more_exposed_than_blocks_of_signs_say(noise: RotatedBlocks, n: int) -> None:
    turned = np.random.default_rng(n).normal(size=(3 if n == 2 else 1, noise.d))
    vectors = np.vstack([np.eye(noise.d)[:1], -np.eye(noise.d)[:1], 9.0 * turned, np.zeros((1, noise.d))])
    rows = np.array([report_law(noise, vector).ravel() for vector in vectors])
    subject = sent_law(noise)
    assert isinstance(subject, SampledBlock) and subject.energy < 1.0
    bound, attack = mechanism_law(subject, n=n)[1], ShuffledLaw(attack_dataset(subject), n)
    for epsilon in EPSILONS[1:]:
        exact = worst(rows, n, math.exp(epsilon))
        assert exact <= bound.delta(epsilon).upper * (1 + 1e-12)
        assert attack.delta(epsilon).lower <= bound.delta(epsilon).upper


@pytest.mark.parametrize(("noise", "n"), [(BLOCKS[0], 3), (BLOCKS[1], 3), (RotatedBlocks(4, 1.0, 2.0, signs=2), 2)])
def test_the_attack_on_blocks_is_reached_by_vectors(noise: RotatedBlocks, n: int) -> None:
    """By two opposite vectors whose rotation is as long as can be in one block of a period, and others at 0."""
    subject = sent_law(noise)
    assert isinstance(subject, SampledBlock)
    period = max(1, noise.blocks // 2) * noise.size
    rotated = np.zeros(noise.padded)
    for start in range(0, noise.padded, period):
        rotated[start : start + noise.size] = noise.radius / math.sqrt(noise.size * (noise.padded // period))
    held = noise.rotate_back(rotated)
    vectors = np.array([held, -held, np.zeros(noise.d)])
    assert np.linalg.norm(held) == pytest.approx(noise.radius)
    rows = np.array([report_law(noise, vector).ravel() for vector in vectors])
    attack = ShuffledLaw(attack_dataset(subject), n)
    for epsilon in EPSILONS:
        exact = worst(rows, n, math.exp(epsilon))
        assert attack.delta(epsilon).lower <= exact * (1.0 + 1e-9)
    assert worst(rows, n, 1.0) <= 1.5 * attack.delta(0.0).upper


@pytest.mark.exhaust
def test_no_pair_of_blocks_has_a_larger_transform_than_is_charged() -> None:
    """Two blocks of any expectations, the convex functions of theory one by one: also off the vertices."""
    rng, near = np.random.default_rng(5), 0.0
    for s in (1, 2, 3, 4, 6):
        signs = np.array(list(product((-1.0, 1.0), repeat=s)))
        for _ in range(300):
            x, e = float(np.exp(rng.uniform(-5.0, 3.0))), float(np.exp(rng.choice([1e-3, 0.1, 1.0]) * rng.random()))
            drawn = rng.uniform(-1.0, 1.0, s)
            a = rng.choice([np.sign(drawn), drawn, np.zeros(s), 0.1 * drawn])
            c = rng.choice([-a, rng.uniform(-1, 1, s), np.zeros(s)])
            energy = float(a @ a + c @ c)
            if energy < 1e-4:
                continue
            gap = (np.prod(1.0 + signs * a, axis=1) - e * np.prod(1.0 + signs * c, axis=1) - 1.0 + e) * 0.5**s
            share = float(np.mean(np.expm1(x * gap))) / (energy * float(_rate(np.array([x]), s, e)[0]))
            assert share <= 1.0 + 1e-9
            near = max(near, share)
    assert near > 0.95


@pytest.mark.exhaust
def test_blocks_of_signs_promise_a_quarter_of_what_determined_symbols_do() -> None:
    noise = RotatedBlocks(1000, 1.0, 4.0)
    found = amplify(noise, n=100_000, delta=1e-6)
    determined = amplify(SampledBlock((noise.response,), blocks=256), n=100_000, delta=1e-6)
    assert 0.0200 < found.attack_lower < 0.0205 < found.epsilon < 0.0248 < 0.25 * determined.epsilon
    for n, delta in ((1, 0.1), (50, 1e-4), (10**9, 1e-10)):
        few = amplify(noise, n=n, delta=delta)
        assert few.attack_lower <= few.epsilon <= noise.epsilon


WRONG = [
    (lambda: ChosenWord((KRR(3, 1.0),)), "`parts` must be one KRR of an even number"),
    (lambda: ChosenWord((KRR(2, 1.0), KRR(2, 1.0))), "`parts` must be one KRR"),
    (lambda: SampledBlock((KRR(6, 1.0),), blocks=2, energy=0.5), "`parts` must be one KRR of 2.s symbols"),
    (lambda: SampledBlock((KRR(4, 1.0),), blocks=2, energy=1.5), "`energy` must be above 0 and at most 1"),
    (lambda: SampledBlock((KRR(4, 1.0),), blocks=2, energy=0.0), "`energy` must be"),
]


@pytest.mark.parametrize(("make", "words"), WRONG, ids=lambda one: one if isinstance(one, str) else "")
def test_what_is_no_word_or_block_is_refused(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(ParameterError, match=words):
        make()
