"""Which lens applies to which shuffler, and what it says: central, order, leakage.

Amplification and shuffled leakage hold for a uniform shuffle of exchangeable reports, and for nothing else.
"""

from __future__ import annotations

import numpy as np

from dovetail.account.amplify import amplify
from dovetail.core.channel import KRRChannel
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import Randomizer, Shuffler
from dovetail.leak.vulnerability import Vulnerability, vulnerability
from dovetail.randomize.krr import KRR
from dovetail.report.document import Leakage, Missing, Order
from dovetail.shuffle.uniform import Identity, Uniform, WithinGroups

_NOT_SHUFFLED = "nothing is shuffled: the local guarantee is all there is"
_NOT_UNIFORM = "amplification and shuffled leakage are proven for uniform shuffles only; this order is released"


def smallest_batch(shuffler: Shuffler) -> int | Missing:
    """Number of reports that are shuffled uniformly with each person's own, in the worst case."""
    if isinstance(shuffler, Uniform):
        return shuffler.n
    if isinstance(shuffler, WithinGroups):
        sizes = shuffler.groups.sizes
        alone = shuffler.n > int(sizes.sum())  # people outside every group keep their place
        return 1 if alone else int(sizes.min())
    return Missing(_NOT_SHUFFLED if isinstance(shuffler, Identity) else _NOT_UNIFORM)


def central_lens(
    randomizer: Randomizer, shuffler: Shuffler, *, delta: float, honest: int | None, provenance: str
) -> CentralDP | Missing:
    """(epsilon, delta) after shuffling; groups that are shuffled by themselves are quoted at the smallest one.

    With fewer honest people than reports, all the others are assumed to sit in the smallest group.
    """
    batch = smallest_batch(shuffler)
    if isinstance(batch, Missing):
        return batch
    absent = 0 if honest is None else max(0, shuffler.n - honest)
    if batch == 1:
        return Missing("somebody is shuffled with nobody else: for that person the local guarantee is all there is")
    return amplify(randomizer, n=batch, delta=delta, honest=max(1, batch - absent)).drawn_from(provenance)


def order_lens(shuffler: Shuffler, *, provenance: str) -> Order:
    """The order guarantee and what was fitted."""
    summary = shuffler.summary()
    theta_n = summary.get("theta_n")
    reason = "this shuffler has no dispersion parameter theta"
    guarantee = shuffler.guarantee.drawn_from(provenance)
    return Order(
        guarantee,
        shuffler.name,
        Missing(reason) if theta_n is None else float(theta_n),
        summary,
    )


def leakage_lens(randomizer: Randomizer, shuffler: Shuffler) -> Leakage | Missing:
    """Exact Bayes vulnerability of one person's value under the uniform prior."""
    if not isinstance(randomizer, KRR):
        return Missing(f"exact leakage is available for krr, not yet for {randomizer.name}")
    channel = randomizer.channel()
    batch = smallest_batch(shuffler)
    if isinstance(batch, Missing):
        alone = vulnerability(channel, n=1)
        return Leakage(
            prior=alone.prior,
            randomized=alone.randomized,
            shuffled=batch,
            randomized_shuffled=batch,
            error_bound=alone.error_bound,
            method=alone.method,
            rounding=alone.rounding,
            source=alone.source,
            curve=batch,
        )
    try:
        here = vulnerability(channel, n=batch)
    except UnsupportedError as error:
        return Missing(str(error))
    return Leakage(
        prior=here.prior,
        randomized=here.randomized,
        shuffled=here.shuffled,
        randomized_shuffled=here.randomized_shuffled,
        error_bound=here.error_bound,
        method=here.method,
        rounding=here.rounding,
        source=here.source,
        curve=_curve(channel, here, batch),
    )


def _curve(channel: KRRChannel, here: Vulnerability, n: int) -> dict[str, list[float]]:
    """The vulnerabilities of smaller collections, for the drawing; ends with this one."""
    sizes = [int(size) for size in np.unique(np.geomspace(1, n, num=13).round())[:-1]]
    points = [vulnerability(channel, n=size) for size in sizes] + [here]
    return {
        "n": [float(size) for size in (*sizes, n)],
        "shuffled": [point.shuffled for point in points],
        "randomized_shuffled": [point.randomized_shuffled for point in points],
    }
