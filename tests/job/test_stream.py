"""A stream goes in; a series of estimates, window queries and what they cost come out, and nothing else."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.job.streams import loads, rehearsal, release
from tests.statistics import LONG, SHORT, expect_caught, expect_mean, expect_standard_error
from tests.tiers import one_in

import dovetail as dt
from dovetail.account.compose import compose
from dovetail.account.rounds import ShuffledRound
from dovetail.core.errors import ConfigError, DataError, DovetailError, UnsupportedError
from dovetail.core.missing import Missing
from dovetail.job.stream import Batches
from dovetail.report.document import PrivacyReport
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

LAPLACE = {"randomizer": "laplace", "epsilon": 1.0, "beta": None, "rho": None}
EDGES = {"device": ["kettle", "oven", "lamp"], "other": ["oven", "lamp", "fridge"]}


def go(config: dict[str, Any], table: pl.DataFrame | None = None, **options: Any) -> PrivacyReport:
    return dt.run(config, table=loads() if table is None else table, **options)


# --- rounds and windows -------------------------------------------------------------------------------------------


@pytest.mark.exhaust
def test_without_noise_the_series_is_the_truth_and_windows_are_its_means() -> None:
    """On 5 steps an epsilon of 150 adds noise with probability 2 e^-30 per report; values lie on the grid."""
    table = loads().with_columns(watts=(pl.col("watts") / 20).round() * 20 + 4)
    loud = rehearsal(data={"grid": 20.0}, randomize={**LAPLACE, "epsilon": 150.0})
    document = go(loud, table).document()
    series, rows = document["rounds"]["series"], document["windows"]["rows"]
    means = table.group_by("minute").agg(pl.col("watts").mean()).sort("minute")["watts"].to_list()
    assert series["value"] == pytest.approx(means) and series["truth"] == pytest.approx(means)
    assert [(row["from"], row["to"]) for row in rows] == [(1, 4), (5, 8), (9, 12)]
    assert [row["value"] for row in rows] == pytest.approx([np.mean(means[first : first + 4]) for first in (0, 4, 8)])
    assert document["estimates"]["overall"]["value"] == pytest.approx([np.mean(means)])


@pytest.mark.exhaust
def test_rounds_have_their_standard_errors_and_windows_add_them_as_squares() -> None:
    document = go(rehearsal(data={"grid": 1.0}), loads(rounds=1200)).document()
    series, windows = document["rounds"]["series"], document["windows"]["rows"]
    value, truth, stated = (np.array(series[name]) for name in ("value", "truth", "standard_error"))
    expect_mean(value - truth, 0.0)
    expect_standard_error(value - truth, stated)
    for factor in (SHORT, LONG):
        expect_caught(expect_standard_error, value - truth, factor * stated)
    expect_caught(expect_mean, value - np.roll(truth, 1) + stated / 4, 0.0)
    bounds = np.array(series["bias_bound"])  # of rounding
    reach = np.array([-1.0, 1.0]) * (1.959963984540054 * stated + bounds)[:, None]
    np.testing.assert_allclose(series["unbiased_interval"], value[:, None] + reach)
    for row in windows:
        here = slice(row["from"] - 1, row["to"])
        assert [row["value"], row["truth"]] == pytest.approx([value[here].mean(), truth[here].mean()])
        error = np.sqrt((stated[here] ** 2).sum()) / 4
        assert row["standard_error"] == pytest.approx(error)
        assert np.array(row["unbiased_interval"]) - row["value"] == pytest.approx(
            np.array([-1.0, 1.0]) * (1.959963984540054 * error + bounds[here].max())
        )
    assert len(windows) == 300 and len(series["t"]) == 1200


@pytest.mark.exhaust
def test_what_is_shown_lies_in_the_public_range_and_its_interval_covers_as_before() -> None:
    loud = rehearsal(randomize={**LAPLACE, "epsilon": 0.05}, data={"grid": 1.0}, estimate={"window": 4})
    document = go(loud, loads(rounds=400)).document()
    series, rows = document["rounds"]["series"], document["windows"]["rows"]
    lower, upper = document["collection"]["lower"], document["collection"]["upper"]
    outside = [value for value in series["value"] if not lower <= value <= upper]
    assert len(outside) > 100  # the noise is several times the range
    assert series["possible"] == [min(max(value, lower), upper) for value in series["value"]]
    for ends, raw, truth in zip(series["interval"], series["unbiased_interval"], series["truth"], strict=True):
        assert lower <= ends[0] and ends[1] <= upper
        assert ends[0] < ends[1] and (ends[0] <= truth <= ends[1] or not raw[0] <= truth <= raw[1])
        if raw[0] < upper and raw[1] > lower:
            assert ends == [max(raw[0], lower), min(raw[1], upper)]
    for row in rows:
        assert row["possible"] == min(max(row["value"], lower), upper)
        assert lower <= row["interval"][0] < row["interval"][1] <= upper


@pytest.mark.exhaust
def test_a_projected_mean_is_biased_by_at_most_the_stated_part_of_its_noise() -> None:
    """E[X+] is at most half the standard error; the normal law has 0.399, and six devices' Laplace noise 0.39."""
    loud = rehearsal(randomize={**LAPLACE, "epsilon": 0.5}, data={"grid": 1.0}, estimate={"window": 4})
    table = loads(rounds=1200).with_columns(watts=pl.lit(4.0))  # all at the lower end
    series = go(loud, table).document()["rounds"]["series"]
    bias = (np.array(series["possible"]) - 4.0) / np.array(series["standard_error"])
    # 1,200 means with a deviation of 0.58: 6.2 standard errors, false alarm below 1e-9
    assert 0.39 - 6.2 * 0.58 / 1200**0.5 < bias.mean() < 0.5


@pytest.mark.exhaust
def test_a_window_names_its_missing_rounds_and_counts_back_from_the_last() -> None:
    table = loads(rounds=11).filter(~pl.col("minute").is_in([3, 6, 7]))
    document = go(rehearsal(estimate={"window": 4}), table).document()
    assert [(row["from"], row["to"], row["missing"]) for row in document["windows"]["rows"]] == [
        (4, 7, [6, 7]),
        (8, 11, []),
    ]
    assert document["rounds"]["missing"] == 3 and document["rounds"]["rounds"] == 8


def test_a_spent_budget_ends_the_series_and_is_told() -> None:
    document = go(rehearsal(promise={"cap": 5.5})).document()
    rounds = document["rounds"]
    assert rounds["largest_spent"] == 5.0 == document["local"]["epsilon"] and rounds["devices_at_cap"] == 6
    assert rounds["silent"] == 7 and rounds["held_back"] == 42 and rounds["reports"] == 30
    assert rounds["series"]["value"][5:] == [None] * 7 == rounds["series"]["truth"][5:]
    assert document["windows"]["rows"][-1]["value"]["value"] is None
    assert document["windows"]["rows"][-1]["missing"] == [9, 10, 11, 12]


@pytest.mark.exhaust
def test_the_estimator_is_told_with_the_reason() -> None:
    for asked in ("rao-blackwell", "best"):
        config = rehearsal(randomize={"epsilon": 0.1}, estimate={"estimator": asked})
        told = go(config).document()["estimates"]["estimator"]
        assert told["best"] == "shrunken" and told["reason"].startswith("in the largest round: the noise dominates")
        assert told["name"] == ("shrunken" if asked == "best" else "rao-blackwell")


@pytest.mark.exhaust
def test_the_precision_of_a_report_stands_beside_what_was_asked_for() -> None:
    told = go(rehearsal()).document()["randomizer"]["precision"]
    device = dt.BudgetLaplace(4.0, 104.0, 1.0, beta=0.5, rho=0.9)
    assert told["achieved"] == [device.precision_at(4.0), device.precision_at(104.0)] and told["clamps"]
    assert told["guaranteed_threshold"] > told["published_threshold"] > 1.0


# --- promises -----------------------------------------------------------------------------------------------------


@pytest.mark.exhaust
def test_each_round_is_amplified_at_its_smallest_batch_and_all_of_them_compose() -> None:
    table = loads(rounds=20, devices=60)
    report = go(rehearsal(randomize={"epsilon": 2.0}), table)
    device = dt.BudgetLaplace(4.0, 104.0, epsilon=2.0, beta=0.5, rho=0.9)
    rounds = report.document()["rounds"]
    assert rounds["central_of_a_round"]["epsilon"] == dt.amplify(device, n=20, delta=1e-6).epsilon
    assert rounds["smallest_batch"] == 20 and rounds["alone"] == 0
    expected = compose(
        [ShuffledRound.of(device, 16, times=20)], delta=1e-6
    )  # sizes are rounded down to powers of two
    assert not isinstance(report.evaluation.central, Missing)
    assert report.evaluation.central.epsilon == expected.epsilon < report.evaluation.central.colluding == 40.0
    fewer = go(rehearsal(randomize={"epsilon": 2.0}, promise={"honest": 55}), table).evaluation.central
    assert not isinstance(fewer, Missing) and (fewer.n, fewer.honest_n) == (60, 55)
    assert fewer.epsilon == compose([ShuffledRound.of(device, 11, times=20)], delta=1e-6).epsilon


@pytest.mark.exhaust
def test_no_device_is_promised_more_than_its_own_rounds_compose_to() -> None:
    draw = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], [4, 9, 30])
    present = draw.random((12, 43)) < 0.7
    time, place = np.nonzero(present)
    shuffler = WithinGroups(dt.Groups.from_labels(labels))
    found = Batches.of(shuffler, pl.DataFrame({"place": place, "time": time}), honest=None)
    assert isinstance(found, Batches)
    randomizer = dt.Laplace(lower=0.0, upper=1.0, epsilon=1.0)
    promised = found.of_all_rounds(randomizer, most=int(present.sum(axis=0).max()), delta=1e-6)
    assert not isinstance(promised, Missing)
    for device in (0, 5, 20):
        mine = [present[t, labels == labels[device]].sum() for t in np.flatnonzero(present[:, device])]
        own = compose([ShuffledRound.of(randomizer, int(n)) for n in mine], delta=1e-6)
        assert own.epsilon is not None and own.epsilon <= promised.epsilon + 1e-9


@pytest.mark.exhaust
def test_who_reports_alone_has_the_local_promise_only_and_is_counted() -> None:
    table = loads(rounds=3).filter((pl.col("minute") != 2) | (pl.col("device") != "oven"))
    report = go(rehearsal(estimate={"window": 3}), table)
    rounds = report.document()["rounds"]
    assert rounds["alone"] == 1 and "nobody else" in rounds["central_of_a_round"]["reason"]
    assert any("1 of 17 reports were the only ones of their group" in line for line in report.assumptions)


@pytest.mark.exhaust
def test_orders_of_rounds_add_up() -> None:
    blocks = {"refine": "blocks", "k": 3, "alpha": 1.0}
    report = go(rehearsal(shuffle=blocks))
    rounds = report.document()["rounds"]
    assert (rounds["alpha_of_a_round"], rounds["alpha_of_all_rounds"]) == (1.0, 12.0)
    assert report.evaluation.order.guarantee.alpha == 12.0 and isinstance(report.evaluation.central, Missing)
    assert go(rehearsal()).evaluation.order.guarantee.alpha == 0.0


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", one_in(3, ["uniform", "within_groups", "mallows", "best", "identity"]))
def test_every_shuffler_can_do_a_stream(shuffler: str) -> None:
    section = {"shuffler": shuffler, "alpha": 2.0} if shuffler in ("mallows", "best") else {"shuffler": shuffler}
    report = go(rehearsal(shuffle=section))
    assert isinstance(report.evaluation.central, Missing) == (shuffler == "identity")
    if shuffler == "uniform":
        assert isinstance(Batches.of(Uniform(6), pl.DataFrame({"place": [0, 1], "time": [1, 1]}), honest=6), Batches)


def test_a_graph_groups_its_components(tmp_path: Path) -> None:
    pl.DataFrame(EDGES).write_csv(tmp_path / "edges.csv")
    config = rehearsal(data={"public": []}, shuffle={"groups": None, "graph": str(tmp_path / "edges.csv")})
    document = go(config).document()
    assert document["order"]["summary"]["largest_group"] == 4 and document["rounds"]["alone"] == 24
    assert str(tmp_path) not in json.dumps(document)


# --- releases -----------------------------------------------------------------------------------------------------


@pytest.mark.exhaust
def test_a_released_stream_is_one_release_whatever_the_order_of_its_rows(tmp_path: Path) -> None:
    first = go(release(), out=tmp_path / "out", ledger=tmp_path / "ledger")
    again = go(release(), loads().sort("device", "minute"), ledger=tmp_path / "ledger")
    assert isinstance(first.sanitized, pl.DataFrame) and isinstance(again.sanitized, pl.DataFrame)
    assert first.sanitized.equals(again.sanitized) and first.sanitized.columns == ["minute", "report"]
    assert first.document()["rounds"] == again.document()["rounds"]
    assert first.document()["release"] == {"number": 1, "releases": 1, "total_epsilon": 12.0}
    assert pl.read_parquet(tmp_path / "out" / "sanitized.parquet").equals(first.sanitized)
    assert "truth" not in first.document()["rounds"]["series"] and first.document()["local"]["caveats"] == []


@pytest.mark.exhaust
def test_other_windows_are_read_off_the_same_release_and_other_terms_are_refused(tmp_path: Path) -> None:
    first = go(release(), ledger=tmp_path)
    again = go(release(estimate={"window": 3, "estimator": "best"}), ledger=tmp_path)
    assert isinstance(first.sanitized, pl.DataFrame) and first.sanitized.equals(again.sanitized)
    for changes in ({"promise": {"cap": 5.0}}, {"randomize": {"epsilon": 2.0}}):
        with pytest.raises(UnsupportedError, match="--new-release"):
            go(release(**changes), ledger=tmp_path)
    second = go(release(promise={"cap": 17.0}), ledger=tmp_path, new_release=True)
    assert second.evaluation.local.epsilon == 17.0 and isinstance(second.evaluation.central, Missing)


@pytest.mark.exhaust
def test_a_longer_stream_of_the_same_devices_releases_its_new_rounds_and_adds_their_budget(tmp_path: Path) -> None:
    go(release(), ledger=tmp_path)
    longer = loads(rounds=13)
    with pytest.raises(UnsupportedError, match="72 of these 78 reports were released before"):
        go(release(), longer, ledger=tmp_path)
    new = go(release(estimate={"window": 1}), longer.filter(pl.col("minute") == 13), ledger=tmp_path)
    assert new.evaluation.local.epsilon == 13.0 and new.document()["release"]["releases"] == 2


@pytest.mark.exhaust
def test_no_private_value_and_no_device_is_in_any_file_of_a_release(tmp_path: Path) -> None:
    planted = "7.3456789"
    table = loads().with_columns(watts=pl.when(pl.col("minute") == 5).then(float(planted)).otherwise(pl.col("watts")))
    go(release(), table, out=tmp_path / "out", ledger=tmp_path / "ledger")
    for path in [*(tmp_path / "out").iterdir(), *(tmp_path / "ledger").rglob("*")]:
        content = path.read_bytes() if path.is_file() else b""
        for secret in (planted, planted[:6], "kettle", str(tmp_path)):
            assert secret.encode() not in content, (path.name, secret)


def test_a_stream_in_which_nobody_is_shuffled_is_not_released(tmp_path: Path) -> None:
    alone = loads().with_columns(house=pl.col("device"))
    with pytest.raises(UnsupportedError, match="publish who sent what"):
        go(release(), alone, ledger=tmp_path)


# --- refusals -----------------------------------------------------------------------------------------------------


def changed(column: str, row: int, value: Any) -> pl.DataFrame:
    """The stream with another value in one row."""
    here = pl.int_range(pl.len()) == row
    return loads().with_columns(pl.when(here).then(pl.lit(value)).otherwise(pl.col(column)).alias(column))


WRONG: dict[str, tuple[pl.DataFrame, str]] = {
    "outside the range": (changed("watts", 3, 104.5), r"1 value lies outside .* \[4, 104\] .at row 4"),
    "not a number": (changed("watts", 3, math.nan), "1 value is missing .at row 4"),
    "infinite": (changed("watts", 3, math.inf), "1 value is no number .at row 4"),
    "empty": (changed("watts", 3, None), "1 value is missing .at row 4"),
    "twice in a round": (changed("device", 1, "kettle"), "one value in a round .first at rows 1, 2: 'kettle'"),
    "goes back": (changed("minute", 12, 1).with_row_index().filter(pl.col("index") != 0), "goes back in 1 row"),
    "a name in two spellings": (changed("device", 1, "kettle "), "spells a device in two ways, such as"),
    "stamp 0": (changed("minute", 3, 0), "1 stamp is no whole number 1, 2, .. of rounds .at row 4: 0"),
    "stamp a fraction": (changed("minute", 3, 1.5), "no whole number"),
    "stamp missing": (changed("minute", 3, None), "time column 'minute': 1 value is missing"),
    "stamp a date": (
        loads().with_columns(minute=pl.date(2024, 1, 1) + pl.duration(days=pl.col("minute"))),
        "has type Date; number the rounds",
    ),
    "house changes": (changed("house", 3, "west"), "1 device changes a public column .house. .* first 'fridge'"),
    "no rows": (loads().clear(), "has no rows"),
    "no column": (loads().rename({"minute": "hour"}), "no column 'minute'"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_row_gets_one_line_and_releases_nothing(wrong: str, tmp_path: Path) -> None:
    table, message = WRONG[wrong]
    with pytest.raises(DataError, match=message) as caught:
        go(release(), table, ledger=tmp_path / "ledger")
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "ledger").exists()


@pytest.mark.exhaust
def test_a_file_is_read_like_a_table(tmp_path: Path) -> None:
    loads().write_csv(tmp_path / "loads.csv")
    config = rehearsal(data={"path": str(tmp_path / "loads.csv")})
    assert dt.run(config).document()["rounds"] == go(rehearsal()).document()["rounds"]


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "beta": ({"randomize": {"beta": 1.5}}, r"`randomize\.beta` must be less than 1, got 1\.5"),
    "rho": ({"randomize": {"rho": 0.0}}, r"`randomize\.rho` must be greater than 0, got 0\.0"),
    "beta missing": ({"randomize": {"beta": None}}, r"`randomize\.beta` is missing"),
    "beta for laplace": ({"randomize": {"randomizer": "laplace"}}, "goes with randomizer 'budget_laplace'"),
    "a range that touches zero": ({"data": {"lower": 0.0}}, "No epsilon guarantees a relative precision"),
    "k too large": ({"shuffle": {"refine": "blocks", "k": 7, "alpha": 1.0}}, "`k` must be a whole .* at most 6"),
    "k alone": ({"shuffle": {"k": 2}}, "`refine` and `k`, the number of refined groups, go together"),
    "refine without alpha": ({"shuffle": {"k": 2, "refine": "blocks"}}, "'rase' needs `alpha`"),
    "rase without groups": ({"shuffle": {"groups": None}}, "'rase' needs `groups` or `graph`"),
    "a graph for others": ({"shuffle": {"shuffler": "within_groups", "graph": "e.csv"}}, "goes with shuffler 'rase'"),
    "two ways to group": ({"shuffle": {"graph": "e.csv"}}, "give either `groups` or `graph`"),
    "cap below one report": ({"promise": {"cap": 0.5}}, "cap must be at least the 1 nats of one report, got 0.5"),
    "window too long": ({"estimate": {"window": 13}}, "`estimate.window` must be at most the 12 rounds from 1 to 12"),
    "groups to estimate by": ({"estimate": {"by": ["house"]}}, r"\[estimate\] by is for single tables"),
    "compare": ({"shuffle": {"compare": ["uniform"]}}, r"\[shuffle\] compare is for single tables"),
    "attack": ({"attack": {"votes": 3}}, r"\[attack\] is for single tables"),
    "too many honest": ({"promise": {"honest": 7}}, "`promise.honest` must be at most the 6 devices"),
    "nobody named": ({"data": {"person": None}}, "name the column of devices as `person`"),
    "no bounds": ({"data": {"lower": None, "upper": None}}, "declare `lower` and `upper`"),
    "one column, two roles": ({"data": {"time": "device"}}, "column 'device' has more than one role"),
    "cap for a table": ({"data": {"time": None}, "promise": {"cap": 5.0}}, r"\[promise\] cap is for streams"),
}  # fmt: skip


@pytest.mark.parametrize("impossible", IMPOSSIBLE)
def test_an_impossible_stream_gets_one_line(impossible: str) -> None:
    changes, message = IMPOSSIBLE[impossible]
    with pytest.raises(DovetailError, match=message) as caught:
        go(rehearsal(**changes))
    assert len(str(caught.value).splitlines()) == 1


def test_a_graph_of_other_devices_is_refused(tmp_path: Path) -> None:
    config = rehearsal(shuffle={"groups": None, "graph": str(tmp_path / "edges.csv")})
    for edges, message in (
        ({"a": ["kettle"], "b": ["toaster"]}, "1 device of the graph is not in the table, first 'toaster'"),
        ({"a": ["kettle"]}, "must have two columns"),
    ):
        pl.DataFrame(edges).write_csv(tmp_path / "edges.csv")
        with pytest.raises(DataError, match=message):
            go(config)


@pytest.mark.exhaust
def test_a_table_is_no_stream_and_says_so() -> None:
    single = rehearsal(data={"time": None}, estimate={"window": None})
    document = go(single, loads(rounds=1)).document()
    for key in ("rounds", "windows"):
        assert document[key]["value"] is None and "`time`" in document[key]["reason"]
    assert document["randomizer"]["precision"]["clamps"] and document["order"]["alpha"] == 0.0
    with pytest.raises(ConfigError, match="window is for streams"):
        go(rehearsal(data={"time": None}), loads(rounds=1))
