"""Means of numbers and of their products, each rounded to a grid of its own; least squares with the noise in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import final

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.randomize.sampling.open_reports import OpenNumbers

Reals = NDArray[np.float64]
Symbols = NDArray[np.int64]


@final
@dataclass(frozen=True)
class Products:
    r"""The means of u_i, u_i^2 and u_i u_j of numbers u in [-1/2, 1/2], but for the square of the first one.

    A person works each out by herself and rounds it at random to one of `points` of an even grid on its range, right
    on average: [-1/2, 1/2], [0, 1/4] and [-1/4, 1/4]. It is a symbol of its own. Means of them are unbiased, and

    .. math:: \mathrm{Var} \le \mathrm{noise} + \frac{h^2}{4 n}, \qquad h = \frac{\mathrm{range}}{\mathrm{points} - 1}

    whatever people hold.

    Parameters
    ----------
    numbers : int, at least 2
        The first one is explained by the others.
    points : int, at least 2

    Examples
    --------
    >>> Products(2, 3).pairs, Products(2, 3).size
    (((0, 2), (0, 1), (1, 1), (1, 2)), 12)
    """

    numbers: int
    points: int

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Factors of each product; `numbers` stands for 1."""
        found = combinations_with_replacement(range(self.numbers + 1), 2)
        return tuple(
            (i, j)
            for i, j in sorted(found, key=lambda pair: (pair[0], pair[1] != self.numbers or pair[0] > 0))
            if i < self.numbers and (i, j) != (0, 0)
        )

    @property
    def size(self) -> int:
        """How many symbols there are in all."""
        return len(self.pairs) * self.points

    @cached_property
    def _grids(self) -> tuple[OpenNumbers, ...]:
        ends = [(-0.5, 0.5) if j == self.numbers else (0.0, 0.25) if i == j else (-0.25, 0.25) for i, j in self.pairs]
        return tuple(OpenNumbers(low, high, self.points) for low, high in ends)

    def symbols(self, centred: Reals, rng: Entropy) -> Symbols:
        """The symbols (n, products) of people with these numbers (n, numbers) in [-1/2, 1/2]."""
        factors = np.column_stack([centred, np.ones(len(centred))])
        products = [factors[:, i] * factors[:, j] for i, j in self.pairs]
        return np.column_stack(
            [
                place * self.points + grid.randomize(np.clip(one, grid.lower, grid.upper), rng)
                for place, (one, grid) in enumerate(zip(products, self._grids, strict=True))
            ]
        )

    @property
    def steps(self) -> Reals:
        """What each symbol of a product stands for (products, points), from the middle of its range.

        The symbols of one product sum to n, which is known: nothing is lost by measuring from the middle.
        """
        return np.outer([grid.step for grid in self._grids], np.arange(self.points) - 0.5 * (self.points - 1))

    @cached_property
    def weights(self) -> Reals:
        """The weight of each symbol in each mean (products, size)."""
        found = np.zeros((len(self.pairs), self.size))
        for place, own in enumerate(self.steps):
            found[place, place * self.points : (place + 1) * self.points] = own
        return found

    @property
    def middles(self) -> Reals:
        """Of the ranges."""
        return np.array([0.5 * (grid.lower + grid.upper) for grid in self._grids])

    @property
    def rounding(self) -> Reals:
        """The largest variance that rounding adds to a product of one person."""
        return np.array([grid.step**2 / 4.0 for grid in self._grids])

    @property
    def _which(self) -> NDArray[np.int64]:
        """The product in each place of A; -1 where 1 meets 1."""
        rows = [self.numbers, *range(1, self.numbers)]
        place = {pair: here for here, pair in enumerate(self.pairs)}
        return np.array([[place.get((min(i, j), max(i, j)), -1) for j in rows] for i in rows])

    def refused(self, variances: Reals) -> float:
        """The least eigenvalue of A up to which noise of these variances in the products could make A singular."""
        return 2.0 * math.sqrt(float(np.where(self._which < 0, 0.0, variances[self._which]).sum()))

    def least_squares(self, means: Reals, covariance: Reals, *, power: float = 1.0) -> tuple[Reals, Reals]:
        r"""Coefficients (1 and the other numbers) of the first number, and their covariance by the delta method.

        .. math:: \hat\beta = A^{-1} b, \qquad d\beta = A^{-1} (db - dA\, \beta)

        Parameters
        ----------
        power : float
            Of the number of people with which noise in the means falls: 1, or 1/2 where a part of them is counted.

        Raises
        ------
        UnsupportedError
            Where the noise alone could make A singular: its least eigenvalue is at most two standard deviations of
            the noise in Frobenius' norm, which moves no eigenvalue by more (Weyl).
        """
        many, which = self.numbers, self._which  # 1, and numbers 1 .. numbers - 1
        target = np.array([self.pairs.index((0, j)) for j in (many, *range(1, many))])
        a, b = np.where(which < 0, 1.0, means[which]), means[target]
        least, doubt = float(np.linalg.eigvalsh(a)[0]), self.refused(np.diag(covariance))
        if least <= doubt:
            more = math.ceil(2.0 * (doubt / least) ** (1.0 / power)) if least > 0.0 else 0
            times = f"about {more:,} times" if more else "many times"
            raise UnsupportedError(
                "the noise alone could make these numbers linearly dependent, so no coefficients are quoted: ask "
                f"{times} as many people, fewer numbers, or in narrower ranges."
            )
        inverse = np.linalg.inv(a)
        beta = inverse @ b
        moved = np.zeros((many, len(self.pairs)))  # db - dA beta, by each mean
        for row in range(many):
            moved[row, target[row]] += 1.0
            for column in range(many):
                if which[row, column] >= 0:
                    moved[row, which[row, column]] -= beta[column]
        by = inverse @ moved
        return beta, by @ covariance @ by.T
