"""The section [vector] of a configuration: the private column holds arrays, and their mean is asked for."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, SerializeAsAny
from pydantic_core import PydanticCustomError

from dovetail.core.errors import ParameterError
from dovetail.pipeline.config.sections import Section, with_settings
from dovetail.randomize.vectors.shared.vector_randomizer import VECTOR_RANDOMIZERS, VectorRandomizer

DEFAULT = "closest_direction"


class VectorSection(Section):
    """What is the mean of people's vectors of `dimension` numbers, each shortened to Euclidean length `clip`?

    Both are public, chosen before vectors are seen. `randomizer` names what each device runs, whose settings are
    further keys; `epsilon` is of one report, `delta` of the shuffled batch, with `honest` people (default: all).
    """

    dimension: Annotated[int, Field(ge=1, le=65_536)]
    clip: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    randomizer: str = DEFAULT
    epsilon: Annotated[float, Field(gt=0, le=700, allow_inf_nan=False)]
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    honest: Annotated[int, Field(ge=1)] | None = None

    @classmethod
    def choose(cls, raw: Any) -> Self:
        if not isinstance(raw, dict):
            return cls.model_validate(raw)
        try:
            kind = VECTOR_RANDOMIZERS[raw.get("randomizer", DEFAULT)]
        except ParameterError as error:
            raise ValueError(str(error)) from None
        model = with_settings(cls, (kind,))
        for key in raw:
            if key not in model.model_fields:
                raise PydanticCustomError("unknown_key", "unknown", {"key": key, "known": [*model.model_fields]})
        chosen: Self = model.model_validate(raw)
        return chosen

    def mechanism(self) -> VectorRandomizer:
        """What each device runs."""
        kind: Any = VECTOR_RANDOMIZERS[self.randomizer]
        settings = {one.name: getattr(self, one.name) for one in kind.settings()}
        made: VectorRandomizer = kind(d=self.dimension, radius=self.clip, epsilon=self.epsilon, **settings)
        return made

    def refuse_others(self, given: set[str], data: Any) -> None:
        """ValueError for what does not go with vectors."""
        for name in ("randomize", "shuffle", "promise", "estimate", "attack", "memoize", "strings"):
            if name in given:
                raise ValueError(
                    f"[{name}] does not go with [vector], which says randomizer, epsilon, delta and honest itself"
                )
        for name in ("categories", "lower", "time", "public", "labels", "table", "unconfirmed"):
            if getattr(data, name) not in (None, [], {}):
                raise ValueError(f"[data] {name} does not go with [vector]: remove one of them")
        if data.duplicates != "refuse" or data.missing != "refuse":
            raise ValueError('[vector] takes one whole array of each person: `duplicates` and `missing` are "refuse"')


AnyVectorSection = Annotated[
    SerializeAsAny[VectorSection],
    BeforeValidator(lambda raw: raw if isinstance(raw, VectorSection) else VectorSection.choose(raw)),
]
