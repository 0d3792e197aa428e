"""A random forest that has learned how devices behave and guesses who sent each report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dovetail.attack.reidentify.records import Devices, Records
from dovetail.core.checks import refuse, whole
from dovetail.core.entropy import Entropy, entropy_or_system
from dovetail.core.extras import require


@dataclass(frozen=True, eq=False)
class ForestAttack:
    """An attacker who learned from non-anonymous history which device behaves how.

    Parameters
    ----------
    features : tuple of str
        What it looks at.
    n : int
        Devices that it knows.
    forest : fitted scikit-learn classifier

    Raises
    ------
    MissingExtraError
        Without scikit-learn.
    ParameterError
        For records with other features than those that it learned from.

    Notes
    -----
    Needs scikit-learn. Trees grow to the end: memory is about 100 bytes per training record and tree.

    Examples
    --------
    >>> from dovetail.core.entropy import simulation
    >>> speeds = np.repeat([[10.0, 20.0, 30.0]], 20, axis=0)  # 20 rounds of three devices
    >>> history = Records.of_rounds(speeds)
    >>> ForestAttack.learn(history, trees=5, rng=simulation(1)).guess(history)[:3].tolist()
    [0, 1, 2]

    Source
    ------
    Wang, Tao, Zou, RASE, section V-A; Breiman (2001), Random Forests, Machine Learning 45.
    """

    features: tuple[str, ...]
    n: int
    forest: Any = field(repr=False)

    @classmethod
    def learn(cls, history: Records, *, trees: int = 100, rng: Entropy | None = None) -> ForestAttack:
        """Train on records whose senders are known; `rng` seeds the forest."""
        rng = entropy_or_system(rng)
        ensemble = require("sklearn.ensemble", extra="attack")
        seed = int(rng.below(1 << 31, 1)[0])
        forest = ensemble.RandomForestClassifier(whole("trees", trees, least=1), random_state=seed)
        forest.fit(history.matrix, history.devices)
        return cls(tuple(history.features), int(history.devices.max()) + 1, forest)

    def guess(self, records: Records) -> Devices:
        """The likeliest sender of each record (m,)."""
        if tuple(records.features) != self.features:
            raise refuse("records", f"records with the features {self.features}", tuple(records.features))
        return np.asarray(self.forest.predict(records.matrix), dtype=np.int64)
