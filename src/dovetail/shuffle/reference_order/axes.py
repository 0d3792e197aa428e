"""Orders from numbers about people: sorted along an axis of public points, or along a vibration of the network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

from dovetail.core.entropy import Permutation
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.groups.neighbours import Points

MOST_FIEDLER = 2000  # people in groups; beyond that eigenvectors take longer than they are worth

_DENSE = 200  # below this size the full decomposition is the fastest


def sort_along_axis(points: Points, axis: int) -> Permutation:
    """Everybody sorted by one coordinate, ties by the others in turn, then by index."""
    columns = np.roll(points, -axis, axis=1)
    return np.lexsort(columns.T[::-1])


def sort_along_principal_axis(points: Points) -> Permutation:
    """Everybody sorted along the direction in which the points spread the most."""
    middle = points - points.mean(axis=0)
    direction = np.linalg.eigh(middle.T @ middle)[1][:, -1]
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    return np.argsort(middle @ direction, kind="stable")


def fiedler_order(groups: Groups, components: NDArray[np.int64]) -> Permutation:
    r"""Each component sorted by the second eigenvector of its Laplacian.

    .. math:: L = D - A, \qquad A_{ij} = |\{G : i, j \in G\}|

    The vector is found from a fixed start, and its sign makes its largest entry positive, so the order is the same
    every time. Components come by number, people in no group last.

    Source
    ------
    Fiedler (1975), A property of eigenvectors of nonnegative symmetric matrices and its application to graph theory;
    Barnard, Pothen, Simon (1995), A spectral algorithm for envelope reduction of sparse matrices.
    """
    flat = groups.rows.materialize()
    ends = np.append(0, flat.stops)
    member = csr_array((np.ones(flat.people.size), flat.people, ends), shape=(len(flat), groups.n))
    weights = csr_array(member.T @ member)
    key = np.zeros(groups.n)
    for part in range(int(components.max(initial=-1)) + 1):
        people = np.flatnonzero(components == part)
        key[people] = _second_vector(weights[people][:, people])
    outside = np.asarray(components < 0)
    return np.lexsort((key, components, outside))


def _second_vector(weights: csr_array) -> NDArray[np.float64]:
    laplacian = diags_array(np.asarray(weights.sum(axis=1)).reshape(-1)) - weights
    size = laplacian.shape[0]
    if size <= _DENSE:
        vector = np.linalg.eigh(laplacian.toarray())[1][:, min(1, size - 1)]
    else:
        start = np.cos(np.arange(size))  # anything that is fixed and not constant
        shift = -1e-4 * float(laplacian.diagonal().mean())  # below 0, so that the matrix can be inverted
        values, vectors = eigsh(laplacian.tocsc(), k=2, sigma=shift, v0=start)
        vector = vectors[:, np.argmax(values)]
    vector = np.round(vector, 12)  # equal people stay equal, so ties go by index
    return np.asarray(vector * np.sign(vector[np.argmax(np.abs(vector))]))
