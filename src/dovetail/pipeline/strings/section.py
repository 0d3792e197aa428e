"""The section [strings] of a configuration: the private column holds texts, and there is no list of categories."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dovetail.pipeline.config.sections import Section


class StringsSection(Section):
    """Which strings do many people hold? Disjoint groups of people are asked for one byte more each.

    `epsilon` and `delta` are of the whole search. `trust`: "shuffler", whose dummies hide exact counts, so that no
    string is found that nobody holds, or "local", every person's own report. `levels` bytes of a string are asked
    for, and `keep` beginnings go on to the next level.
    """

    epsilon: Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)]
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    trust: Literal["shuffler", "local"] = "shuffler"
    levels: Annotated[int, Field(ge=1, le=64)] = 8
    keep: Annotated[int, Field(ge=1, le=1024)] = 256

    def refuse_others(self, given: set[str], data: Any, *, release: bool) -> None:
        """ValueError for what does not go with strings."""
        for name in ("randomize", "shuffle", "promise", "estimate", "attack", "memoize"):
            if name in given:
                raise ValueError(f"[{name}] does not go with [strings], which says epsilon, delta and trust itself")
        for name in ("categories", "lower", "time", "public"):
            if getattr(data, name) not in (None, [], ()):
                raise ValueError(f"[data] {name} does not go with [strings]: remove one of them")
        if data.person is None:
            raise ValueError(
                "[strings] asks groups of people by a hash of their names: name their column as `person`"
            )
        if release and self.trust == "local":
            raise ValueError(
                'a release of strings needs [strings] trust = "shuffler": local noise finds strings that nobody holds'
            )
