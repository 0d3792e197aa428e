r"""The Mallows law on a line of components of atoms.

.. math:: \Pr[\kappa] = \prod_c \frac{e^{-\theta_c\, \mathrm{inv}_c(w)}}{\psi_{n_c}(\theta_c)}
          \prod_{a \subseteq c} \frac{\psi_{m_a}(\theta_c)}{m_a!}, \qquad w_k = \text{atom of } \kappa(k)

The word w of atoms decides: inv(kappa) counts the inversions of w plus those inside atoms, so a Mallows permutation
whose values are then permuted uniformly inside each atom has this law. A component with theta = 0 is shuffled
uniformly.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from dovetail.core.entropy import Entropy, Permutation
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.fitting.mixing import Marginals, mallows_marginals
from dovetail.shuffle.sampling.lehmer_code import BlockStarts, Thetas, draw_lehmer_code
from dovetail.shuffle.sampling.lehmer_decode import decode_lehmer_code
from dovetail.shuffle.sampling.mallows_distribution import inversions, log_normalizer
from dovetail.shuffle.sampling.within_blocks import permute_within_blocks


def draw(line: PartitionedOrder, thetas: Thetas, rng: Entropy) -> Permutation:
    """kappa (n,): the place from which each place of the line receives its report."""
    kappa = decode_lehmer_code(draw_lehmer_code(line.component_starts, thetas, rng), line.component_starts, thetas)
    free = exchangeable(line, thetas)
    return kappa if free.size == line.n + 1 else permute_within_blocks(free, rng)[kappa]


def exchangeable(line: PartitionedOrder, thetas: Thetas) -> BlockStarts:
    """Blocks inside which the order is uniform: atoms, and whole components with theta = 0."""
    apart = np.append(thetas > 0.0, True)[np.append(line.component[line.atom_starts[:-1]], thetas.size)]
    return np.asarray(line.atom_starts[apart | np.isin(line.atom_starts, line.component_starts, assume_unique=True)])


def log_weight(line: PartitionedOrder, thetas: Thetas, kappa: Permutation) -> float:
    """Log probability of kappa; minus infinity when somebody leaves their component."""
    if (line.component[kappa] != line.component).any():
        return -math.inf
    total, word = 0.0, line.atom[kappa]
    cells = np.searchsorted(line.atom_starts, line.component_starts)
    for part in np.flatnonzero(line.sizes > 1):
        theta, here = float(thetas[part]), slice(line.component_starts[part], line.component_starts[part + 1])
        total -= theta * inversions(word[here]) + log_normalizer(int(line.sizes[part]), theta)
        for m in np.diff(line.atom_starts[cells[part] : cells[part + 1] + 1]).tolist():
            total += log_normalizer(m, theta) - float(gammaln(m + 1.0)) if m > 1 else 0.0
    return total


def marginals_on_components(line: PartitionedOrder, thetas: Thetas) -> Marginals:
    """P[i, j] = Pr[kappa(i) = j], exactly, with the mean over each atom in place of its columns; O(sum of n_c^3)."""
    result = np.zeros((line.n, line.n))
    for part, theta in enumerate(thetas):
        here = slice(line.component_starts[part], line.component_starts[part + 1])
        result[here, here] = mallows_marginals(int(line.sizes[part]), float(theta))
    sizes = np.diff(line.atom_starts)
    return np.repeat(np.add.reduceat(result, line.atom_starts[:-1], axis=1) / sizes, sizes, axis=1)
