"""Mechanisms as people write them: faults that were released somewhere or are easily made, and correct ones.

Each is a minimal replica, written for this study; `source` says where the fault was read or run. Randomness is
seeded, so that a run repeats itself.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dovetail as dt

Box = Callable[[Any], Any]
E = math.e


@dataclass(frozen=True)
class Row:
    """One mechanism of the zoo: what is claimed of it, which inputs are told apart, and by how many calls."""

    name: str
    make: Callable[[], Any]
    inputs: list[Any]
    epsilon: float = 1.0
    delta: float = 0.0
    calls: int = 20_000
    devices: bool = False
    source: str = "easily made"


def coins(name: str) -> random.Random:
    return random.Random(f"audit zoo {name}")


def kept(epsilon: float, k: int = 2) -> float:
    return math.exp(epsilon) / (math.exp(epsilon) + k - 1)


def geometric(draw: random.Random, scale: float) -> int:
    """Two-sided geometric noise, exactly but for the rounding of its probabilities."""

    def one() -> int:
        return math.floor(math.log(1.0 - draw.random()) * -scale)

    return one() - one()


# Faults.


def last_bit_in_clear() -> Box:
    draw, keep = coins("bits"), 0.55
    return lambda bits: [bit if draw.random() < keep else 1 - bit for bit in bits[:-1]] + bits[-1:]


def true_bit_never_cleared(optimal: bool) -> Callable[[], Box]:
    def make() -> Box:
        draw = coins(f"unary {optimal}")
        p, q = (0.5, 1.0 / (1.0 + E)) if optimal else (kept(0.5), 1.0 - kept(0.5))

        def box(value: int) -> list[int]:
            bits = [int(draw.random() < q) for _ in range(4)]
            bits[value] |= int(draw.random() < p)
            return bits

        return box

    return make


def laplace_in_doubles() -> Box:
    draw = np.random.default_rng(1)
    return lambda value: value + draw.laplace()


def gaussian_in_doubles() -> Box:
    draw = np.random.default_rng(2)
    return lambda value: value + draw.normal(0.0, 3.731)


def laplace_on_one_hot() -> Box:
    draw = np.random.default_rng(3)
    return lambda value: np.eye(4)[value] + draw.laplace(0.0, 2.0, 4)


def clip_as_sensitivity() -> Box:
    draw, deviation = coins("clip"), math.sqrt(2.0 * math.log(1.25e5)) / 3.0
    return lambda value: round(64.0 * (value + draw.gauss(0.0, deviation))) / 64.0


def noise_follows_the_norm() -> Box:
    draw = coins("norm")
    return lambda value: round(1024.0 * (value + draw.gauss(0.0, 3.731 * abs(value)))) / 1024.0


def default_seed() -> Box:
    draw = random.Random(42)
    return lambda value: value + geometric(draw, 1.0)


def svt(*, query_noise: bool, stops: bool, answer: bool) -> Callable[[], Box]:
    """Which queries are above 0, at most one; epsilon / 2 for the threshold, epsilon / 2 for the queries."""

    def make() -> Box:
        draw = coins(f"svt {query_noise} {stops} {answer}")

        def laplace(scale: float) -> float:
            return draw.expovariate(1.0 / scale) - draw.expovariate(1.0 / scale)

        def box(queries: list[float]) -> list[Any]:
            threshold, out = laplace(2.0), []
            for query in queries:
                noisy = query + (laplace(4.0) if query_noise else 0.0)
                above = noisy >= threshold
                out.append(round(noisy) if above and answer else int(above))
                if above and stops:
                    break
            return out

        return box

    return make


def ten_items_as_one() -> Box:
    draw = coins("items")
    return lambda count: count + geometric(draw, 1.0)


def lie_may_be_the_truth() -> Box:
    draw, keep = coins("lie"), kept(1.0, 10)
    return lambda value: value if draw.random() < keep else draw.randrange(10)


def lie_is_never_the_last() -> Box:
    draw, keep = coins("last"), kept(1.0, 10)

    def box(value: int) -> int:
        return value if draw.random() < keep else draw.choice([other for other in range(9) if other != value])

    return box


def noise_that_is_cut() -> Box:
    draw = coins("cut")
    return lambda count: count + max(-5, min(5, geometric(draw, 1.0)))


def drawn_until_in_range() -> Box:
    draw = coins("range")

    def box(count: int) -> int:
        while not 0 <= (noisy := count + geometric(draw, 1.0)) <= 3:
            pass
        return noisy

    return box


def budget_for_each_bit() -> Box:
    draw, keep = coins("bit"), kept(1.0)
    return lambda value: [int((draw.random() < keep) == (place == value)) for place in range(4)]


def exponential(factor: float) -> Callable[[], Box]:
    """The exponential mechanism on the utilities of six candidates, each of sensitivity 1."""

    def make() -> Box:
        draw = coins(f"exponential {factor}")

        def box(utilities: list[float]) -> int:
            weights = [math.exp(utility / factor) for utility in utilities]
            return draw.choices(range(len(weights)), weights)[0]

        return box

    return make


def one_noise_for_all() -> Box:
    draw = coins("vector")

    def box(vector: list[int]) -> list[int]:
        noise = geometric(draw, 1.0)
        return [value + noise for value in vector]

    return box


def noise_kept() -> Box:
    noise = geometric(SHARED, 3.0)
    return lambda value: value + noise


def answers_kept() -> Box:
    known: dict[int, int] = {}
    return lambda value: known.setdefault(value, value if SHARED.random() < kept(1.0, 10) else SHARED.randrange(10))


def seeded_by_the_second() -> Box:
    """A second lasts 500 calls."""
    calls = iter(range(10**9))
    return lambda value: value + geometric(random.Random(next(calls) // 500), 1.0)


SHARED = coins("shared")
UP, DOWN = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
ONE, OTHERS = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
SVT_PAPER = "Lyu, Su, Li (2017), Understanding the Sparse Vector Technique"
FAULTS = [
    Row("last bit of a bit vector in clear", last_bit_in_clear, [[0, 0, 0, 0], [0, 0, 0, 1]], 0.402, calls=4_000,
        source="opendp 0.14.1, make_randomized_response_bitvec; repaired in 0.16.0"),
    Row("unary: the true bit is set, never cleared", true_bit_never_cleared(False), [0, 1, 2, 3], calls=40_000,
        source="pure-ldp 1.1.2, UEClient, symmetric"),
    Row("optimized unary: the same", true_bit_never_cleared(True), [0, 1, 2, 3], calls=40_000,
        source="pure-ldp 1.1.2, UEClient, optimized"),
    Row("Laplace noise in doubles", laplace_in_doubles, [0.0, 1.0], source="diffprivlib 0.6.6, Laplace; numpy"),
    Row("Gaussian noise in doubles", gaussian_in_doubles, [0.0, 1.0], 1.0, 1e-5, 60_000,
        source="diffprivlib 0.6.6, GaussianAnalytic"),
    Row("Laplace noise in doubles on a histogram", laplace_on_one_hot, [0, 1], calls=40_000,
        source="pure-ldp 1.1.2, HEClient"),
    Row("clip norm as sensitivity, values replaced", clip_as_sensitivity, [-1.0, 1.0], 3.0, 1e-5, 800_000,
        source="flwr, LocalDpMod: sensitivity is an argument beside the clip norm"),
    Row("noise in proportion to the own norm", noise_follows_the_norm, [1.0, 10.0], 1.0, 1e-5,
        source="AiDotNet 18a57ad4, ShuffleModelDP.cs, ApplyPrivacy"),
    Row("a default seed", lambda: default_seed, [0, 1], devices=True, calls=4_000,
        source="AiDotNet 18a57ad4, ShuffleModelDP.cs, seed 42"),
    Row("sparse vectors without noise on queries", svt(query_noise=False, stops=False, answer=False), [UP, DOWN],
        calls=20_000, source=f"{SVT_PAPER}, Algorithm 5"),
    Row("sparse vectors that never stop", svt(query_noise=True, stops=False, answer=False), [UP * 4, DOWN * 4],
        calls=40_000, source=f"{SVT_PAPER}, Algorithm 6"),
    Row("ten items of a person, sensitivity of one", ten_items_as_one, [0, 10], calls=4_000),
    Row("the lie may be the truth", lie_may_be_the_truth, list(range(10)), calls=40_000),
    Row("the lie is never the last", lie_is_never_the_last, list(range(10)), calls=20_000),
    Row("noise that is cut at 5", noise_that_is_cut, [0, 1], calls=200_000),
    Row("noise drawn again until in range", drawn_until_in_range, [0, 1], calls=200_000),
    Row("the whole budget for each bit", budget_for_each_bit, [0, 1, 2, 3], calls=40_000),
    Row("exponential mechanism without its factor 2", exponential(1.0), [ONE, OTHERS], calls=40_000),
    Row("one noise for a whole vector", one_noise_for_all, [[0, 0, 0], [0, 1, 0]], calls=4_000),
    Row("noise that a device keeps", lambda: noise_kept, [0, 1], devices=True, calls=4_000),
    Row("answers that a device keeps, values change", lambda: answers_kept, [0, 1], devices=True, calls=60_000),
    Row("generator seeded by the second", seeded_by_the_second, [0, 1], 2.2, calls=4_000),
]  # fmt: skip


# Correct ones.


def response(k: int, epsilon: float = 1.0) -> Callable[[], Box]:
    def make() -> Box:
        draw, keep = coins(f"response {k} {epsilon}"), kept(epsilon, k)

        def box(value: int) -> int:
            return value if draw.random() < keep else (value + 1 + draw.randrange(k - 1)) % k

        return box

    return make


def unary(p: float, q: float) -> Callable[[], Box]:
    def make() -> Box:
        draw = coins(f"unary {p} {q}")
        return lambda value: [int(draw.random() < (p if place == value else q)) for place in range(4)]

    return make


def bits() -> Box:
    draw, keep = coins("right bits"), kept(0.5)
    return lambda given: [bit if draw.random() < keep else 1 - bit for bit in given]


def count_with(scale: float, low: int = -(10**9), high: int = 10**9) -> Callable[[], Box]:
    def make() -> Box:
        draw = coins(f"count {scale} {low} {high}")
        return lambda count: max(low, min(high, count + geometric(draw, scale)))

    return make


def laplace_on_a_grid() -> Box:
    draw = coins("grid")
    return lambda value: round(64.0 * (value + draw.expovariate(1.0) - draw.expovariate(1.0))) / 64.0


def gaussian_on_a_grid() -> Box:
    draw = coins("gaussian")
    return lambda value: round(64.0 * (value + draw.gauss(0.0, 3.75))) / 64.0


def one_bit_mean() -> Box:
    draw, keep = coins("mean"), kept(1.0)
    return lambda value: int(draw.random() < (1.0 - keep) + (2.0 * keep - 1.0) * value)


def two_coins() -> Box:
    """The survey technique of 1965 with a fair second coin: epsilon ln 3."""
    draw = coins("two coins")
    return lambda bit: bit if draw.random() < 0.5 else draw.randrange(2)


def nothing() -> Box:
    return lambda value: "thank you"


def pairs_of_responses() -> Box:
    draw, keep = coins("pairs"), kept(0.5)
    return lambda pair: [bit if draw.random() < keep else 1 - bit for bit in pair]


def fresh_devices() -> Box:
    return lambda value: value if SHARED.random() < kept(1.0) else 1 - value


CORRECT = [
    Row("randomized response", response(2), [0, 1]),
    Row("among ten", response(10), list(range(10))),
    Row("at epsilon 4", response(4, 4.0), [0, 1, 2, 3], 4.0),
    Row("two coins", two_coins, [0, 1], math.log(3.0) * (1.0 + 1e-12)),
    Row("unary, symmetric", unary(kept(0.5), 1.0 - kept(0.5)), [0, 1, 2, 3]),
    Row("unary, optimized", unary(0.5, 1.0 / (1.0 + E)), [0, 1, 2, 3]),
    Row("two bits of a vector", bits, [[0, 0, 0, 0], [0, 0, 1, 1]]),
    Row("two answers, half the budget each", pairs_of_responses, [[0, 0], [1, 1]]),
    Row("geometric noise", count_with(1.0), [0, 1]),
    Row("geometric noise, sensitivity 3", count_with(3.0), [0, 3]),
    Row("geometric noise, clamped", count_with(1.0, 0, 5), [2, 3]),
    Row("Laplace noise, rounded", laplace_on_a_grid, [0.0, 1.0]),
    Row("Gaussian noise, rounded", gaussian_on_a_grid, [0.0, 1.0], 1.0, 1e-5),
    Row("exponential mechanism", exponential(2.0), [ONE, OTHERS]),
    Row("sparse vectors", svt(query_noise=True, stops=True, answer=False), [UP, DOWN]),
    Row("a mean by one bit", one_bit_mean, [0.0, 0.5, 1.0]),
    Row("a constant", nothing, [0, 1]),
    Row("fresh coins on each device, twice", lambda: fresh_devices, [0, 1], devices=True),
    Row("dovetail krr, 2", lambda: dt.KRR(k=2, epsilon=1.0), [0, 1]),
    Row("dovetail krr, 10", lambda: dt.KRR(k=10, epsilon=1.0), list(range(10))),
    Row("dovetail unary", lambda: dt.Unary(k=4, epsilon=1.0), [0, 1, 2, 3]),
    Row("dovetail hadamard", lambda: dt.Hadamard(k=4, epsilon=1.0), [0, 1, 2, 3]),
    Row("dovetail subset selection", lambda: dt.SubsetSelection(k=4, epsilon=1.0), [0, 1, 2, 3]),
    Row("dovetail local hashing", lambda: dt.LocalHashing(k=4, epsilon=1.0), [0, 1, 2, 3]),
    Row("dovetail laplace", lambda: dt.Laplace(lower=0.0, upper=1.0, epsilon=1.0), [0.0, 1.0]),
    Row("dovetail window", lambda: dt.Window(lower=0.0, upper=1.0, epsilon=1.0), [0.0, 1.0]),
]
