"""Public fits of scikit-learn: one thread, so that sums have one order, and no warnings before our errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.core.extras import require


@contextmanager
def calm_fit() -> Iterator[None]:
    """Fit inside this; what matters of a fit that did not converge is its held-out score."""
    with warnings.catch_warnings(), require("threadpoolctl", extra="text").threadpool_limits(1):
        warnings.simplefilter("ignore")
        yield
