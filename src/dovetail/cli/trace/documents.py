"""Files that the verbs pass on: a fitted prior and a plan, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.cli.console.output import write_whole
from dovetail.core.errors import DataError

if TYPE_CHECKING:
    from dovetail.trace.plan.trace_plan import TracePlan
    from dovetail.trace.prior import TracePrior


def read_json(place: Path) -> Any:
    """The document of a file."""
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{place}: cannot be read ({error.strerror}).") from None
    except ValueError:
        raise DataError(f"{place}: is no JSON document.") from None


def read_prior(place: Path) -> TracePrior:
    """A prior as `fit` writes it."""
    from dovetail.trace.prior import TracePrior

    try:
        return TracePrior.from_dict(read_json(place))
    except DataError as error:
        raise DataError(f"{place}: {error}" if not str(error).startswith(str(place)) else str(error)) from None


def read_plan(place: Path) -> TracePlan:
    """A plan as `plan` writes it."""
    from dovetail.trace.plan.trace_plan import TracePlan

    try:
        return TracePlan.from_dict(read_json(place))
    except DataError as error:
        raise DataError(f"{place}: {error}" if not str(error).startswith(str(place)) else str(error)) from None


def write_json(document: dict[str, Any], place: Path, *, force: bool) -> None:
    """A document as a file, at once or not at all."""

    def write(scratch: Path) -> None:
        scratch.write_text(json.dumps(document, indent=1, allow_nan=False))

    write_whole(place, write, force=force)
