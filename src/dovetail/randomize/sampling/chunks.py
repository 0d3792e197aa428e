"""Work in pieces that stay in the cache: page faults of big temporaries cost more than the keystream."""

from collections.abc import Iterator

CHUNK = 1 << 17  # values, so that words and reports of one piece fit the second-level cache


def chunks(n: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices that cover 0..n-1 in order.

    >>> list(chunks(5, size=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
