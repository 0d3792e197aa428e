"""What a release is compared by: whoever promises less than was drawn is refused, however the collection was made."""

import json
import math
from pathlib import Path

import polars as pl
import pytest

from dovetail.account.order_privacy import compose_releases
from dovetail.core.entropy import simulation
from dovetail.core.errors import UnsupportedError
from dovetail.core.guarantee import OrderPrivacy
from dovetail.core.stages import Shuffler
from dovetail.job.build import terms
from dovetail.job.collection import Collection, Fit
from dovetail.job.config import parse_config
from dovetail.job.rehearse import release
from dovetail.ledger.releases import ReleaseLedger
from dovetail.randomize.krr import KRR
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

PEOPLE = pl.DataFrame(
    {
        "id": range(12),
        "answer": ["no", "yes", "no"] * 4,
        "pair": [str(place // 2) for place in range(12)],
        "half": [str(place // 6) for place in range(12)],
    }
)


def grouped(by: str) -> Fit:
    return lambda public: WithinGroups(Groups.from_labels(public[by]))


def mallows(alpha: float) -> Fit:
    return lambda public: Mallows.single(Groups.from_labels(public["pair"]), alpha=alpha)


def uniform(public: pl.DataFrame) -> Shuffler:
    return Uniform(public.height)


def collection(fit: Fit, *, epsilon: float = 1.0, categories: tuple[str, ...] = ("no", "yes")) -> Collection:
    return Collection.of(
        PEOPLE, private="answer", randomizer=KRR(2, epsilon), shuffler=fit, person="id", public=["pair", "half"],
        categories=categories,
    )  # fmt: skip


DRAWN: dict[str, tuple[Collection, Collection]] = {
    "another shuffler": (collection(grouped("half")), collection(uniform)),
    "another alpha": (collection(mallows(1.0)), collection(mallows(0.5))),
    "another grouping": (collection(grouped("pair")), collection(grouped("half"))),
    "another order of the categories": (collection(uniform), collection(uniform, categories=("yes", "no"))),
    "another budget": (collection(uniform, epsilon=2.0), collection(uniform, epsilon=1.0)),
}


@pytest.mark.parametrize("what", DRAWN)
def test_no_draw_is_promised_anew_as_something_else(what: str, tmp_path: Path) -> None:
    drawn, promised = DRAWN[what]
    ledger = ReleaseLedger(tmp_path)
    release(drawn, ledger=ledger)
    with pytest.raises(UnsupportedError, match="released before"):
        release(promised, ledger=ledger)


def test_the_same_objects_reproduce_the_first_draw(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path)
    first, again = (release(collection(grouped("pair")), ledger=ledger) for _ in range(2))
    assert first.sanitized is not None and again.sanitized is not None
    assert first.sanitized.equals(again.sanitized)


def anyhow(public: pl.DataFrame) -> Shuffler:
    """Groups of rows as they happen to lie, which nothing public tells apart."""
    return WithinGroups(Groups.from_labels([place // 6 for place in range(public.height)]))


@pytest.mark.parametrize(("first", "then"), [("pair", "half"), ("half", "pair")])
def test_order_budgets_of_different_groups_do_not_add_up(first: str, then: str, tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path)
    release(collection(grouped(first)), ledger=ledger)
    both = release(collection(grouped(then)), ledger=ledger, new_release=True)
    assert both.evaluation.order.guarantee.alpha == math.inf


def test_order_budgets_of_the_same_groups_add_up(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path)
    release(collection(mallows(1.0)), ledger=ledger)
    both = release(collection(mallows(1.0)), ledger=ledger, new_release=True)
    assert both.evaluation.order.guarantee.alpha == 2 * mallows(1.0)(PEOPLE).guarantee.alpha


@pytest.mark.exhaust
def test_a_uniform_release_of_the_same_table_adds_nothing_to_the_order_of_others(tmp_path: Path) -> None:
    """Against Theorem A.2, each shuffler evaluated on the common groups."""
    ledger, alphas = ReleaseLedger(tmp_path), [3.0, 4.0, 4.0]
    for alpha in alphas:
        release(collection(mallows(alpha)), ledger=ledger, new_release=True)
    with_uniform = release(collection(uniform), ledger=ledger, new_release=True).evaluation.order.guarantee
    groups = Groups.from_labels(PEOPLE["pair"])
    shufflers = [*(mallows(alpha)(PEOPLE) for alpha in alphas), uniform(PEOPLE)]
    assert with_uniform.alpha == pytest.approx(compose_releases(shufflers, groups).alpha) and with_uniform.alpha < 12
    assert repr(with_uniform) == f"OrderPrivacy: alpha {with_uniform.alpha:g} for the groups of release 3"
    assert not with_uniform.implies(OrderPrivacy(1e300, groups)), "no more is kept of groups than a fingerprint"
    again = release(collection(mallows(1.0)), ledger=ledger, new_release=True).evaluation.order.guarantee
    assert again.alpha == pytest.approx(with_uniform.alpha + mallows(1.0)(PEOPLE).guarantee.alpha)
    assert isinstance(again.groups, Groups)
    finer = release(collection(grouped("half")), ledger=ledger, new_release=True).evaluation.order.guarantee
    assert finer.alpha == math.inf


def test_a_uniform_release_of_other_people_promises_no_order_with_one_in_groups(tmp_path: Path) -> None:
    def some(fit: Fit, rows: slice) -> Collection:
        return Collection.of(
            PEOPLE[rows], private="answer", randomizer=KRR(2, 1.0), shuffler=fit, person="id", public=["pair"],
            categories=("no", "yes"),
        )  # fmt: skip

    ledger = ReleaseLedger(tmp_path)
    release(some(mallows(1.0), slice(None)), ledger=ledger)
    part = release(some(uniform, slice(0, 6)), ledger=ledger, new_release=True)
    assert part.evaluation.order.guarantee.alpha == math.inf


def test_groups_that_nothing_public_tells_apart_are_never_the_same(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path)
    made = [
        Collection.of(PEOPLE, private="answer", randomizer=KRR(2, 1.0), shuffler=fit, public=["pair"],
                      categories=("no", "yes"))
        for fit in (lambda public: anyhow(public.reverse()), anyhow)
    ]  # fmt: skip
    release(made[0], ledger=ledger)
    with pytest.raises(UnsupportedError, match="released before"):
        release(made[1], ledger=ledger)
    both = release(made[1], ledger=ledger, new_release=True)
    assert both.evaluation.order.guarantee.alpha == math.inf


def test_a_simulated_order_of_rows_is_refused(tmp_path: Path) -> None:
    made = Collection.of(
        PEOPLE, private="answer", randomizer=KRR(2, 1.0), shuffler=uniform, categories=("no", "yes"),
        rng=simulation(1),
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="leave out `rng`"):
        release(made, ledger=ReleaseLedger(tmp_path))


def test_categories_that_were_read_off_the_private_column_are_refused_and_nothing_is_drawn(tmp_path: Path) -> None:
    """Which values occur is itself something about people: a rare one would name who gave it."""
    ledger = tmp_path / "ledger"
    made = Collection.of(PEOPLE, private="answer", randomizer=KRR(2, 1.0), shuffler=uniform, public=["pair"])
    with pytest.raises(UnsupportedError, match="must declare its categories"):
        release(made, ledger=ReleaseLedger(ledger))
    assert not ledger.exists()
    assert release(collection(uniform), ledger=ReleaseLedger(ledger)).evaluation


def nulls(*names: str, **given: object) -> dict[str, object]:
    return dict.fromkeys(names) | given


def test_configurations_keep_the_form_that_ledgers_hold() -> None:
    """A new version that spells them otherwise would draw, and publish, every table a second time."""
    made = terms(
        parse_config(
            {
                "schema_version": 1,
                "mode": "release",
                "data": {"path": "t.csv", "person": "id", "private": "affair", "public": ["age"],
                         "categories": ["no", "yes"]},
                "randomize": {"randomizer": "krr", "epsilon": 2.0},
                "shuffle": {"shuffler": "within_groups", "groups": {"labels": "age"}},
                "promise": {"delta": 1e-6},
            }
        )
    )  # fmt: skip
    held = {
        "data": nulls("grid", "lower", "time", "upper", categories=["no", "yes"], missing="refuse", person="id",
                      private="affair", public=["age"]),
        "promise": nulls("cap"),
        "randomize": nulls("beta", "precision", "rho", epsilon=2.0, randomizer="krr"),
        "shuffle": nulls("alpha", "k", "refine", compare=[], shuffler="within_groups",
                         groups=nulls("nearest", "points", "radius", labels="age")),
    }  # fmt: skip
    assert made == json.dumps(held, sort_keys=True).encode()
