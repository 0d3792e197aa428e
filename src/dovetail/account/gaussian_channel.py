"""Gaussian noise on a grid of an interval: reports that are clamped far outside make it a finite, pure channel."""

from __future__ import annotations

import math

import numpy as np

from dovetail.core.channel import DenseChannel
from dovetail.core.checks import positive, refuse, whole

REACH = 6.2  # standard deviations beyond the interval at which reports are clamped
TAIL = 40.0  # beyond so many, discrete Gaussian noise has less mass than a double tells from 0
MOST_STEPS = 64


def gaussian_channel(*, steps: int, sigma: float) -> DenseChannel:
    r"""Discrete Gaussian noise on the whole numbers, of values 0 .. m, clamped to [-w, m + w].

    .. math:: \Pr[y \mid x] \propto e^{-(y - x)^2 / (2 \sigma^2)}, \qquad w = \lceil 6.2\, \sigma \rceil

    For `amplify` and `compose`: clamping happens on the device, and every report has mass under every value. Its
    local epsilon is pure, and large. Shuffled among many people it promises about what Laplace noise of the same
    variance does for sigma = m, and more than that for a larger sigma.

    Parameters
    ----------
    steps : int, 1 .. 64
        m: the interval in grid steps.
    sigma : float, above 0 and at most 1,000, grid steps
        The parameter of the noise, about its standard deviation.

    Notes
    -----
    A law, not a sampler: noise must be drawn from it exactly (Canonne, Kamath, Steinke 2020), not from rounded
    floating-point normal numbers.

    Examples
    --------
    >>> from dovetail.account.amplify import amplify
    >>> noise = gaussian_channel(steps=8, sigma=8.0)
    >>> round(noise.epsilon, 2), round(amplify(noise, n=100_000, delta=1e-6).epsilon, 4)
    (6.84, 0.013)

    Source
    ------
    docs/theory/several-questions.md; Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy.
    """
    m, width = whole("steps", steps, least=1, most=MOST_STEPS), positive("sigma", sigma)
    if width > 1000.0:
        raise refuse("sigma", "above 0 and at most 1,000 grid steps", sigma)
    reach, far = math.ceil(REACH * width), math.ceil(TAIL * width) + 1
    noise = np.arange(-far, far + 1)
    masses = np.exp(-0.5 * (noise / width) ** 2)
    masses /= masses.sum()
    places = [np.clip(x + noise, -reach, m + reach) + reach for x in range(m + 1)]
    return DenseChannel(np.array([np.bincount(at, masses, m + 2 * reach + 1) for at in places]))
