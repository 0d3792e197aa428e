r"""One of many questions alike, answered by k-ary response: as exposed as one question with that response.

Where the two values differ in every block the ratios are those of k-ary response, whatever block was drawn. Where
they agree in a block both ratios are Z_a there, and

.. math:: \{(1 - E)\, p, \; 1 - E\} \text{ lies between } p - E \text{ and } 1 - E p, \qquad
          (1 - E)\, p + (1 - E) = (p - E) + (1 - E p)

so they are below in convex order.
"""

from __future__ import annotations

import numpy as np

from dovetail.account.blanket.declared_law import DeclaredLaw
from dovetail.account.blanket.privacy_blanket import BlanketLaw
from dovetail.account.composition.questions import SampledBlock
from dovetail.account.everybody.exposure import Exposure
from dovetail.account.mechanism_law import attack_dataset
from dovetail.account.mechanisms.krr import krr_exposures, krr_law
from dovetail.core.channel import KRRChannel
from dovetail.randomize.krr import KRR


def sampled_law(sampled: SampledBlock) -> BlanketLaw:
    """That of k-ary response."""
    return krr_law(_channel(sampled))


def sampled_dataset(sampled: SampledBlock) -> BlanketLaw:
    """Everybody else holds the same bad symbol in every block."""
    return attack_dataset(sampled.parts[0])


def sampled_exposures(sampled: SampledBlock) -> list[Exposure]:
    r"""Types of blocks in which the values differ, and of those in which they agree.

    Another person's transform is the mean over blocks of those of her types, and |.|^(n - 1) is convex: so the worst
    type in every block bounds all. M_0 is largest where the values differ, by convex order.
    """
    [differ] = krr_exposures(_channel(sampled))
    mu, own = (np.concatenate([part] * 2) for part in (differ.mu, differ.own))
    first = np.concatenate([differ.first, differ.second])  # all symbols are alike: any one may be held twice
    second = np.concatenate([differ.second, differ.second])
    return [Exposure(mu, first, second, own)]


def _channel(sampled: SampledBlock) -> KRRChannel:
    [response] = sampled.parts
    assert isinstance(response, KRR)  # it refuses others
    return response.channel()


LAW = DeclaredLaw(
    SampledBlock,
    "one block, by k-ary randomized response",
    dataset=sampled_dataset,
    upper=sampled_law,
    exposures=sampled_exposures,
)
