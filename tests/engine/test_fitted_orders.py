"""Orders that are fitted to public labels have the law of their shufflers, however many tasks draw them."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2_contingency
from tests.engine.oracle import config, table, write_table
from tests.engine.test_draw import draw, files, reports
from tests.statistics import FALSE_ALARM, expect_broken, expect_law, rng_of
from tests.tiers import one_in, tiered

import dovetail as dt
from dovetail.core.entropy import keyed_prints
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.engine import fitted_orders as gathered
from dovetail.engine import orders as line
from dovetail.engine import publication as storage
from dovetail.engine.fitted_orders import FITTED, MallowsPlaces, NoisyPlaces, PlanarPlaces, arrangement_of
from dovetail.engine.orders import Arrangement, Fitted, fit_line, labels_of
from dovetail.engine.rows import Rows, Secret
from dovetail.job.build import fit_of
from dovetail.job.config import parse_config

KINDS = [kind.shuffler for kind in FITTED]


def fitted(shuffler: str, labels: dict[str, int], *, alpha: float) -> Fitted:
    settings = config(Path("unused"), shuffler=shuffler)
    settings["shuffle"] |= {"alpha": alpha}
    section = parse_config(settings).shuffle
    assert section.groups is not None
    return fit_line(section, tuple(section.groups.columns), labels)


def rows_of(labels: dict[str, int]) -> Rows:
    names = pl.Series([name for name, size in labels.items() for _ in range(size)], dtype=pl.String)
    ids = np.arange(len(names))
    return Rows(pl.Series(ids), ids, np.zeros(len(names)), names)


def orders(layout: Any, labels: dict[str, int], trials: int) -> list[tuple[int, ...]]:
    """Which person's report stands at each place, over releases under other secrets, as the tasks draw it."""
    seen, rows = [], rows_of(labels)
    for trial in range(trials):
        secret = Secret(trial.to_bytes(32, "big"))
        keys = keyed_prints(secret.of("order"), rows.ids)
        part, marks = layout.send(rows, keys, secret)
        if isinstance(layout, NoisyPlaces):
            counts = {str(one): int((part == one).sum()) for one in range(layout.parts)}
            own: Arrangement = layout.counted(counts)
        else:
            own = layout
        order = []
        for one in range(own.parts):
            mine = np.flatnonzero(part == one)
            order += mine[own.order(one, keys[mine], tuple(mark[mine] for mark in marks), secret)[0]].tolist()
        seen.append(tuple(order))
    return seen


FOUR = {"30": 1, "31": 1, "33": 1, "36": 1}
ATOMS = {"30": 2, "31": 1, "33": 1}


def law_of(made: Fitted, labels: dict[str, int]) -> dict[tuple[int, ...], float]:
    """Probability of every arrangement of four people along the line, by the shuffler's published law."""
    line, law = made.shuffler.line, {}
    for kappa in permutations(range(4)):
        permutation = np.empty(4, dtype=np.int64)
        permutation[line.order] = line.order[np.array(kappa)]
        law[tuple(line.order[np.array(kappa)].tolist())] = float(np.exp(made.shuffler.log_weight(permutation)))
    return law


LAWS = [("noisy_sort", FOUR, 3), ("noisy_sort", ATOMS, 1), ("mallows", FOUR, 1), ("mallows", ATOMS, 3)]


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("shuffler", "labels", "parts"), tiered(LAWS, first=lambda case: case in (LAWS[1], LAWS[3])), ids=str
)
def test_tasks_draw_the_published_law(shuffler: str, labels: dict[str, int], parts: int) -> None:
    made = fitted(shuffler, labels, alpha=2.0)
    kind = arrangement_of(shuffler)
    assert kind is not None
    seen = orders(kind.of(made, parts), labels, 800)
    law = law_of(made, labels)
    counts = np.array([seen.count(one) for one in law])
    expect_law(counts, np.array([*law.values()]))
    other = law_of(fitted(shuffler, labels, alpha=6.0), labels)
    expect_broken(counts, np.array([*other.values()]))
    expect_broken(counts, np.full(24, 1 / 24))


CORNERS = {f"{x}\x1f{y}": 1 for x in (0.0, 0.5) for y in (0.0, 0.5)}


def in_memory(made: Fitted, trials: int, name: str) -> list[tuple[int, ...]]:
    """The same of the shuffler in memory."""
    rng, order = rng_of(name), made.shuffler.line.order
    return [tuple(made.shuffler.permutation(rng)[order].tolist()) for _ in range(trials)]


def alike(first: list[tuple[int, ...]], second: list[tuple[int, ...]]) -> float:
    """p-value of one law behind both."""
    kinds = sorted({*first, *second})
    return float(chi2_contingency([[some.count(kind) for kind in kinds] for some in (first, second)]).pvalue)


@pytest.mark.exhaust
def test_tasks_match_noisy_points_as_in_memory() -> None:
    made = fitted("planar", CORNERS, alpha=4.0)
    seen = orders(PlanarPlaces.of(made, 2), CORNERS, 1500)
    assert alike(seen, in_memory(made, 1500, "planar")) > FALSE_ALARM
    assert alike(seen, in_memory(fitted("planar", CORNERS, alpha=10.0), 1500, "other")) < FALSE_ALARM
    assert alike(seen, in_memory(fitted("planar", CORNERS, alpha=0.0), 1500, "uniform")) < FALSE_ALARM


@pytest.mark.exhaust
def test_labels_stand_for_their_people() -> None:
    people = table(300)
    for shuffler in KINDS:
        section = parse_config(config(Path("unused"), shuffler=shuffler)).shuffle
        assert section.groups is not None
        columns = tuple(section.groups.columns)
        texts = people.select(pl.concat_str(columns, separator="\x1f").alias("label"))["label"].sort()
        labels = {str(name): int(count) for name, count in sorted(texts.value_counts().iter_rows())}
        made = fit_line(section, columns, labels)
        whole: Any = fit_of(section, 300)(labels_of(columns, texts))
        assert made.shuffler.summary() == whole.summary()
        assert made.line.n == 300 and sorted(made.line.along.tolist()) == list(range(len(labels)))
        starts, places = made.line.component_starts, made.line.codes_at(0, 300)
        assert starts.tolist() == whole.line.component_starts.tolist()
        assert np.bincount(places).tolist() == list(labels.values())
        assert made.line.component[places].tolist() == whole.line.component.tolist()


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", one_in(3, KINDS))
def test_a_fitted_order_is_the_same_in_any_partitions(shuffler: str, tmp_path: Path) -> None:
    people = table(150, text=True)
    first = config(write_table(tmp_path / "in", people), shuffler=shuffler)
    draw(first, tmp_path / "one", parts=1, rows=1000)
    again = config(write_table(tmp_path / "turned", people[::-1], files=5), shuffler=shuffler)
    draw(again, tmp_path / "two", parts=5, rows=11)
    draw(first, tmp_path / "three", parts=5)
    assert reports(tmp_path / "one").equals(reports(tmp_path / "two")) and len(files(tmp_path / "two")) > 2
    assert [file.read_bytes() for file in files(tmp_path / "two")] == [
        file.read_bytes() for file in files(tmp_path / "three")
    ]


def test_partitions_of_noisy_places_are_even_and_whole_components_stay_together() -> None:
    labels = {str(age): 700 + 37 * (age % 5) for age in range(20, 60)}
    made = fitted("noisy_sort", labels, alpha=3.0)
    layout, rows = NoisyPlaces.of(made, 8), rows_of(labels)
    part, marks = layout.send(rows, keyed_prints(bytes(32), rows.ids), Secret(bytes(32)))
    noisy, component = marks
    assert (np.diff(part[np.lexsort((noisy, component))]) >= 0).all() and layout.parts == 8
    sizes = np.bincount(part)  # cut by a sample: 256 rows of each partition, so within 6.5 standard errors of 1/16
    assert np.abs(sizes / (made.line.n / 8) - 1.0).max() < 6.5 * np.sqrt(1 / 256 + 8 / made.line.n)
    apart = {f"{10 * place}": 100 for place in range(20)}
    whole = MallowsPlaces.of(fitted("mallows", apart, alpha=3.0), 7)
    part, _ = whole.send(rows_of(apart), keyed_prints(bytes(32), np.arange(2000)), Secret(bytes(32)))
    assert all(len(set(part[100 * place : 100 * place + 100])) == 1 for place in range(20)) and whole.parts == 7


def test_rows_that_are_others_than_were_counted_stop_the_job() -> None:
    for shuffler in KINDS:
        labels = CORNERS if shuffler == "planar" else FOUR
        made, secret, rows = fitted(shuffler, labels, alpha=1.0), Secret(bytes(32)), rows_of(labels)
        kind = arrangement_of(shuffler)
        assert kind is not None
        layout: Any = kind.of(made, 1)
        keys = keyed_prints(secret.of("order"), rows.ids)
        _, marks = layout.send(rows, keys, secret)
        layout = layout.counted({"0": 4}) if shuffler == "noisy_sort" else layout
        with pytest.raises(DataError, match="the table has changed while it was read"):
            layout.order(0, keys[:3], tuple(mark[:3] for mark in marks), secret)
        twice = np.array([0, 0, 2, 3])
        with pytest.raises(DataError, match="a person stands in two rows"):
            layout.order(0, keys[twice], tuple(mark[twice] for mark in marks), secret)


def test_components_and_tables_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "MOST_TOGETHER", 3)
    for shuffler in ("mallows", "planar"):
        labels = CORNERS if shuffler == "planar" else FOUR | {"34": 1}
        kind = arrangement_of(shuffler)
        assert kind is not None
        with pytest.raises(UnsupportedError, match=r"one task, at most 3 people; one has [45]; use `noisy_sort`"):
            kind.of(fitted(shuffler, labels, alpha=1.0), 1)
    NoisyPlaces.of(fitted("noisy_sort", FOUR | {"34": 1}, alpha=1.0), 1)
    monkeypatch.setattr(line, "MOST_FITTED", 3)
    with pytest.raises(UnsupportedError, match="one memory, at most 3 people, got 4; use `within_groups` or uniform"):
        fitted("noisy_sort", FOUR, alpha=1.0)


def test_what_does_not_fit_into_memory_is_refused_before_it_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    planar = fitted("planar", CORNERS, alpha=1.0)
    monkeypatch.setattr(storage, "memory", lambda: 4 * 120 - 1)
    with pytest.raises(
        UnsupportedError, match=r"fitting shuffler 'noisy_sort' to 4 people takes .* use `within_groups`"
    ):
        fitted("noisy_sort", FOUR, alpha=1.0)
    kind = arrangement_of("planar")
    assert kind is not None
    with pytest.raises(UnsupportedError, match=r"a partition of shuffler 'planar' with 4 people takes .*noisy_sort"):
        kind.of(planar, 1).order(0, np.zeros((4, 2), np.uint64), (), Secret(bytes(32)))


def release(place: Path, shuffler: str, **change: Any) -> dict[str, Any]:
    settings = config(place / "in", shuffler=shuffler)
    settings["shuffle"] |= change
    options = {"out": place / f"out-{shuffler}", "ledger": place / "ledger", "workers": 1}
    return dt.engine.run(settings, **options).document()


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", tiered(KINDS, first=lambda kind: kind == "noisy_sort"))
def test_a_release_reports_the_order_as_one_in_memory(shuffler: str, tmp_path: Path) -> None:
    write_table(tmp_path / "in", table(), files=3)
    write_table(tmp_path / "whole", table(), files=1)
    ours = release(tmp_path, shuffler)
    plain = dt.run(config(tmp_path / "whole" / "part-0.parquet", shuffler=shuffler), ledger=tmp_path / "other")
    theirs = plain.document()
    free = ("summary", "theta_n")  # in memory the direction of the line is that of the rows' random order
    assert {name: ours["order"][name] for name in ours["order"] if name not in free} == {
        name: theirs["order"][name] for name in theirs["order"] if name not in free
    }
    assert ours["order"]["alpha"] == 40.0 and ours["shuffler"] == shuffler
    assert ours["order"]["summary"].keys() == theirs["order"]["summary"].keys()
    assert ours["central"] == theirs["central"]
    assert any("computational: reports" in one for one in ours["assumptions"])
    if shuffler != "planar":
        mine, their = ([(one["group"], one["n"]) for one in some["estimates"]["groups"]] for some in (ours, theirs))
        assert mine == their and all(one["bias_bound"] > 0.0 for one in ours["estimates"]["groups"][:3])
    again = release(tmp_path, shuffler)
    assert again["release"]["number"] == 1 and again["order"] == ours["order"]
    settings = config(tmp_path / "in", shuffler=shuffler)
    second = dt.engine.run(
        settings, out=tmp_path / "second", ledger=tmp_path / "ledger", workers=1, new_release=True
    ).document()
    assert second["order"]["alpha"] == 80.0


def test_what_is_no_order_of_labels_is_refused(tmp_path: Path) -> None:
    write_table(tmp_path / "in", table(60))
    for shuffler, change, reason in [
        ("mallows", {"alpha": float("inf")}, "alpha = inf leaves every report with its sender"),
        ("planar", {"groups": {"points": ["x", "y"], "nearest": 3}}, "the `nearest` people differ"),
    ]:
        with pytest.raises(UnsupportedError, match=f"--engine: .*{reason}"):
            release(tmp_path, shuffler, **change)
    settings = config(tmp_path / "in", shuffler="noisy_sort")
    settings["data"]["public"].append("region")
    with pytest.raises(UnsupportedError, match=r"`public` must be \['age'\]"):
        dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "ledger")
    settings = config(tmp_path / "in", shuffler="planar")
    settings["estimate"] = {"by": ["x"]}
    with pytest.raises(UnsupportedError, match="estimates by group are of groups of `labels`"):
        dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "ledger")
    worded = config(tmp_path / "in", shuffler="noisy_sort")
    worded["data"]["public"], worded["estimate"] = ["region"], {"by": []}
    worded["shuffle"]["groups"] = {"labels": "region", "radius": 1.0}
    with pytest.raises(DataError, match="'region'"):
        dt.engine.run(worded, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
