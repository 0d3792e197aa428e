"""Approximate search: its recall is measured, and what it misses can hide copying but never feign it."""

import json
from typing import Any

import numpy as np
import pytest

from dovetail.core.entropy import simulation
from dovetail.core.errors import ParameterError
from dovetail.memorize.copying import search as generated_search
from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.copying.search import GeneratedSearch, InvertedLists, Recall, TrainingIndex, choose_search

D = 12


def clustered(seed: int, count: int) -> Any:
    """Points around forty centres, as embeddings are."""
    centres = 4.0 * np.random.default_rng(0).standard_normal((40, D))
    draw = np.random.default_rng(seed)
    return centres[draw.integers(0, 40, count)] + draw.standard_normal((count, D))


TRAIN = clustered(1, 3_000)


@pytest.mark.exhaust
def test_all_lists_together_find_the_nearest_row_and_few_lists_one_that_is_no_nearer() -> None:
    index, lists, queries = TrainingIndex(TRAIN), InvertedLists.build(TRAIN, seed=0), clustered(2, 500)
    exact, rows = index.nearest(queries)
    assert (lists.nearest(queries, probes=len(lists.centres)) == rows).all()
    few = index.distances_to(queries, lists.nearest(queries, probes=1))
    assert (few >= exact).all() and (few > exact).any()
    assert sorted(lists.rows.tolist()) == list(range(len(TRAIN)))


@pytest.mark.exhaust
def test_a_copy_lies_in_the_first_list_that_is_searched() -> None:
    lists = InvertedLists.build(TRAIN, seed=0)
    assert (lists.nearest(TRAIN, probes=1) == np.arange(len(TRAIN))).all()


@pytest.mark.exhaust
def test_copies_of_rounded_rows_are_found_although_centres_tie() -> None:
    """Where a processor rounds such distances unevenly, a search of one list misses copies."""
    train = (np.random.default_rng(0).random((3_000, 16)) < 0.02) * 1.0
    index, lists = TrainingIndex(train), InvertedLists.build(train, seed=0)
    far, rows, _ = GeneratedSearch(index, lists, 1).nearest(train, simulation(1), tick=lambda done, total: None)
    assert not far.any() and (train[rows] == train).all()
    assert len(np.unique(lists.centres, axis=0)) == len(lists.centres)


@pytest.mark.exhaust
def test_recall_is_measured_against_exact_search_and_its_interval_holds_the_truth() -> None:
    """Clopper-Pearson at 97.5 % each side; one seed, so a false alarm is excluded, not improbable."""
    index, lists, queries = TrainingIndex(TRAIN), InvertedLists.build(TRAIN, seed=0), clustered(3, 4_000)
    exact, _ = index.nearest(queries)
    true = (index.distances_to(queries, lists.nearest(queries, probes=1)) <= exact * (1 + 1e-9)).mean()
    far, _, note = GeneratedSearch(index, lists, 1).nearest(queries, simulation(1), tick=lambda done, total: None)
    assert note.recall is not None and note.recall.queries == 1_000
    low, high = note.recall.interval
    assert low < true < high and true < 0.99
    assert (far >= exact).all()
    assert note.missed == pytest.approx(1.0 - low)


@pytest.mark.exhaust
def test_missed_neighbours_raise_every_p_value_for_copying_and_none_is_lowered() -> None:
    fresh, made = clustered(4, 400), np.concatenate([TRAIN[:40] + 0.3, clustered(5, 360)])
    exact = CopyingTest.prepare(TRAIN, fresh, search="exact").test(made, baselines=False)
    index, lists = TrainingIndex(TRAIN), InvertedLists.build(TRAIN, seed=0)
    prepared = CopyingTest.prepare(TRAIN, fresh, search="exact")
    object.__setattr__(prepared, "search", GeneratedSearch(index, lists, 1))
    rough = prepared.test(made, baselines=False)
    assert rough.search.missed > 0.0
    assert rough.overall.p_copying >= exact.overall.p_copying and rough.overall.delta >= exact.overall.delta
    assert rough.tail.p >= exact.tail.p and rough.copied_fraction <= exact.copied_fraction
    assert rough.delta_interval[0] <= exact.overall.delta <= rough.delta_interval[1]
    assert rough.p_underfitting >= exact.p_underfitting
    assert all(one >= other for one, other in zip(rough.detectable, exact.detectable, strict=True))
    assert rough.duplicates == exact.duplicates and rough.paired == exact.paired


@pytest.mark.exhaust
def test_the_document_states_method_recall_and_direction() -> None:
    fresh, made = clustered(4, 400), clustered(5, 400)
    prepared = CopyingTest.prepare(TRAIN, fresh, search="approximate")
    found = json.loads(json.dumps(prepared.test(made, baselines=False).document()))
    search = found["search"]
    assert search["method"] == "approximate" and search["recall"]["queries"] == 400
    assert search["recall"]["interval"][0] < search["recall"]["value"] <= search["recall"]["interval"][1]
    assert "never overstated" in search["direction"] and search["direction"] in found["warnings"][-1]
    exact = CopyingTest.prepare(TRAIN, fresh).test(made, baselines=False).document()
    assert exact["search"]["method"] == "exact" and exact["warnings"] == []


@pytest.mark.exhaust
def test_auto_is_exact_where_an_eighth_of_the_lists_finds_too_few_and_says_so(monkeypatch: Any) -> None:
    monkeypatch.setattr(generated_search, "LARGE", 3_000)
    quiet: Any = lambda done, total: None  # noqa: E731
    noise = np.random.default_rng(1).standard_normal((3_000, 64))
    chosen = []
    for train, fresh in ((noise, np.random.default_rng(2).standard_normal((300, 64))), (TRAIN, clustered(4, 300))):
        index = TrainingIndex(train)
        asked = choose_search(index, (fresh, index.nearest(fresh)[0]), search="auto", seed=0, tick=quiet)
        chosen.append(asked)
    assert chosen[0].lists is None and "Searched exactly" in chosen[0].why
    assert chosen[1].lists is not None
    flat = TrainingIndex(TRAIN[:, :3])
    tree = choose_search(flat, (TRAIN[:50, :3], np.zeros(50)), search="approximate", seed=0, tick=quiet)
    assert tree.lists is None and "by a tree" in tree.why
    with pytest.raises(ParameterError, match="auto, exact or approximate"):
        choose_search(flat, (TRAIN[:50, :3], np.zeros(50)), search="fast", seed=0, tick=quiet)


def test_the_share_that_may_be_missed_is_not_zero_when_nothing_was_missed() -> None:
    assert Recall(1_000, 1_000).missed == pytest.approx(1.0 - 0.025 ** (1 / 1_000))
