"""Every exact sampler has exactly its published law: all words that lead to each output are counted."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, factorial, isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.laws.words import WORD, Law, Period, Planes, Published, Sample, Tape, TapeEntropy, exact_law
from tests.randomize.chosen import Chosen

from dovetail.core import discrete_noise as gaussian_noise
from dovetail.core.discrete_noise import discrete_laplace, geometric
from dovetail.core.kernels import fisher_yates
from dovetail.core.stages import RANDOMIZERS
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.sampling.coins import coins
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail.randomize.sampling.pure_protocol import _by_word
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail.randomize.subset_selection import SubsetSelection
from dovetail.randomize.unary import Unary
from dovetail.randomize.vectors import gaussian as gaussian_vectors
from dovetail.randomize.vectors.closest_direction import ClosestDirection
from dovetail.randomize.vectors.rotated_blocks import RotatedBlocks
from dovetail.randomize.window import Window
from dovetail.shuffle.sampling import dummies as dummy_laws
from dovetail.shuffle.sampling import lehmer_code
from dovetail.shuffle.sampling import permutations as planar_noise
from dovetail.shuffle.sampling.dummies import SparseDummies, TruncatedGaussian, TruncatedGeometric, UserDummies
from dovetail.shuffle.sampling.lehmer_code import ERROR
from dovetail.shuffle.sampling.permutations import _deal
from dovetail.text import sampler as exponential
from dovetail.text.sampler import IntegerBudget, PermuteAndFlip, flip
from dovetail_protocol import mechanism as protocol_mechanism
from dovetail_protocol.asked import Asked, AskedTogether, Part, Symbol, Value
from dovetail_protocol.dummies import SentDummies
from dovetail_protocol.exact_thresholds import GeometricLaw, Words, exp_bracket, geometric_digits
from dovetail_protocol.joint import Drawn
from dovetail_protocol.mechanisms.unary import coins as device_coins

ROOT = Path(__file__).parent.parent.parent
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Row:
    """A sampler, its published law, and how far words are followed."""

    name: str
    of: str  # the function that draws, or the mechanism
    sample: Sample
    published: Published
    draws: int = 2
    most_open: Fraction = Fraction(0)
    given: tuple[int, ...] = ()
    period: Period = lambda *_: 0
    again: Any = None  # the output that starts a sampler anew
    far: int = 0

    def law(self) -> Law:
        found = exact_law(self.sample, draws=self.draws, given=self.given, period=self.period, far=self.far)
        return found if self.again is None else found.given(again=self.again)


def share(mass: int) -> Fraction:
    return Fraction(mass, WORD)


def coin(mass: int) -> Published:
    return {True: share(mass), False: 1 - share(mass)}


def response(k: int, own: int, masses: tuple[int, int]) -> Published:
    return {y: share(masses[y != own]) for y in range(k)}


def direction_law(device: Any, words: tuple[int, ...], vector: tuple[float, ...]) -> Published:
    """k-ary response to the closest of the directions, found by the analyst's program."""
    noise = ClosestDirection(device.d, device.radius, device.epsilon, axes=device.axes)
    drawn = np.array([words], dtype=np.uint64) & ~np.uint64(1)
    held = int(noise._closest(drawn, noise._lifted(np.array([vector])))[0])
    keep, lie = noise.response.device.masses
    symbols = [word & ~1 | sign for word in words for sign in (0, 1)]
    return {symbol: share(keep if place == held else lie) for place, symbol in enumerate(symbols)}


def geometric_law(rate: Fraction, size: int | None = None) -> dict[int, Interval]:
    """(1 - q) q^k / (1 - q^size), q = e^-rate."""
    if rate == 0:
        assert size is not None
        return {k: (Fraction(1, size), Fraction(1, size)) for k in range(size)}
    (low, high), (end_low, end_high) = exp_bracket(-rate), exp_bracket(-rate * size) if size else (0, 0)
    return {k: ((1 - high) * low**k / (1 - end_low), (1 - low) * high**k / (1 - end_high)) for k in range(size or 32)}


def laplace_law(rate: Fraction, middle: int = 0, clamp: tuple[int, int] | None = None) -> dict[int, Interval]:
    """(1 - q) / (1 + q) q^|d|, q = e^-rate; a clamped end holds its tail, q^d / (1 + q)."""
    low, high = exp_bracket(-rate)
    if clamp is None:
        return {
            middle + d: ((1 - high) / (1 + high) * low ** abs(d), (1 - low) / (1 + low) * high ** abs(d))
            for d in range(-16, 17)
        }
    law = {y: one for y, one in laplace_law(rate, middle).items() if clamp[0] < y < clamp[1]}
    for end in clamp:
        d = abs(end - middle)
        law[end] = (low**d / (1 + high), high**d / (1 + low)) if d else (1 / (1 + high), 1 / (1 + low))
    return law


def rounded_law(rate: Fraction, below: int, up: Fraction) -> dict[int, Interval]:
    """Laplace noise on the grid point `below` or, with probability `up`, on the next one."""
    near, next_ = laplace_law(rate, below), laplace_law(rate, below + 1)
    return {
        y: tuple((1 - up) * a + up * b for a, b in zip(near[y], next_[y], strict=True)) for y in near.keys() & next_
    }


def subset_law(one: SubsetSelection, own: int) -> Published:
    k, d, mass = one.k, one.size, one.device.mass
    law = {}
    for chosen in combinations(range(k), d):
        held = share(mass) / comb(k - 1, d - 1) if own in chosen else (1 - share(mass)) / comb(k - 1, d)
        law[np.packbits(np.isin(np.arange(k), chosen)).tobytes()] = held
    return law


def hadamard_law(one: Hadamard, value: int) -> Published:
    """A half block is kept or a lie, and each of its w / 2 elements as likely as the others."""
    row, own, width = value // one.blocks + 1, value % one.blocks, one.width
    law = {}
    for y in range(one.blocks * width):
        block, parity = y // width, (row & y % width).bit_count() & 1
        law[y] = share(one.device.masses[(block, parity) != (own, 0)]) * Fraction(2, width)
    return law


def window_law(one: Window, start: int, up: int) -> Published:
    """From the grid point `start` or, with mass `up`, the next one."""
    inside, low = one.device.masses
    law = dict.fromkeys(range(one.outputs), Fraction(0))
    for point, chance in ((start, 1 - share(up)), (start + 1, share(up))):
        for y in law:
            near = point <= y < point + one.width
            law[y] += chance * (share(inside) / one.width if near else share(low)) if chance else 0
    return law


def selection_law(heads: Sequence[Fraction]) -> Published:
    """Permute-and-flip: the first with heads in a uniform order, the best of which always has."""
    law = dict.fromkeys(range(len(heads)), Fraction(0))
    for order in permutations(range(len(heads))):
        left = Fraction(1, factorial(len(heads)))
        for candidate in order:
            law[candidate] += left * heads[candidate]
            left *= 1 - heads[candidate]
    return law


class OneCoin(TapeEntropy):
    """First bytes of which one is drawn and the others are given; whatever ties is that one."""

    def __init__(self, tape: Tape, place: int, others: int) -> None:
        super().__init__(tape)
        self.place, self.others = place, others

    def narrow(self, count: int, dtype: Any) -> Any:
        first = np.full(count, self.others, dtype=dtype)
        if 0 <= self.place < count:
            first[self.place] = self.tape.next(256)
        self.place -= count
        return first


def unary_bits(one: Unary, own: int, drawn: int, others: int) -> Sample:
    """All bits where the coin of one symbol is drawn, and all others are heads (0) or tails (255)."""
    place = 8 * one.device.report_bytes if drawn == own else drawn

    def sample(tape: Tape) -> tuple[int, ...]:
        return tuple(np.unpackbits(one.randomize([own], OneCoin(tape, place, others))[0])[: one.k].tolist())

    return sample


def device_unary_bits(one: Unary, own: int, drawn: int, others: int) -> Sample:
    def sample(tape: Tape) -> tuple[int, ...]:
        words = [others, *[others] * one.k]
        words[0 if drawn == own else drawn + 1] = tape.next(WORD)
        report = one.device.randomize(own, Planes(words[1:], words[:1]))
        return tuple(np.unpackbits(np.frombuffer(report, dtype=np.uint8))[: one.k].tolist())

    return sample


def unary_law(one: Unary, own: int, drawn: int, others: bool) -> Published:
    mass = one.masses[drawn != own]
    bits = [[int(others)] * one.k for _ in range(2)]
    bits[0][drawn], bits[1][drawn] = 0, 1
    return {tuple(bits[0]): 1 - share(mass), tuple(bits[1]): share(mass)}


def lehmer_digit(theta: float, bound: int) -> Sample:
    """One digit below `bound` by inversion, from one word."""

    def sample(tape: Tape) -> int | str:
        result, scratch = np.zeros(1, dtype=np.int32), np.empty((2, 8))
        words = np.array([tape.next(WORD)], dtype=np.uint64)
        place, used, doubt, _ = lehmer_code._by_inversion(result, theta, 0, 1, bound, words, scratch, 0)
        assert used == 1
        return "doubt" if doubt else int(result[0]) if place else "again"

    return sample


def flat_digit(theta: float, bound: int) -> Sample:
    """One digit below `bound` by rejection: the lower half of a word is k, the upper one and a second word are U."""

    def sample(tape: Tape) -> int | str:
        low, high, more = tape.next(1 << 32), tape.next(1 << 32), tape.next(WORD)
        found, used = decided(high << 32 | low, more)
        assert used == 2 or found == decided(high << 32 | low, WORD - 1 - more)[0], "a word counts as not used"
        return found

    def decided(word: int, more: int) -> tuple[int | str, int]:
        result, words = np.zeros(1, dtype=np.int32), np.array([word, more], dtype=np.uint64)
        place, used, doubt, _ = lehmer_code._by_rejection(result, theta, 0, 1, bound, words, 0)
        return "doubt" if doubt else int(result[0]) if place else "again", used

    return sample


def planar_chance(rate: Fraction, x: int, y: int) -> Published:
    """exp(-rate (|z|_2 - A |z|_1)), the square root bracketed."""
    scale = 1 << 200
    root = isqrt((x * x + y * y) * scale * scale)
    exponents = [rate * (Fraction(end, scale) - planar_noise._A * (abs(x) + abs(y))) for end in (root, root + 1)]
    low, high = exp_bracket(-exponents[1])[0], exp_bracket(-exponents[0])[1]
    return {True: (low, high), False: (1 - high, 1 - low)}


def steps_law(place: float) -> Published:
    """A point beside a value, up with probability `place` rounded to 53 bits."""
    up = Fraction(place) % 1
    low = Fraction(int(up * 2**53), 2**53)
    high = low if low == up else low + Fraction(1, 2**53)
    return {int(place): (1 - high, 1 - low), int(place) + 1: (low, high)}


def rows() -> Iterator[Row]:
    tiny, ties = Fraction(1, 1 << 120), Fraction(1, 1 << 58)
    top = 56
    for mass in (0, 1, (1 << top) - 1, 1 << top, (1 << top) + 1, 0x37 << top, (0x37 << top) + 5, 3 << 62, WORD - 1):
        yield Row(f"coin {mass:#x}", "coins", lambda tape, m=mass: bool(coins(m, 1, tape.rng)[0]), coin(mass))
        yield Row(
            f"device coin {mass:#x}",
            "device coins",
            lambda tape, m=mass: bool(device_coins(m, 1, Planes([tape.next(WORD)]))),
            coin(mass),
        )
    for one in (KRR(k=2, epsilon=1.0), KRR(k=3, epsilon=0.25), KRR(k=7, epsilon=3.0)):
        own, masses = one.k - 1, one.device.masses
        law = response(one.k, own, masses)
        yield Row(f"{one}", "krr", lambda tape, o=one: int(o.randomize([o.k - 1], tape.rng)[0]), law)
        yield Row(f"{one} by words", "_by_word", by_word(one, own), law)
        yield Row(f"device {one}", "device krr", lambda tape, o=one: o.device.randomize(o.k - 1, tape.words), law)
    few, more = KRR(k=2, epsilon=1.0).device, KRR(k=3, epsilon=0.25).device
    drawn = {
        (place, y): Fraction(weight, 4) * mass
        for place, (one, weight) in enumerate(((few, 3), (more, 1)))
        for y, mass in response(one.k, 0, one.masses).items()
    }
    either = Drawn((few, more), (3, 1))
    yield Row("device drawn", "device drawn", lambda tape: either.randomize((0, 0), tape.words), drawn, draws=3)
    each = tuple(
        Asked("shares", {}, (Value(name, categories=("no", "yes")),), (Symbol((Part((name,), "list", 2),)),))
        for name in ("smokes", "drinks")
    )
    asked, chances = AskedTogether.united(each, (3, 1)), {0: Fraction(3, 4), 3: Fraction(1, 4)}
    held = asked.check(["no", "yes"])
    yield Row(
        "device drawn question", "device drawn question", lambda tape: asked.answers(held, tape.words)[0], chances
    )
    for rate, size in (
        (Fraction(20), None),
        (Fraction(70), None),
        (Fraction(1, 2), 4),
        (Fraction(0), 4),
        (Fraction(3, 2), 2),
    ):
        bits = None if size is None else size.bit_length() - 1
        law = geometric_law(rate, size)
        yield Row(
            f"geometric {rate} below {size}",
            "geometric",
            lambda tape, r=rate, b=bits: int(geometric(r, 1, tape.rng, bits=b)[0]),
            law,
            most_open=tiny,
        )
    for rate, size in ((Fraction(20), None), (Fraction(1, 2), 3), (Fraction(0), 3), (Fraction(0), 4)):
        yield Row(
            f"settled {rate} below {size}",
            "GeometricLaw.settle",
            lambda tape, r=rate, n=size: GeometricLaw(r, n).settle(tape.words.word(), tape.words.word),
            geometric_law(rate, size),
            most_open=tiny,
        )
    yield Row(
        "discrete Laplace",
        "discrete_laplace",
        lambda tape: int(discrete_laplace(Fraction(40), 1, tape.rng)[0]),
        laplace_law(Fraction(40)),
        most_open=ties,
    )
    for low, high, value in ((0.0, 1.0, 1.0), (-3.0, 5.0, 1.25)):
        one, place = Laplace(low, high, epsilon=40.0 * (high - low), grid=1.0), Fraction(value - low)
        law = rounded_law(one.rate, int(place), place % 1)
        yield Row(
            f"{one}",
            "laplace",
            lambda tape, o=one, v=value: int(o.randomize([v], tape.rng)[0]),
            law,
            draws=3,
            most_open=ties,
        )
        yield Row(
            f"device {one}",
            "device laplace",
            lambda tape, o=one, v=value: o.device.randomize(v, tape.words),
            law,
            draws=3,
            most_open=ties,
        )
    clamping = BudgetLaplace(lower=0.0, upper=1.0, epsilon=18.0, beta=1e-3, rho=0.5, precision="published", grid=1.0)
    precise = BudgetLaplace(lower=10.0, upper=14.0, epsilon=160.0, beta=0.5, rho=0.9, grid=1.0)
    assert clamping.clamps and not precise.clamps
    for one, value, law in (
        (clamping, 1.0, laplace_law(Fraction(18), 1, clamp=(0, 1))),
        (precise, 12.0, laplace_law(Fraction(40), 2)),
    ):
        yield Row(
            f"{one}",
            "budget_laplace",
            lambda tape, o=one, v=value: int(o.randomize([v], tape.rng)[0]),
            law,
            most_open=ties,
            far=32,
        )
        yield Row(
            f"device {one}",
            "device budget_laplace",
            lambda tape, o=one, v=value: o.device.randomize(v, tape.words),
            law,
            most_open=ties,
            far=32,
        )
    for rest in (0, 1, 5):
        low, high = exp_bracket(Fraction(-rest, 6))
        yield Row(
            f"exp(-{rest}/6)",
            "_exp_minus",
            lambda tape, r=rest: bool(gaussian_noise._exp_minus(np.array([r]), 6, tape.rng)[0]),
            {True: (low, high), False: (1 - high, 1 - low)},
            draws=24,
            most_open=Fraction(1, factorial(11)),
        )
    for law_ in (TruncatedGeometric(1, 2, 1), TruncatedGeometric(1, 3, 2), TruncatedGeometric(900_000, 1 << 20, 2)):
        total = sum(law_.weights)
        yield Row(
            f"{law_}",
            "TruncatedGeometric.sample",
            lambda tape, d=law_: int(d.sample(1, tape.rng)[0]),
            {a: Fraction(weight, total) for a, weight in enumerate(law_.weights)},
            most_open=tiny,
        )
    for one in (
        SubsetSelection(k=5, epsilon=0.5),
        SubsetSelection(k=4, epsilon=3.0),
        SubsetSelection(k=9, epsilon=1.0),
    ):
        own, law = 1, subset_law(one, 1)
        yield Row(
            f"{one}", "subset_selection", lambda tape, o=one: o.randomize([1], tape.rng)[0].tobytes(), law, draws=9
        )
        yield Row(
            f"device {one}",
            "device subset_selection",
            lambda tape, o=one: o.device.randomize(1, tape.words),
            law,
            draws=9,
        )
    for one, value in ((Hadamard(k=7, epsilon=1.5), 6), (Hadamard(k=10, epsilon=1.0), 2)):
        half, law = one.width // 2, hadamard_law(one, value)
        yield Row(
            f"{one}",
            "hadamard",
            lambda tape, o=one, v=value: int(o.randomize([v], tape.rng)[0]),
            law,
            draws=3,
            period=lambda _, size, half=half: half if size == 1 << 32 else 0,
        )
        yield Row(
            f"device {one}",
            "device hadamard",
            lambda tape, o=one, v=value: o.device.randomize(v, tape.words),
            law,
            period=lambda place, _, half=half: half if place == 1 else 0,
        )
    one = LocalHashing(k=6, epsilon=2.0)
    seeds = (0x9E3779B97F4A7C15, 0x123456789ABCDEF)
    hashed = one.device.hash(5, *seeds)
    law = {(*seeds, y): mass for y, mass in response(one.g, hashed, one.device.masses).items()}
    yield Row(f"{one}", "local_hashing", lambda tape: tuple(one_hash(tape)), law, given=seeds)
    yield Row(
        f"device {one}",
        "device local_hashing",
        lambda tape: LocalHashing(k=6, epsilon=2.0).device.randomize(5, tape.words),
        law,
        given=seeds,
    )
    for window, value, start, up in (
        (Window(0.0, 1.0, 2.0, window=3, grid=0.125), 0.65625, 5, 1 << 62),
        (Window(-3.0, 5.0, 1.0, window=2, grid=1.0), -3.0, 0, 0),
        (Window(10.0, 11.0, 4.0, window=1, grid=1.0), 11.0, 1, 0),
    ):
        law = window_law(window, start, up)
        yield Row(
            f"{window}", "window", lambda tape, o=window, v=value: int(o.randomize([v], tape.rng)[0]), law, draws=3
        )
        yield Row(
            f"device {window}",
            "device window",
            lambda tape, o=window, v=value: o.device.randomize(v, tape.words),
            law,
            draws=3,
        )
    for unary in (Unary(k=3, epsilon=1.0), Unary(k=9, epsilon=2.0, encoding="symmetric")):
        for drawn, heads in product((0, unary.k - 1), (True, False)):
            law = unary_law(unary, 0, drawn, heads)
            yield Row(f"{unary} {drawn} {heads}", "unary", unary_bits(unary, 0, drawn, 0 if heads else 255), law)
            yield Row(
                f"device {unary} {drawn} {heads}",
                "device unary",
                device_unary_bits(unary, 0, drawn, 0 if heads else WORD - 1),
                law,
            )
    words = (3, WORD - 1)
    for far in (0.5, -2.0):
        device = ClosestDirection(2, 5.0, 3.0, axes=2).device
        yield Row(
            f"device {device} {far}",
            "device closest_direction",
            lambda tape, o=device, f=far: o.randomize([f, 1.0], tape.words),
            direction_law(device, words, (far, 1.0)),
            given=words,
        )
    for place in (0.25, 2.3, 3.999):
        one_ = OpenNumbers(lower=0.0, upper=4.0, points=5)
        yield Row(
            f"open number {place}",
            "OpenNumbers._randomize",
            lambda tape, o=one_, p=place: int(o.randomize([p], tape.rng)[0]),
            steps_law(place),
            draws=1,
        )
    blocks = RotatedBlocks(8, 2.0, 3.0, signs=2, seed=5)
    law = {(1, y): mass for y, mass in response(4, 3, blocks.response.device.masses).items()}
    yield Row(
        f"{blocks}",
        "rotated_blocks",
        lambda tape: tuple(blocks.randomize([[0.1] * 8], tape.rng)[0].tolist()),
        law,
        given=(1, 0, 0),
    )
    for rate in (0.3, 1.0):
        dummies = UserDummies(k=3, rate=rate)
        sends = Fraction(SentDummies(3, rate).numerator, 1 << 32)
        extra: dict[Any, Fraction] = {(1, y): sends / 3 for y in range(3)}
        law = extra | ({(1,): 1 - sends} if sends < 1 else {})
        yield Row(
            f"{dummies}", "UserDummies.send", lambda tape, o=dummies: tuple(o.send([1], tape.rng)[1].tolist()), law
        )
        sent = SentDummies(3, rate)
        yield Row(f"{sent}", "SentDummies.messages", lambda tape, o=sent: tuple(o.messages(1, tape.words)), law)
        filled: dict[Any, Fraction] = {}
        for messages, mass in law.items():
            pair = (*messages, 3)[:2]
            for order in (pair, pair[::-1]):
                filled[order] = filled.get(order, Fraction(0)) + mass / 2
        yield Row(
            f"{sent} filled",
            "SentDummies.filled",
            lambda tape, o=sent: tuple(o.filled([1], tape.words)),
            filled,
            draws=3,
        )
    sparse = SparseDummies(k=2, epsilon=20.0)  # many heads of coins are rare
    beta = sparse.kept
    yield Row(
        f"{sparse} keeps",
        "SparseDummies.places",
        lambda tape, o=sparse: tuple(o.places(2, tape.rng).tolist()),
        {(0, 1): beta**2, (0,): beta * (1 - beta), (1,): beta * (1 - beta), (): (1 - beta) ** 2},
    )
    law = {}
    for none, one_ in product(range(4), repeat=2):
        law[(0,) * none + (1,) * one_] = (1 - sparse.more) ** 2 * sparse.more ** (none + one_)
    yield Row(
        f"{sparse} adds",
        "SparseDummies.drawn",
        lambda tape, o=sparse: tuple(sorted(o.drawn(tape.rng).tolist())),
        {key: (mass, mass) for key, mass in law.items()},
        draws=5,
        most_open=4 * sparse.more**3,
    )
    for level in (0, 1, 3, 80):
        yield Row(
            f"flip {level}",
            "flip",
            lambda tape, n=level: bool(flip(np.array([n]), 16, tape.rng)[0]),
            {True: Fraction(16, 17) ** level, False: 1 - Fraction(16, 17) ** level},
            most_open=tiny,
        )
    budget, levels = IntegerBudget.of(10.0), np.array([3, 0, 9])
    heads_ = [Fraction(budget.base, budget.base + 1) ** int(n) for n in levels]
    yield Row(
        "permute and flip",
        "PermuteAndFlip.draw",
        lambda tape: PermuteAndFlip().draw(levels, budget, tape.rng),
        selection_law(heads_),
        draws=4,
        most_open=ties,
    )
    for x, y in ((1, 0), (-2, 1), (0, 0), (3, 3)):
        yield Row(
            f"planar noise kept at {x}, {y}",
            "planar_noise",
            lambda tape, z=(x, y): bool(planar_noise._accepted(Fraction(1, 3), np.array([z]), tape.rng)[0]),
            planar_chance(Fraction(1, 3), x, y),
            most_open=tiny,
        )


def by_word(one: KRR, own: int) -> Sample:
    def sample(tape: Tape) -> int:
        reports = np.empty(1, dtype=np.int64)
        assert not _by_word(np.array([own]), one.channel(), reports, tape.rng)
        return int(reports[0])

    return sample


def one_hash(tape: Tape) -> list[int]:
    return [int(word) for word in LocalHashing(k=6, epsilon=2.0).randomize([5], tape.rng)[0]]


ROWS = list(rows())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_sampler_has_exactly_its_published_law(row: Row) -> None:
    assert row.law().faults(row.published, most_open=row.most_open) == []


# Where words are asked for, and the rows or the test that count them.
COUNTED = {
    "entropy.Entropy.below": "test_integers_below_a_bound_are_residues_of_words_that_make_full_turns",
    "entropy.Entropy.narrow": "test_narrow_words_are_disjoint_parts_of_words",
    "entropy.Entropy.permutation": "test_each_permutation_has_as_many_words_as_every_other",
    "permutations.permute_within_blocks": "test_each_permutation_has_as_many_words_as_every_other",
    "discrete_noise._Stage.add": "geometric",
    "discrete_noise._word": "geometric",
    "discrete_noise._exp_minus": "_exp_minus",
    "coins.coins": "coins",
    "device unary.coins": "device coins",
    "pure_protocol._by_table": "krr",
    "pure_protocol._by_word": "_by_word",
    "subset_selection.SubsetSelection._draw": "subset_selection",
    "hadamard.Hadamard._randomize": "hadamard",
    "local_hashing.LocalHashing._randomize": "local_hashing",
    "open_reports.OpenNumbers._randomize": "OpenNumbers._randomize",
    "closest_direction.ClosestDirection._reports": "test_one_of_the_drawn_directions_is_kept_and_others_are_lies",
    "gaussian.Gaussian._reports": "test_rounding_before_gaussian_noise_is_right_on_average",
    "rotated_blocks.RotatedBlocks._reports": "rotated_blocks",
    "rotated_blocks.RotatedBlocks._signs": "rotated_blocks",
    "window.Window._randomize": "window",
    "dummies.TruncatedGeometric.sample": "TruncatedGeometric.sample",
    "dummies._settle": "TruncatedGeometric.sample",
    "dummies.UserDummies.sent": "UserDummies.send",
    "dummies.SparseDummies.places": "SparseDummies.places",
    "dummies.SparseDummies.drawn": "SparseDummies.drawn",
    "lehmer_code.draw_lehmer_code": "test_a_digit_by_inversion_is_geometric_or_in_doubt_or_drawn_again",
    "lehmer_code._decide_exactly": "test_a_digit_in_doubt_is_settled_by_more_words",
    "permutations._decide_exactly": "planar_noise",
    "permutations._accepted": "planar_noise",
    "sampler.flip": "flip",
    "sampler._exact_heads": "flip",
    "sampler.PermuteAndFlip.draw": "PermuteAndFlip.draw",
    "sampler.Exponential.draw": "test_proposals_are_kept_by_their_weights_and_made_anew",
    "device exact_thresholds.Words.word": "device krr",
    "device exact_thresholds.Words.below": "test_a_device_draws_integers_below_a_bound_from_fewest_bits",
    "device krr.respond": "device krr",
    "device laplace.geometric": "device laplace",
    "device laplace.Laplace.randomize": "device laplace",
    "laplace.Laplace._randomize": "laplace",
    "device hadamard.Hadamard.randomize": "device hadamard",
    "device local_hashing.LocalHashing.randomize": "device local_hashing",
    "device subset_selection.SubsetSelection.randomize": "device subset_selection",
    "device subset_selection.uniform_subset": "device subset_selection",
    "device window.Window.randomize": "device window",
    "device joint.Drawn.randomize": "device drawn",
    "device closest_direction.ClosestDirection.randomize": "device closest_direction",
    "device asked.AskedTogether._drawn": "device drawn question",
    "device dummies.SentDummies.messages": "SentDummies.messages",
    "device dummies.SentDummies.filled": "SentDummies.filled",
}
# What has no law of its own beside that of a uniform permutation, and what promises nothing.
PERMUTES = {
    "dummies.mix_evenly",
    "dummies.UserDummies.add",
    "noise.Noise.complete",
    "dummies.UserDummies.mix",
    "planar.PlanarLaplace._draw",
    "noisy_sort.sort_keys",
    "mallows.draw_mallows",
    "uniform.Uniform._permutation",
    "rase.Sattolo._permutation",
}
EXEMPT = {
    "entropy.keyed_prints",  # fingerprints of ids
    "rotated_blocks.RotatedBlocks._flips",  # public signs
    "device sender.Backoff.seconds",  # how long a device waits
    "device asked._uniform",  # to which grid point a device rounds its own number, before what protects it
}


ASKS = ("words", "narrow", "below", "bits", "word", "permutation")


def draws() -> Iterator[str]:
    """Functions of the exact samplers' folders that ask for words, those of devices after the word device."""
    inside = ("randomize/**/*.py", "shuffle/**/*.py", "core/**/*.py", "text/sampler.py")
    files = [(ROOT / "src/dovetail", glob, "") for glob in inside] + [(ROOT / "device/src", "**/*.py", "device ")]
    for folder, glob, prefix in files:
        for path in sorted(folder.glob(glob)):
            home, text = path.parent.name if path.stem == "__init__" else path.stem, path.read_text()
            if any(f".{asks}(" in text for asks in ASKS):
                yield from (f"{prefix}{home}.{name}" for name in draws_in(ast.parse(text), ()))


def draws_in(node: ast.AST, inside: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.FunctionDef | ast.ClassDef)
        asks = isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute)
        if asks and child.func.attr in ASKS and not isinstance(child.func.value, ast.Attribute):
            who = ast.unparse(child.func.value)
            if child.func.attr != "permutation" or who in ("rng", "own"):
                yield ".".join(inside)
        yield from draws_in(child, (*inside, child.name) if named else inside)


def test_whatever_asks_for_words_has_rows_or_a_test_here() -> None:
    assert set(draws()) == {*COUNTED, *PERMUTES, *EXEMPT}
    known = {row.of for row in ROWS}
    assert {by for by in COUNTED.values() if by not in known and by not in globals()} == set()


def test_every_randomizer_and_every_mechanism_of_a_device_has_rows() -> None:
    known = {row.of for row in ROWS}
    vectors = {"closest_direction", "gaussian"}  # have tests of their own
    assert {*RANDOMIZERS.names(), *VECTOR_RANDOMIZERS.names()} - known == vectors
    assert {f"device {name}" for name in protocol_mechanism.names()} <= known


def test_a_broken_sampler_is_seen_by_a_single_word() -> None:
    """The mask of coins one bit too wide, `<=` for `<`, a step one word off, a word too few."""
    mass = (0x37 << 56) + 5

    def drawn(tape: Tape, *, wide: int = 0, equal: int = 0, shared: bool = False) -> bool:
        first, top = tape.next(256), mass >> 56
        rest = mass & (((2 if wide else 1) << 56) - 1)
        return first < top or (first == top and ((first if shared else tape.next(WORD)) >> 8) < rest + equal)

    assert exact_law(drawn, draws=2).faults(coin(mass)) == []
    for broken in ({"wide": 1}, {"equal": 1}, {"shared": True}):
        assert exact_law(lambda tape, b=broken: drawn(tape, **b), draws=2).faults(coin(mass))


def residues(bounds: Sequence[int], turn: Fraction) -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """Words for draws below these bounds, in each combination of residues: the first, middle or last such words."""
    for chosen in product(*map(range, bounds)):
        yield [r + bound * int((WORD // bound - 1) * turn) for r, bound in zip(chosen, bounds, strict=True)], chosen


def shuffled(words: Sequence[int]) -> tuple[int, ...]:
    items = np.arange(4)
    assert fisher_yates(items, 4, np.array(words, dtype=np.uint64)) == 1
    return tuple(items.tolist())


def dealt(words: Sequence[int]) -> tuple[int, ...]:
    """Of a block of 4 between two others that stay."""
    items, starts = np.arange(6), np.array([0, 1, 5, 6])
    assert _deal(items, starts, np.array([1]), 0, 4, np.array(words, dtype=np.uint64)) == (1, 1)
    assert items[[0, 5]].tolist() == [0, 5]
    return tuple((items[1:5] - 1).tolist())


@pytest.mark.parametrize("sampler", [shuffled, dealt])
def test_each_permutation_has_as_many_words_as_every_other(
    sampler: Callable[[Sequence[int]], tuple[int, ...]],
) -> None:
    """So each permutation has the same number of words, whatever is skipped."""
    bounds = (4, 3, 2)
    for turn in (Fraction(0), Fraction(1, 2), Fraction(1)):
        orders = {sampler(words) for words, _ in residues(bounds, turn)}
        assert orders == set(permutations(range(4)))
    for words, _ in residues(bounds, Fraction(0)):
        for late in range(WORD // 3 * 3, WORD):
            assert sampler([words[0], late, *words[1:]]) == sampler(words)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 100, 3 << 61, (1 << 63) - 1, 1 << 63])
def test_integers_below_a_bound_are_residues_of_words_that_make_full_turns(bound: int) -> None:
    turns = WORD // bound
    for residue in {0, 1 % bound, bound // 2, bound - 1}:
        for turn in {0, turns // 2, turns - 1}:
            assert Chosen([residue + bound * turn]).below(bound, 1).tolist() == [residue]
    late = {turns * bound, (turns * bound + WORD) // 2, WORD - 1} if turns * bound < WORD else set()
    for word in late:
        assert Chosen([word, bound - 1]).below(bound, 1).tolist() == [bound - 1]
        assert Chosen([word, 0, word, bound - 1]).below(bound, 2).tolist() == [bound - 1, 0]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("count", [1, 7, 8, 9])
def test_narrow_words_are_disjoint_parts_of_words(dtype: Any, count: int) -> None:
    size = np.dtype(dtype).itemsize
    words = [int.from_bytes(range(8 * i, 8 * i + 8)) for i in range(-(-count * size // 8))]
    source = Chosen(words)
    parts = source.narrow(count, dtype)
    assert len(parts) == count and source.left == []
    seen = sorted(parts.tobytes())
    assert len(set(seen)) == count * size and set(seen) <= set(range(8 * len(words)))


class Bits(Words):
    """A device's source that leaves integers below a bound to the sampler's own rejection."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    def bits(self, count: int) -> int:
        return self.tape.next(1 << count)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 9])
def test_a_device_draws_integers_below_a_bound_from_fewest_bits(bound: int) -> None:
    size = 1 << (bound - 1).bit_length()
    law = exact_law(lambda tape: Bits(tape).below(bound), draws=1)
    assert law.masses == dict.fromkeys(range(bound), Fraction(1, size)) and law.open == Fraction(size - bound, size)
    for late in range(bound, size):
        assert [Bits(Tape([late, again])).below(bound) for again in range(bound)] == list(range(bound))


@pytest.mark.parametrize(("theta", "bound"), [(0.7, 2), (1.5, 3), (0.4, 5), (40.0, 2)])
def test_a_digit_by_inversion_is_geometric_or_in_doubt_or_drawn_again(theta: float, bound: int) -> None:
    law = exact_law(lehmer_digit(theta, bound), draws=1)
    doubt = law.masses.pop("doubt")
    published = {k: one for k, one in geometric_law(Fraction(theta)).items() if k < bound}
    again = 1 - sum(low for low, _ in published.values()), 1 - sum(high for _, high in published.values())
    assert Law(law.masses, doubt).faults({**published, "again": again[::-1]}, most_open=doubt) == []
    assert doubt <= 8 * (bound + 1) * Fraction(ERROR) * Fraction(1 + 1 / theta)


@pytest.mark.parametrize(("theta", "bound"), [(0.3, 3), (0.01, 5), (0.2, 2)])
def test_a_flat_digit_is_geometric_or_in_doubt_or_drawn_again(theta: float, bound: int) -> None:
    """Each k has floor(2^32 / bound) lower halves; 1 - U <= e^(-theta k) keeps it."""
    law = exact_law(flat_digit(theta, bound), draws=3)
    doubt = law.masses.pop("doubt", Fraction(0))
    published: dict[Any, Any] = {}
    for k in range(bound):
        chance = Fraction((1 << 32) // bound, 1 << 32)
        published[k] = tuple(chance * end for end in exp_bracket(-Fraction(theta) * k))
    published["again"] = tuple(1 - sum(one[end] for one in published.values()) for end in (1, 0))
    assert Law(law.masses, doubt).faults(published, most_open=doubt) == []
    assert doubt <= 8 * Fraction(ERROR)


@pytest.mark.parametrize(("theta", "bound"), [(0.7, 2), (20.0, 3)])
def test_a_digit_in_doubt_is_settled_by_more_words(theta: float, bound: int) -> None:
    """The words of a digit in doubt are settled as those of a geometric number, and drawn again beyond the bound."""

    def settled(tape: Tape) -> int | str:
        result = np.zeros(1, dtype=np.int32)
        fixed = lehmer_code._decide_exactly(result, 0, False, tape.next(WORD), bound, theta, tape.rng)
        return int(result[0]) if fixed else "again"

    once = geometric_law(Fraction(theta))
    published: dict[Any, Any] = {k: one for k, one in once.items() if k < bound}
    published["again"] = tuple(1 - sum(one[end] for one in published.values()) for end in (1, 0))
    assert exact_law(settled, draws=2).faults(published, most_open=Fraction(1, 1 << 120)) == []
    for k in range(bound):  # kept when 1 - U <= e^(-theta k)

        def flat(tape: Tape, k: int = k) -> bool:
            result = np.array([k], dtype=np.int32)
            return bool(lehmer_code._decide_exactly(result, 0, True, tape.next(WORD), bound, theta, tape.rng))

        low, high = exp_bracket(-Fraction(theta) * k)
        law = exact_law(flat, draws=2)
        assert law.faults({True: (low, high), False: (1 - high, 1 - low)}, most_open=Fraction(1, 1 << 100)) == []


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(9), Fraction(10**9), Fraction(7, 64)])
def test_discrete_gaussian_numbers_are_kept_with_the_published_probability(
    variance: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A discrete Laplace y of rate 1/t is kept when a geometric number reaches floor(gamma), and e^-(the rest)."""
    asked: list[Any] = []
    answers: list[Any] = []

    def told(*arguments: Any) -> Any:
        asked.append(arguments[:-1])
        return np.array([answers.pop(0)])

    for name in ("discrete_laplace", "geometric", "_exp_minus"):
        monkeypatch.setattr(gaussian_noise, name, told)
    t = isqrt(int(variance)) + 1
    for y in (0, 1, -2, 7 * t, -60 * t):  # the last one takes more than 63 bits where the variance is large
        gamma = (abs(y) - variance / t) ** 2 / (2 * variance)
        for reaches, says in product((0, -1), (True, False)):
            whole = max(0, int(gamma) + reaches)
            kept = whole >= int(gamma) and says
            answers[:] = [y, whole, says] if kept else [y, whole, says, 5, 1 << 62, True]
            asked.clear()
            found = gaussian_noise.discrete_gaussian(variance, 1, Chosen([]))
            assert found.tolist() == [y if kept else 5] and answers == []
            (rate, count), (one, _), (rest, most) = asked[:3]
            assert (rate, count, one) == (Fraction(1, t), 1, 1)
            assert int(gamma) + Fraction(int(rest[0]), most) == gamma


def test_a_truncated_gaussian_number_is_the_first_within_reach_of_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """So its law is that of the discrete Gaussian, given that it lies there; every draw is of the whole variance."""
    law, asked = TruncatedGaussian(Fraction(9, 2), 2), []
    for drawn in product((-3, -2, 0, 2, 3), repeat=3):
        left = [*drawn, 1]

        def told(variance: Fraction, count: int, rng: Any, left: list[int] = left) -> np.ndarray:
            asked.append((variance, count))
            return np.array([left.pop(0) for _ in range(count)])

        monkeypatch.setattr(dummy_laws, "discrete_gaussian", told)
        first = next(one for one in (*drawn, 1) if abs(one) <= 2)
        assert law.sample(1, Chosen([])).tolist() == [first + 2]
    assert set(asked) == {(Fraction(9, 2), 1)}
    several = [3, 1, -4, 5, -2, 2]  # of three the first and the last are drawn again, the first one twice
    monkeypatch.setattr(
        dummy_laws, "discrete_gaussian", lambda v, count, rng: np.array([several.pop(0) for _ in range(count)])
    )
    assert law.sample(3, Chosen([])).tolist() == [4, 3, 0] and several == []
    weights = [exp_bracket(Fraction(-(k * k), 9)) for k in range(-2, 3)]
    for place, (low, high) in enumerate(weights):
        others = [sum(one[end] for one in weights) for end in (0, 1)]
        assert float(low / others[1]) * (1 - 1e-14) <= law.masses[place] <= float(high / others[0]) * (1 + 1e-14)


def test_the_variance_of_discrete_gaussian_noise_fits_62_bits() -> None:
    """2 a b t^2 is below 2^62, with t = 2 for a variance a/b from 1 to 4."""
    for product_, fits in ((((1 << 30) + 1) * ((1 << 29) - 1), True), (((1 << 30) + 1) * ((1 << 29) + 1), False)):
        variance = Fraction((1 << 30) + 1, product_ // ((1 << 30) + 1))
        assert variance.numerator * variance.denominator == product_ and (8 * product_ < 1 << 62) == fits
        assert gaussian_noise.can_draw(variance) == fits
    assert gaussian_noise.can_draw(Fraction(1, 1 << 30)) and not gaussian_noise.can_draw(Fraction(0))


def test_rounding_before_gaussian_noise_is_right_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_vectors, "discrete_gaussian", lambda variance, count, rng: np.zeros(count, np.int64))
    noise = gaussian_vectors.Gaussian(1, 1.0, 3.0)
    for place in (0.25, 2.75, -1.5):
        value = place * noise.step
        law = exact_law(lambda tape, v=value: int(noise.randomize([[v]], tape.rng)[0, 0]), draws=1)
        down, up = int(np.floor(place)), Fraction(place) % 1
        assert set(law.masses) == {down, down + 1}
        assert abs(law.masses[down + 1] - up) <= Fraction(1, 1 << 50)  # a value in steps is rounded at 2^-52 of 4


def test_one_of_the_drawn_directions_is_kept_and_others_are_lies() -> None:
    noise = ClosestDirection(2, 5.0, 3.0, axes=2)
    drawn = (3, WORD - 1)
    law = exact_law(lambda tape: int(noise.randomize([[1.0, 2.0]], tape.rng)[0]), draws=2, given=drawn)
    keep, lie = noise.response.device.masses
    assert set(law.masses) == {word & ~1 | sign for word in drawn for sign in (0, 1)}
    assert sorted(law.masses.values()) == [share(lie)] * 3 + [share(keep)]


@pytest.mark.parametrize("levels", [[0, 3], [5, 0, 1]])
def test_proposals_are_kept_by_their_weights_and_made_anew(
    levels: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exponential, "_SPARE", 1 - len(levels))  # one proposal at a time
    rule, budget = exponential.Exponential(), IntegerBudget.of(10.0)

    def draw(tape: Tape) -> int:
        return rule.draw(np.array(levels), budget, tape.rng)

    kept = exact_law(draw, draws=2).masses
    for i, level in enumerate(levels):
        published = Fraction(budget.base, budget.base + 1) ** level / len(levels)
        assert kept[i] <= published <= kept[i] + Fraction(1, len(levels) * WORD)  # one word may be in doubt
        assert draw(Tape([int(np.argmax(levels)), WORD - 1, i, 0])) == i


def test_digits_of_a_geometric_number_cover_its_places_and_scale_its_rate() -> None:
    rate = Fraction(1, 10**7)
    digits = geometric_digits(rate)
    places = 0
    for law, shift in digits[:-1]:
        assert (law.rate, shift) == (rate * (1 << places), places) and law.size is not None
        places += law.size.bit_length() - 1
        assert law.size == 1 << places - shift
    assert digits[-1][0] == GeometricLaw(rate * (1 << places)) and digits[-1][1] == places > 0
    for bits in (1, 11, 12, 13, 30):
        split, places = geometric_digits(Fraction(0), bits), 0
        for law, shift in split:
            assert shift == places and law.size is not None
            places += law.size.bit_length() - 1
        assert places == bits
