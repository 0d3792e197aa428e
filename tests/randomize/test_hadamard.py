"""Hadamard response lays its reports out as its channel documents."""

import numpy as np
import pytest
from tests.statistics import expect_broken, expect_law

from dovetail.core.entropy import Entropy
from dovetail.randomize.hadamard import Hadamard


@pytest.mark.parametrize("randomizer", Hadamard.examples(), ids=repr)
def test_a_symbol_owns_the_even_half_of_its_block(randomizer: Hadamard) -> None:
    law, width = randomizer.channel().matrix(), randomizer.width
    for x in range(randomizer.k):
        owned = {
            y
            for y in range(randomizer.blocks * width)
            if y // width == x % randomizer.blocks
            and ((x // randomizer.blocks + 1) & (y % width)).bit_count() % 2 == 0
        }
        assert set(np.flatnonzero(law[x] == law[x].max()).tolist()) == owned
        assert len(owned) == width // 2


@pytest.mark.parametrize("k", [2, 3, 15, 16, 17, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0, 3.0, 9.0])
def test_blocks_and_width_are_the_papers_powers_of_two(k: int, epsilon: float) -> None:
    randomizer = Hadamard(k=k, epsilon=epsilon)
    assert randomizer.blocks == max(1, 2 ** int(np.ceil(np.log2(min(np.exp(epsilon), 2 * k))) - 1))
    assert randomizer.width == 2 ** int(np.ceil(np.log2(k / randomizer.blocks + 1)))
    assert randomizer.k <= randomizer.blocks * (randomizer.width - 1)


@pytest.mark.exhaust
@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_a_million_symbols_work(epsilon: float, rng: Entropy) -> None:
    k, n = 1 << 20, 100_000
    randomizer = Hadamard(k=k, epsilon=epsilon)
    values = np.full(n, k - 1)
    reports = randomizer.randomize(values, rng)
    channel, row, block = randomizer.channel(), (k - 1) // randomizer.blocks + 1, (k - 1) % randomizer.blocks
    odd = np.bitwise_count(reports % randomizer.width & row) % 2
    owned = np.count_nonzero((reports // randomizer.width == block) & (odd == 0))
    kept = channel.keep / channel.total
    expect_law([owned, n - owned], [kept, 1 - kept])
    expect_broken([owned, n - owned], [0.95 * kept, 1 - 0.95 * kept])
    shares = randomizer.invert(randomizer.tally(reports), n)
    error = np.sqrt(randomizer.variance(np.eye(1, k, k - 1)[0])[-1] / n)
    assert abs(shares[-1] - 1.0) < 7 * error  # false alarm below 1e-9 (normal tail)
