"""Eight labels on the plane, nested in four crescents and two clusters, for studies of what a shuffle leaves."""

from __future__ import annotations

import numpy as np
import polars as pl

from dovetail.core.checks import positive, whole
from dovetail.core.entropy import Entropy, entropy_or_system

COLOURS = (
    "light blue", "dark blue", "light green", "dark green", "light red", "dark red", "light orange", "dark orange",
)  # fmt: skip

APART = 5.0  # between the centres of the clusters, in radii of a crescent


def nested_crescents(n: int = 20_000, *, noise: float = 0.1, rng: Entropy | None = None) -> pl.DataFrame:
    r"""Points whose eight labels are told apart at three scales.

    .. math:: (x, y) = 5\,c + \begin{cases} (\cos\phi, \sin\phi) & \text{first crescent} \\
              (1 - \cos\phi, \tfrac12 - \sin\phi) & \text{second} \end{cases} + \text{noise}, \qquad
              \phi \sim U\left(\tfrac{\pi}{2} h, \tfrac{\pi}{2} (h + 1)\right)

    with label = 4 c + 2 crescent + h: the cluster c (cool or warm), the crescent within it (blue or green, red or
    orange) and the half of the crescent h (light or dark). Labels are as equally frequent as n allows, in random
    order; the noise is normal, along both axes.

    Private: `label` (0..7, see COLOURS). Public: `x`, `y` (in radii of a crescent).

    Parameters
    ----------
    n : int, at least 1
    noise : float, above 0
        Standard deviation; at 0.1 a few points in a hundred lie beyond the border of their half or crescent.

    Raises
    ------
    ParameterError
        For `n` or `noise` outside these ranges.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> points = nested_crescents(800, rng=simulation(1))
    >>> points.columns, points["label"].value_counts()["count"].unique().to_list()
    (['x', 'y', 'label'], [100])

    Source
    ------
    Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, ICLR, Figure 1 and section 5
    (Syn), which show the shapes; all numbers are ours.
    """
    rng = entropy_or_system(rng)
    n, noise = whole("n", n, least=1), positive("noise", noise)
    label = rng.permutation(n) % 8
    cluster, crescent, half = label // 4, label // 2 % 2, label % 2
    luck = np.random.default_rng(rng.words(4))
    phi = np.pi / 2 * (half + luck.random(n))
    x = np.where(crescent == 0, np.cos(phi), 1.0 - np.cos(phi)) + APART * cluster
    y = np.where(crescent == 0, np.sin(phi), 0.5 - np.sin(phi))
    blur = luck.normal(0.0, noise, (2, n))
    return pl.DataFrame({"x": x + blur[0], "y": y + blur[1], "label": label})
