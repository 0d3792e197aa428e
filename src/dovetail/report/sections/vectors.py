"""What a report on a mean of vectors says of the vector as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING

from dovetail.report.number_format import Document, Unit, missing_reason

UNIT = Unit.of("mean")


def is_vector(document: Document) -> bool:
    """Whether people's answers are vectors."""
    return bool(document["collection"]["kind"] == "vector")


def vector_kind(document: Document) -> str:
    """What one person holds."""
    collection = document["collection"]
    return f"a vector of {collection['dimension']:,} numbers, of length at most {collection['clip']:g}"


def vector_sentences(document: Document) -> Iterator[str]:
    """How far the mean as a whole may be off, and was."""
    vector = document["estimates"]["vector"]
    error, most, coordinate = vector["error"], vector["error95"], vector["coordinate_error"]
    yield (
        f"The estimated mean has length {UNIT(vector['length'], error)} and is off by at most "
        f"{UNIT(most, most, ROUND_CEILING)} in Euclidean length with probability 95%; the standard error of one "
        f"coordinate is {UNIT(coordinate, coordinate, ROUND_CEILING)}."
    )
    if missing_reason(vector["off"]) is None:
        yield (
            f"In this rehearsal it is off by {UNIT(vector['off'], error)}; {vector['clipped']:,} of "
            f"{document['collection']['n']:,} vectors were shortened, which moved the mean by "
            f"{UNIT(vector['clipping'], max(error, vector['clipping']))}."
        )
    if vector["length"] ** 2 < 2.0 * error**2:  # of which error^2 is the noise's
        yield "Most of this is noise: ask more people, or for fewer coordinates, or allow a larger ε."
