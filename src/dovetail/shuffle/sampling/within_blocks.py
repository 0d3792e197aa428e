"""Uniform permutations inside the blocks of a line, all at once."""

import numpy as np

from dovetail.core.entropy import Entropy, Permutation, Words
from dovetail.core.numeric.compiled import njit
from dovetail.shuffle.sampling.lehmer_code import BlockStarts

_CHUNK = 1 << 14


def permute_within_blocks(starts: BlockStarts, rng: Entropy) -> Permutation:
    """A uniform permutation of 0..n-1 among those that map each block starts[b]..starts[b + 1] - 1 to itself."""
    result = np.arange(int(starts[-1]), dtype=np.int64)
    sizes = np.diff(starts)
    several = np.flatnonzero(sizes > 1)
    block, todo = 0, int(sizes[several[0]]) if several.size else 0
    left = int(sizes[several].sum())
    while block < several.size:
        block, todo = _deal(result, starts, several, block, todo, rng.words(min(_CHUNK, left + 8)))
    return result


@njit(cache=True, nogil=True)
def _deal(
    items: Permutation, starts: BlockStarts, blocks: BlockStarts, block: int, todo: int, words: Words
) -> tuple[int, int]:
    """Fisher-Yates with rejection, from the top of each block, until the words run out."""
    ones, used = np.uint64(0xFFFFFFFFFFFFFFFF), 0
    while block < blocks.size:
        start = starts[blocks[block]]
        while todo > 1:
            if used == words.size:
                return block, todo
            bound, word = np.uint64(todo), words[used]
            used += 1
            other = np.int64(word % bound)
            if word - np.uint64(other) > ones - (bound - np.uint64(1)):
                continue  # beyond the largest multiple of the bound
            todo -= 1
            items[start + todo], items[start + other] = items[start + other], items[start + todo]
        block += 1
        if block < blocks.size:
            todo = starts[blocks[block] + 1] - starts[blocks[block]]
    return block, todo
