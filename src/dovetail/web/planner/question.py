"""The question as it stands in an address: texts of a form to the arguments of the planner, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from dovetail.core.checks import refuse
from dovetail.core.errors import ParameterError

WHOLE = ("n", "k", "groups", "smallest_group")
REAL = ("error", "epsilon", "epsilon0", "delta", "honest", "lower", "upper", "grid")
WORDS = ("question", "randomizer", "shares", "trust")
FIELDS = (*WORDS[:1], *WHOLE, *REAL, *WORDS[1:])
ONLY = {"frequency": ("k", "shares"), "mean": ("lower", "upper", "grid")}  # fields of one kind of question
USUAL = {"shares": "any", "trust": "local"}  # what is not said
NOT_WITH = {  # fields that a plan with dummies does not have
    "shuffler": ("epsilon0", "groups", "smallest_group", "randomizer", "shares", "honest"),
    "users": ("epsilon0", "groups", "smallest_group", "randomizer", "shares"),
}
START = {"question": "frequency", "k": "4", "n": "10000", "error": "0.03"}
LONGEST = 40  # letters of a field
MOST_WHOLE = 1e16  # what is larger is beyond every range, and would be hundreds of digits in a message
_GROUPED = re.compile(r"[0-9]{1,3}([, _\u202f\u00a0][0-9]{3})+")
_POINTS = re.compile(r"[0-9]{1,3}\.[0-9]{3}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Question:
    """What was asked, field by field, as it was written; empty fields are left out."""

    texts: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Question:
        """From the query of an address; what it does not name is not asked, and an empty address asks the first."""
        texts = {name: given.get(name, "").strip()[: LONGEST + 1] for name in FIELDS}
        texts["question"] = texts["question"] or "frequency"
        mine = texts["question"]
        others = [name for kind, names in ONLY.items() if kind != mine for name in names]
        others += NOT_WITH.get(texts["trust"], ())
        kept = {
            name: text for name, text in texts.items() if name not in others and text not in ("", USUAL.get(name))
        }
        return cls(kept if any(name in given for name in FIELDS) else dict(START))

    @property
    def query(self) -> str:
        """The part of an address that holds this question."""
        return urlencode(self.texts)

    def with_value(self, name: str, value: float) -> Question:
        """The same question with one field changed."""
        return Question({**self.texts, name: f"{value:.15g}"})

    def arguments(self) -> dict[str, Any]:
        """What `plan_collection` takes, or `plan_trusting`.

        Raises
        ------
        ParameterError
            For what is no number.
        """
        found: dict[str, Any] = {name: self.texts[name] for name in WORDS if name in self.texts}
        found |= {name: whole_of(name, self.texts[name]) for name in WHOLE if name in self.texts}
        found |= {name: number_of(name, self.texts[name]) for name in REAL if name in self.texts}
        if found["question"] == "mean" and "%" in self.texts.get("error", ""):
            raise ParameterError(f"`error` of a mean must be a number, not a percentage, got {self.texts['error']}.")
        if "honest" in found and "%" in self.texts["honest"]:
            found |= _share_of_people(found.pop("honest"), self.texts["honest"])
        elif "honest" in found and not 0.0 < found["honest"] < 1.0:
            found["honest"] = whole_of("honest", self.texts["honest"])
        if found["question"] not in ONLY:
            raise refuse("question", '"frequency" or "mean"', found["question"])
        return found


def _share_of_people(share: float, text: str) -> dict[str, float]:
    """The honest people as a share: 100 % are all of them, and need not be said."""
    if not 0.0 < share <= 1.0:
        raise refuse("honest", "above 0 % and at most 100 %", text)
    return {} if share == 1.0 else {"honest": share}


def whole_of(name: str, text: str) -> Any:
    """1e6 and 1,000,000 as the whole number that they are; whoever is asked refuses what is none.

    A point before three digits may stand for thousands, so that 10.000 is refused and not read as ten.
    """
    value = number_of(name, text)
    if _POINTS.fullmatch(text):
        raise ParameterError(f"`{name}` must be a whole number without points, such as 10000 or 10,000, got {text}.")
    return int(value) if value.is_integer() and abs(value) < MOST_WHOLE else value


def number_of(name: str, text: str) -> float:
    """A number as people write it; a decimal comma is refused, because it may stand for thousands."""
    bare, percent = text.removesuffix("%").strip(), text.endswith("%")
    if _GROUPED.fullmatch(bare):
        bare = re.sub(r"[^0-9]", "", bare)
    if len(text) > LONGEST or not _NUMBER.fullmatch(bare):
        raise refuse(name, "a number such as 0.03 or 1e6", text[:LONGEST])
    if percent and name not in ("error", "honest"):
        raise ParameterError(f"`{name}` must be a number, not a percentage, got {text}.")
    return float(bare) / (100.0 if percent else 1.0)
