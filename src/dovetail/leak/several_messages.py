"""Vulnerability where each person sends several messages and all messages of all people are shuffled together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import factorial, prod

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import convolve

from dovetail.core.channel import Channel
from dovetail.core.checks import refuse, whole
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals
from dovetail.leak.qif.inputs import distribution

MOST_CELLS = {2: 20_001}  # counts that are told apart; for more than two kinds of messages:
MOST_OTHERWISE = 4_000


@dataclass(frozen=True)
class MessageVulnerability:
    """Chances of guessing one person's value in one try.

    Parameters
    ----------
    prior : float
        Before anything is seen.
    unshuffled : float
        After seeing which messages are hers.
    shuffled : float
        After seeing all messages of all people in random order.
    error_bound : float
        Rounding of either.

    Raises
    ------
    UnsupportedError
        Nowhere by itself; see `message_vulnerability`.

    Examples
    --------
    >>> MessageVulnerability(prior=0.5, unshuffled=0.75, shuffled=0.625, error_bound=1e-15).shuffled
    0.625
    """

    prior: float
    unshuffled: float
    shuffled: float
    error_bound: float


def message_vulnerability(
    channel: Channel, *, n: int, messages: int, prior: ArrayLike | None = None
) -> MessageVulnerability:
    r"""Guess one value where each of n people sends m independent messages about her own through one channel.

    .. math:: V = \sum_h \max_x \pi(x) \sum_{g \le h} \Pr[g \mid x] \Pr[h - g], \qquad
              \Pr[g \mid x] = \binom{m}{g} \prod_y C_{x y}^{g_y}

    with h the histogram of all n m messages, g that of her own, and the others' values independent draws from the
    prior. A shuffle of messages is at least as good as one of whole reports: it also cuts what the messages of one
    person say together. With one message this is `vulnerability`.

    Parameters
    ----------
    channel : Channel
        Of one message, with two kinds of messages or few.
    n : int, at least 1
    messages : int, at least 1
        m, of each person. Each costs her the channel's epsilon: together m times that, locally.
    prior : float array (k,), optional
        Default uniform.

    Raises
    ------
    UnsupportedError
        For more histograms than are summed: n m up to 20,000 with two kinds of messages, few people with more.

    Examples
    --------
    >>> from dovetail.core.channel import KRRChannel
    >>> one = message_vulnerability(KRRChannel.of(2, 0.8), n=50, messages=1)
    >>> two = message_vulnerability(KRRChannel.of(2, 2 / 3), n=50, messages=2)  # the same epsilon for both together
    >>> round(one.unshuffled, 3), round(one.shuffled, 4), round(two.unshuffled, 3), round(two.shuffled, 4)
    (0.8, 0.5337, 0.667, 0.5252)

    Source
    ------
    Asked by Jurado, Gonze, Alvim, Palamidessi (2023), CSF, section VII; the sum is ours.
    """
    n, messages = whole("n", n, least=1), whole("messages", messages, least=1)
    rows = channel.matrix()
    kinds = rows.shape[1]
    side = n * messages + 1
    if side ** (kinds - 1) > MOST_CELLS.get(kinds, MOST_OTHERWISE):
        raise UnsupportedError(
            f"{n:,} people with {messages:,} messages of {kinds} kinds have more histograms than are summed; "
            "ask for fewer people or messages, or with one message for `vulnerability`."
        )
    given = np.full(len(rows), 1.0 / len(rows)) if prior is None else prior
    pi = np.asarray(distribution("prior", given), dtype=np.float64)
    if len(pi) != len(rows):
        raise refuse("prior", f"{len(rows)} probabilities, one for each value", len(pi))
    own = np.array([_histograms(row, messages) for row in rows])
    joint = pi.reshape(-1, *[1] * (kinds - 1)) * own
    others = _power(joint.sum(axis=0), n - 1)
    seen = np.array([convolve(one, others, method="direct") for one in joint])
    error = 4.0 * n * seen[0].size * float(np.finfo(np.float64).eps)  # of sums of products, none of them negative
    return MessageVulnerability(
        float(pi.max()),
        float(joint.max(axis=0).sum()),
        min(1.0, float(seen.max(axis=0).sum()) * (1.0 + error)),
        error,
    )


def _histograms(row: Reals, messages: int) -> Reals:
    """Chances of each count of all kinds of messages but the last, for one value."""
    kinds = len(row)
    found = np.zeros((messages + 1,) * (kinds - 1))
    for counts in product(range(messages + 1), repeat=kinds - 1):
        last = messages - sum(counts)
        if last >= 0:
            ways = factorial(messages) // (prod(map(factorial, counts)) * factorial(last))
            found[counts] = ways * float(np.prod(row ** np.array([*counts, last])))
    return found


def _power(law: Reals, times: int) -> Reals:
    """The law of a sum of so many draws, by squaring."""
    result = np.ones((1,) * law.ndim)
    while times:
        if times & 1:
            result = convolve(result, law, method="direct")
        times >>= 1
        if times:
            law = convolve(law, law, method="direct")
    return np.asarray(result)
