"""Sections of a report that a rehearsal measures of its own release beside the attacks, each a file of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from dovetail.core.entropy import Entropy
from dovetail.core.registry import Declared, Registry


class ReportSection(Declared):
    """Something that is measured on simulated releases of a collection, and what a page says of it.

    `name` is its key in report.json, which no other part of a report has. Laws: what it finds is JSON-ready, and
    depends on the collection and on `rng` alone.

    Examples
    --------
    >>> "copying" in SECTIONS and issubclass(SECTIONS["copying"], ReportSection)
    True
    """

    @classmethod
    @abstractmethod
    def measure(cls, collection: Any, rng: Entropy) -> Any:
        """The finding for a `Collection` with its shuffler, a dictionary; or `Missing`, with the reason."""

    @classmethod
    @abstractmethod
    def notes(cls, found: dict[str, Any]) -> tuple[str, ...]:
        """Whole sentences for the page, the finding first."""


SECTIONS: Registry[ReportSection] = Registry(
    "section", ReportSection, package="dovetail.memorize.sections", group="dovetail.sections"
)
