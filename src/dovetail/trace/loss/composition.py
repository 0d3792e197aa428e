r"""Several releases about one person: stack the traces, take their joint prior, and the noise block by block.

The information of all of them is J of the stack, exactly. Losses of two releases of one trace may exceed their sum:
what one leaves open the other may tell, so nothing is added here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from dovetail.trace.kernels.kernel import Floats, Kernel
from dovetail.trace.loss.conditional import condition
from dovetail.trace.loss.information import Information, information


@dataclass(frozen=True, eq=False)
class PastRelease:
    """What was released before: when, and with which noise.

    Parameters
    ----------
    times : float array (n,), seconds
    noise : float array (n, n)
        Covariance of the noise, in units of the prior's variance.
    """

    times: Floats
    noise: Floats


def composed(
    kernel: Kernel, times: Floats, noise: Floats, secret: Sequence[int], past: Sequence[PastRelease]
) -> Information:
    """Information of a release together with earlier ones of the same person, about a secret of the new one."""
    stamps = np.concatenate([times, *(one.times for one in past)])
    together = block_diag(noise, *(one.noise for one in past))
    return information(condition(kernel.matrix(stamps), secret), together)
