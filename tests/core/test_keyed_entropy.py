"""The words of a person are the same in any order, batch and attempt, and nobody else's."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from tests.randomize.chosen import FREQUENCY, NUMERIC, TABULATED
from tests.statistics import expect_broken, expect_law

from dovetail.core.discrete_noise import discrete_laplace
from dovetail.core.entropy import Entropy, KeyedEntropy, keyed_prints, purpose_key, system_entropy
from dovetail.core.errors import ParameterError
from dovetail.core.stages import Randomizer
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling import coins as chunks
from dovetail.randomize.sampling.coins import coins
from dovetail.shuffle.sampling.permutations import planar_laplace

KEY = bytes(range(32))
N = 3000
IDS = np.arange(N) * 7919 - 5_000_000
SOME = np.array([5, 2999, 17, 0, 2048, 2047, 1023])


def drawn_for(ids: np.ndarray) -> KeyedEntropy:
    return KeyedEntropy(KEY, ids)


# Published vectors: NIST AESAVS, ECBVarTxt256, key of zeros; the plaintext's last four bytes are the block number 0
@pytest.mark.parametrize(
    ("plain", "sealed"),
    [
        ("80000000000000000000000000000000", "ddc6bf790c15760d8d9aeb6f9a75fd4e"),
        ("c0000000000000000000000000000000", "0a6bdc6d4c1e6280301fd8e97ddbe601"),
    ],
)
def test_words_are_those_of_the_published_vectors(plain: str, sealed: str) -> None:
    ids = np.frombuffer(bytes.fromhex(plain)[:12], dtype=np.uint32).reshape(1, 3)
    assert KeyedEntropy(bytes(32), ids).words(2).tobytes().hex() == sealed


@pytest.mark.exhaust
def test_every_request_takes_the_next_blocks_of_each_row() -> None:
    cipher = Cipher(AES(KEY), ECB()).encryptor()
    stream = drawn_for(IDS)
    seen = [
        stream.words(3 * N).reshape(N, 3),
        stream.narrow(N, np.uint8).reshape(N, 1),
        stream.words(N).reshape(N, 1),
    ]
    for row in (0, 1, N - 1):
        block = [
            cipher.update(int(IDS[row]).to_bytes(8, "little", signed=True) + bytes(4) + number.to_bytes(4, "little"))
            for number in range(4)
        ]
        assert seen[0][row].tobytes() == (block[0] + block[1])[:24]
        assert seen[1][row].tobytes() == block[2][:1]
        assert seen[2][row].tobytes() == block[3][:8]


def values_of(randomizer: Randomizer, n: int) -> np.ndarray:
    if randomizer.question == "frequency":
        return np.arange(n) % randomizer.k  # type: ignore[attr-defined]
    return randomizer.lower + np.arange(n) % 2 * (randomizer.upper - randomizer.lower)  # type: ignore[attr-defined]


MANY: list[Randomizer] = [KRR(k=5000, epsilon=2.0), *FREQUENCY, *NUMERIC]


@pytest.mark.parametrize("randomizer", MANY, ids=repr)
def test_reports_belong_to_people_whatever_their_order(randomizer: Randomizer) -> None:
    values = values_of(randomizer, N)
    whole = randomizer.randomize(values, drawn_for(IDS))
    for rows in (np.arange(N)[::-1], np.argsort(IDS % 1009), SOME):
        np.testing.assert_array_equal(randomizer.randomize(values[rows], drawn_for(IDS[rows])), whole[rows])
        np.testing.assert_array_equal(randomizer.randomize(values[rows], drawn_for(IDS).at(rows)), whole[rows])
    part = slice(100, 200)
    np.testing.assert_array_equal(randomizer.randomize(values[part], drawn_for(IDS).at(part)), whole[part])
    device = randomizer.randomize(values, system_entropy())
    assert not np.array_equal(device, whole)


@pytest.mark.parametrize("randomizer", MANY, ids=repr)
def test_reports_do_not_depend_on_the_pieces_they_are_made_in(
    randomizer: Randomizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = values_of(randomizer, 300)
    whole = randomizer.randomize(values, drawn_for(IDS[:300]))
    monkeypatch.setattr(chunks.chunks, "__defaults__", (7,))
    np.testing.assert_array_equal(randomizer.randomize(values, drawn_for(IDS[:300])), whole)


@pytest.mark.parametrize("noise", [discrete_laplace, planar_laplace])
def test_noise_belongs_to_people_whatever_their_order(noise: object) -> None:
    whole = noise(Fraction(1, 50), N, drawn_for(IDS))  # type: ignore[operator]
    part = noise(Fraction(1, 50), SOME.size, drawn_for(IDS[SOME]))  # type: ignore[operator]
    np.testing.assert_array_equal(part, whole[SOME])


def test_a_row_that_ties_twice_draws_twice() -> None:
    mass = (200 << 56) + (1 << 55)
    whole = coins(mass, 1000 * 512, drawn_for(IDS[:1000])).reshape(1000, 512)
    part = coins(mass, 2 * 512, drawn_for(IDS[[7, 3]])).reshape(2, 512)
    np.testing.assert_array_equal(part, whole[[7, 3]])
    view = drawn_for(IDS).at(np.array([4, 4, 9, 4]))
    twice = view.words(4)
    assert np.unique(np.concatenate([twice, view.words(4)])).size == 8
    assert twice[2] == drawn_for(IDS[[9]]).words(1)[0]


def test_numbers_below_a_bound_are_redrawn_for_their_own_row() -> None:
    bound = 3 << 61  # a quarter of the words is late
    whole = drawn_for(IDS).below(bound, 2 * N).reshape(N, 2)
    np.testing.assert_array_equal(drawn_for(IDS[SOME]).below(bound, 2 * SOME.size).reshape(-1, 2), whole[SOME])
    expect_law(np.bincount(whole.reshape(-1) >> 61, minlength=3), np.full(3, 1 / 3))


@pytest.mark.parametrize("randomizer", TABULATED, ids=repr)
def test_keyed_reports_have_the_law_of_the_channel(randomizer: KRR) -> None:
    law = randomizer.channel().matrix()
    reports = randomizer.randomize(np.zeros(100_000, np.int64), drawn_for(np.arange(100_000)))
    counts = np.bincount(randomizer.columns(reports), minlength=law.shape[1])
    expect_law(counts, law[0])
    expect_broken(counts, law[-1])


@pytest.mark.exhaust
def test_orders_by_keyed_prints_are_uniform() -> None:
    keys = [keyed_prints(purpose_key(n.to_bytes(32, "big"), "order"), np.arange(4)) for n in range(6000)]
    order = np.array([np.lexsort((key[:, 1], key[:, 0])) for key in keys]) @ np.array([64, 16, 4, 1])
    counts = np.unique(order, return_counts=True)[1]
    expect_law(counts, np.full(24, 1 / 24))
    expect_broken(np.array([*(counts[:12] * 2), *np.zeros(12)]).astype(int), np.full(24, 1 / 24))


def test_words_of_other_purposes_rows_and_requests_are_others() -> None:
    one, two = (KeyedEntropy(purpose_key(KEY, name), IDS) for name in ("order", "randomize krr"))
    words = np.concatenate([one.words(2 * N), two.words(2 * N), one.words(N), one.at(SOME).words(SOME.size)])
    assert np.unique(words).size == words.size
    for byte in words.view(np.uint8).reshape(-1, 8).T:
        expect_law(np.bincount(byte, minlength=256), np.full(256, 1 / 256))


def test_wide_ids_are_told_apart_by_their_upper_words() -> None:
    ids = np.zeros((2, 3), dtype=np.uint32)
    ids[1, 2] = 1
    first, second = KeyedEntropy(KEY, ids).words(2)
    assert first != second and first == KeyedEntropy(KEY, np.array([0])).words(1)[0]


def test_a_key_is_mute_and_never_pickled() -> None:
    stream: Entropy = drawn_for(IDS)
    assert repr(stream) == "KeyedEntropy of 3,000 rows" and stream.provenance == "device"
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(stream)


def test_what_no_stream_per_row_can_give_is_refused() -> None:
    for refused in (lambda s: s.words(N + 1), lambda s: s.permutation(N), lambda s: s.at(SOME[:0]).words(1)):
        with pytest.raises(ParameterError, match="`count` must be a multiple of the"):
            refused(drawn_for(IDS))
    assert drawn_for(IDS[:0]).words(0).size == 0
    with pytest.raises(ParameterError, match="`count`"):
        drawn_for(IDS[:1]).words(-1)
    for key in (bytes(16), "0" * 32):
        with pytest.raises(ParameterError, match="`key` must be 32 bytes"):
            KeyedEntropy(key, IDS)  # type: ignore[arg-type]
    for ids in (IDS.astype(np.int32), IDS.reshape(2, -1), IDS.astype(float)):
        with pytest.raises(ParameterError, match="`ids` must be"):
            KeyedEntropy(KEY, ids)


def test_a_row_that_has_used_up_its_blocks_is_refused() -> None:
    stream = drawn_for(IDS[:2])
    stream._next[:] += np.uint64(((1 << 32) - 3) << 32)
    stream.words(2)
    with pytest.raises(ParameterError, match="all 2\\^32 blocks"):
        stream.words(6 * 2)
