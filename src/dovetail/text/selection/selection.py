"""What every selection rule offers: an exact draw, and the law it draws from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dovetail.core.entropy import Entropy
from dovetail.text.selection.integer_budget import IntegerBudget, Levels


class Selection(ABC):
    """Draws one of m candidates, likelier the fewer levels it lies below the best.

    Laws: adding a constant to all utilities changes nothing; if levels move apart by at most `budget.steps`, every
    candidate's probability changes by a factor of at most e^epsilon.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    composes_as: ClassVar[str]  # what several releases of one document cost

    @abstractmethod
    def draw(self, levels: Levels, budget: IntegerBudget, rng: Entropy) -> int:
        """The index of the selected candidate; exact, by whole numbers."""

    @abstractmethod
    def probabilities(self, levels: Levels, budget: IntegerBudget) -> NDArray[np.float64]:
        """The law (m,) of `draw`, in floating point, for tests and plans."""
