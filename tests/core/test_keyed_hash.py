"""Many keyed hashes at once are those of the standard library."""

from hashlib import blake2b

import numpy as np
import pytest

from dovetail.core.keyed_hash import keyed_hashes


@pytest.mark.parametrize(("key", "size"), [(bytes(range(32)), 8), (b"k" * 64, 12), (b"short", 64)])
def test_hashes_are_those_of_the_standard_library(key: bytes, size: int) -> None:
    texts = [
        b"",
        *(b"a" * (i % 129) for i in range(600)),
        b"5.0",
        "Zoë".encode(),
        b"x" * 127,
        b"y" * 128,
        b"z" * 129,
        b"",
        b"w" * 1000,
    ]
    ends = np.cumsum([len(text) for text in texts])
    found = keyed_hashes(np.frombuffer(b"".join(texts), np.uint8), ends, key=key, size=size)
    assert [row.tobytes() for row in found] == [blake2b(text, key=key, digest_size=size).digest() for text in texts]
