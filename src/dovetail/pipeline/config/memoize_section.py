"""The section [memoize] of a configuration: one permanent answer for all rounds, for values that never change."""

from __future__ import annotations

from typing import Any

from dovetail.account.closed_form.memoization import CHANGES, WORD
from dovetail.pipeline.config.sections import Section


class MemoizeSection(Section):
    """Everybody draws one answer and sends it in every round. All rounds together promise what one does.

    `time` names the column of rounds. `constant_values` = true is your word that nobody's value changes over them;
    without it nothing can be promised.
    """

    time: str
    constant_values: bool = False

    def refuse_others(self, config: Any) -> None:
        """ValueError where the assumption is not made, and for what would break it."""
        if not self.constant_values:
            raise ValueError(CHANGES.replace(WORD, "[memoize] takes `constant_values` = true"))
        if config.data.person is None:
            raise ValueError("[memoize] follows people over rounds: name their column as `person`")
        shuffle = config.shuffle
        for place, given in {
            "[data] time": config.data.time is not None,
            '[promise] trust = "shuffler"': config.promise.trust != "local",
            "[promise] cap": config.promise.cap is not None,
            "[shuffle] compare": bool(shuffle.compare),
            "[shuffle] alpha": shuffle.alpha is not None,
            f"[data] the column of rounds {self.time!r} as public, private or person": self.time
            in (config.data.private, config.data.person, *config.data.public),
        }.items():
            if given:
                raise ValueError(
                    f"{place} does not go with [memoize]: only rounds that are mixed evenly, without fresh noise, "
                    "are post-processing of permanent answers"
                )
