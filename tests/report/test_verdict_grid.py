"""Verdicts over a grid of collections: monotone in all that is told of one, and green only where that is deserved."""

import math
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import pytest
from tests.report.documents import absent, central, rehearsal

import dovetail as dt
from dovetail.core.guarantee import CentralDP
from dovetail.core.verdict import LIMITS, WORDS, Verdict, guess_bound
from dovetail.report.number_format import Document
from dovetail.report.verdict import judged, verdict

EPSILON0 = (0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 20.0, 600.0)
DELTA = (1e-9, 1e-6, 1e-4, 1e-2, 0.5)
N = (1_000_000, 10_000, 1_000, 30, 1)  # from best to worst, as all axes
HONEST = (1.0, 0.5, 0.0)
PUBLIC = (  # columns that are published, by how many the smallest group is smaller, and the share of people alone
    ((), 1, 0.0),
    (("age",), 10, 0.0),
    (("age", "town"), 10, 0.3),
    (("age", "town", "job"), 100, 0.9),
)
AXES = (EPSILON0, DELTA, N, HONEST, PUBLIC)


class Place(NamedTuple):
    """One collection of the grid."""

    epsilon0: float
    delta: float
    n: int
    honest: float
    public: tuple[tuple[str, ...], int, float]

    @property
    def mixed(self) -> tuple[int, int]:
        """People who are shuffled together in the smallest group, and the honest ones among them."""
        mixed = max(1, self.n // self.public[1])
        return mixed, max(1, round(self.honest * mixed))


@cache
def promise(epsilon0: float, n: int, honest: int) -> CentralDP:
    return dt.amplify(epsilon0, n=n, honest=honest, delta=1e-6)


@cache
def base() -> Document:
    return rehearsal()


@cache
def documents() -> dict[Place, Document]:
    return {place: document_of(place) for place in map(Place._make, product(*AXES))}


def document_of(place: Place) -> Document:
    (mixed, honest), (columns, _, alone) = place.mixed, place.public
    found = promise(place.epsilon0, mixed, honest)
    block = central(found.all, found.epsilon, n=mixed, honest_n=honest, colluding=place.epsilon0)
    known = {"published": columns, "alone": int(alone * place.n) if columns else absent("nothing is published")}
    document = base()
    return document | {
        "local": document["local"] | {"epsilon": place.epsilon0},
        "central": block | {"delta": place.delta},
        "collection": document["collection"] | {"n": place.n, "public": columns} | known,
    }


def worse_ones(place: Place) -> Iterator[Place]:
    """The next place along every axis."""
    for axis, values in enumerate(AXES):
        following = values.index(place[axis]) + 1
        if following < len(values):
            yield place._replace(**{place._fields[axis]: values[following]})


def rank(found: Verdict) -> int:
    return WORDS.index(found.word)


@pytest.mark.exhaust
def test_no_change_for_the_worse_betters_a_verdict() -> None:
    found = {place: judged(document) for place, document in documents().items()}
    assert len(found) > 2000 and {each.word for each in found.values()} == set(WORDS)
    for place, one in found.items():
        for worse in worse_ones(place):
            assert rank(found[worse]) >= rank(one), (place, worse)


@pytest.mark.exhaust
def test_green_is_only_what_keeps_every_guess_that_is_not_ruled_out_below_the_stated_share() -> None:
    stated = guess_bound(*LIMITS["strong"])
    for place, document in documents().items():
        found = judged(document)
        keep = 1.0 / (1.0 + math.exp(-place.epsilon0))  # how often binary response is the answer
        green = [row for row in found.rows if row.word == "strong"]
        assert all(row.guess <= stated for row in green), place
        assert not green or keep < guess_bound(*LIMITS["weak"]), place  # it does not read the answers
        assert keep <= found.rows[0].guess, place
        if found.word == "strong":
            said = found.sentence()
            assert f"if {found.decides.who} are honest" in said or (
                keep <= stated and "even if all others cheat" in said
            )
        if place.epsilon0 == EPSILON0[-1]:
            assert "protects nobody but by trust in the shuffler" in found.sentence()


@pytest.mark.parametrize("epsilon0", [1.0, 2.0, 3.0])
def test_no_guess_by_somebody_who_knows_all_others_is_right_more_often_than_its_row_says(epsilon0: float) -> None:
    for n in (2, 11, 301):
        found = promise(epsilon0, n, n)
        document = document_of(Place(epsilon0, 1e-6, n, 1.0, PUBLIC[0]))
        half = (n // 2, n - 1 - n // 2)
        channel = dt.KRR(k=2, epsilon=epsilon0).channel()
        seen = dt.vulnerability(channel, n=n, adversary="strong", known=half).randomized_shuffled
        assert isinstance(seen, float) and 0.5 < seen <= judged(document).rows[-1].guess <= guess_bound(
            found.epsilon, 1e-6
        )


@pytest.mark.exhaust
def test_what_is_public_and_how_many_are_alone_stand_in_every_verdict() -> None:
    for place, document in documents().items():
        columns, _, alone = place.public
        [said] = [line.text for line in verdict(document) if line.name == "Public"]
        if not columns:
            assert said.startswith("No column beside the reports")
            continue
        assert f"taking part is visible: {', '.join(columns)}." in said
        assert f"Alone with their combination: {int(alone * place.n):,} of {place.n:,} people." in said
