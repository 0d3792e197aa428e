"""The main job: what comes out is right, and nothing comes out that must not."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from tests.job.surveys import numeric, rehearsal, release, survey
from tests.statistics import FALSE_ALARM, expect_broken
from tests.tiers import tiered

import dovetail as dt
from dovetail.core.errors import ConfigError, DataError, OutputError, UnsupportedError
from dovetail.core.estimate import Estimate
from dovetail.core.missing import Missing
from dovetail.job.evaluate import shares_of
from dovetail.report.document import MeasuredAttack, PrivacyReport
from dovetail.table.reader import as_text
from dovetail.table.spelling import names_of

BY_AGE = {"shuffler": "within_groups", "groups": {"labels": "age"}}
NEAR_AGE = {"shuffler": "mallows", "alpha": 4.0, "groups": {"labels": "age", "radius": 1.0}}
RASE = {**BY_AGE, "shuffler": "rase"}
REFINED = {**RASE, "refine": "blocks", "k": 6, "alpha": 3000.0}
ALL_FOUR = {**NEAR_AGE, "shuffler": "best", "compare": ["identity", "uniform", "mallows"]}
QUICK = {"trials": 5, "targets": 100}

T = TypeVar("T")


def go(config: dict[str, Any], table: pl.DataFrame | None = None, **options: Any) -> PrivacyReport:
    return dt.run(config, table=survey() if table is None else table, **options)


def known(value: T | Missing) -> T:
    assert not isinstance(value, Missing)
    return value


def sanitized(report: PrivacyReport) -> pl.DataFrame:
    assert isinstance(report.sanitized, pl.DataFrame)
    return report.sanitized


# --- rehearsals ---------------------------------------------------------------------------------------------------


def test_a_rehearsal_writes_a_marked_report_and_no_sanitized_table(tmp_path: Path) -> None:
    report = go(rehearsal(shuffle=ALL_FOUR, attack=QUICK), out=tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]
    document = json.loads((tmp_path / "out" / "report.json").read_text())
    assert next(iter(document)) == "schema_version"
    assert document == json.loads(json.dumps(report.document()))
    keys = {"mode", "local", "central", "order", "leakage", "attack", "estimates", "files"}
    assert keys <= set(document)
    assert document["watermark"].startswith("REHEARSAL: contains the truth")
    assert document["local"]["caveats"], "simulated randomness takes the promise away"
    assert document["files"]["sanitized"]["value"] is None
    assert "REHEARSAL" in (tmp_path / "out" / "report.html").read_text()
    assert [evaluation.shuffler for evaluation in report.comparison] == ["identity", "mallows", "uniform"]


@pytest.mark.exhaust
def test_a_seed_makes_a_rehearsal_reproducible_and_another_seed_does_not() -> None:
    config = rehearsal(shuffle=BY_AGE, attack=QUICK)
    assert go(config).document() == go(config).document()
    assert go({**config, "seed": 2}).evaluation.estimates != go(config).evaluation.estimates


@pytest.mark.parametrize("delta, questioned", [(0.01, True), (1e-6, False)])
def test_a_delta_that_allows_publishing_somebody_is_questioned(delta: float, questioned: bool) -> None:
    document = go(rehearsal(shuffle={"shuffler": "uniform"}, attack=QUICK, promise={"delta": delta})).document()
    assert any("not below 1/n" in caveat for caveat in document["central"]["caveats"]) == questioned


def test_a_rehearsal_is_no_release_that_could_be_drawn_anew() -> None:
    with pytest.raises(ConfigError, match="`new_release` is for releases"):
        go(rehearsal(), new_release=True)


@pytest.mark.exhaust
def test_without_noise_every_estimate_is_the_truth_of_its_people() -> None:
    """At an epsilon of 40 somebody's report is another one with probability 600 e^-40."""
    loud = rehearsal(shuffle=BY_AGE, randomize={"epsilon": 40.0}, estimate={"by": ["age", "town"]}, attack=QUICK)
    found, table = go(loud).evaluation.estimates, survey()
    assert not isinstance(found.groups, Missing) and len(found.groups) == 6
    for entry in [found.overall, *found.groups]:
        here = table if entry.by is None else table.filter(pl.col(entry.by).cast(str) == entry.group)
        shares = [(here["secret"] == answer).mean() for answer in ("no", "yes")]
        assert entry.truth == pytest.approx(shares) and entry.value == pytest.approx(shares) and entry.n == len(here)


def test_estimates_are_those_of_the_library_on_what_is_released(tmp_path: Path) -> None:
    """Whose intervals cover: `tests/estimate/test_coverage.py`."""
    report = go(release(shuffle=BY_AGE, estimate={"by": ["age", "town"]}), ledger=tmp_path)
    found, out = report.evaluation.estimates, sanitized(report)
    assert not isinstance(found.groups, Missing) and len(found.groups) == 6
    for entry in [found.overall, *found.groups]:
        here = out if entry.by is None else out.filter(pl.col(entry.by).cast(str) == entry.group)
        wanted = dt.estimate_frequencies(dt.KRR(k=2, epsilon=2.0), (here["report"] == "yes").cast(int).to_numpy())
        assert entry.value == pytest.approx(wanted.value) and entry.n == wanted.n == len(here)
        assert entry.standard_error == pytest.approx(wanted.standard_error)
        np.testing.assert_allclose(np.transpose(entry.interval), wanted.interval(0.95))


def test_an_interval_reaches_to_the_possible_value_and_covers_no_less_for_it() -> None:
    value, error = np.array([0.9, 0.6, -0.1]), np.full(3, 0.01)
    found = shares_of(Estimate(value, error, 1000, error), ["a", "b", "c"], None)
    assert found.possible == pytest.approx([0.65, 0.35, 0.0])
    reach = 1.959964 * 0.01
    wanted = [(0.65, 0.9 + reach), (0.35, 0.6 + reach), (0.0, 0.0)]
    assert np.array(found.interval) == pytest.approx(np.array(wanted), abs=1e-7)


@pytest.mark.exhaust
def test_each_metric_applies_where_a_theorem_says_so() -> None:
    report = go(rehearsal(shuffle=ALL_FOUR, attack=QUICK))
    by_name = {evaluation.shuffler: evaluation for evaluation in report.comparison}
    uniform, identity, mallows = by_name["uniform"], by_name["identity"], by_name["mallows"]
    assert known(uniform.central).epsilon < 2.0
    assert isinstance(uniform.estimates.groups, Missing)
    assert isinstance(identity.central, Missing) and identity.order.guarantee.alpha == float("inf")
    smallest = min(survey()["age"].value_counts()["count"])  # of those who can stand for each other
    assert (
        known(mallows.central).n == smallest and known(uniform.central).epsilon < known(mallows.central).epsilon < 2.0
    )
    assert isinstance(known(mallows.leakage).randomized_shuffled, Missing)
    assert uniform.order.guarantee.alpha == 0.0 and mallows.order.guarantee.alpha == 4.0
    assert known(known(uniform.leakage).randomized_shuffled) < known(uniform.leakage).randomized


@pytest.mark.exhaust
def test_within_groups_is_quoted_at_its_smallest_group() -> None:
    table = survey()
    smallest = min(table["age"].value_counts()["count"])
    evaluation = go(rehearsal(shuffle=BY_AGE, attack=QUICK)).evaluation
    expected = dt.amplify(dt.KRR(k=2, epsilon=2.0), n=smallest, delta=1e-6)
    assert known(evaluation.central).epsilon == expected.epsilon
    assert known(evaluation.leakage).randomized_shuffled == dt.vulnerability(
        dt.KRR(k=2, epsilon=2.0).channel(), n=smallest
    ).randomized_shuffled  # fmt: skip
    lonely = table.with_columns(age=pl.when(pl.col("id") == 0).then(99).otherwise(pl.col("age")))
    alone = go(rehearsal(shuffle=BY_AGE, attack=QUICK), lonely).evaluation
    assert isinstance(alone.central, Missing) and "nobody else" in alone.central.reason
    assert known(alone.leakage).randomized_shuffled == pytest.approx(known(alone.leakage).randomized)


@pytest.mark.exhaust
def test_rase_promises_what_the_shuffler_it_chose_promises() -> None:
    own, plain = (go(rehearsal(shuffle=shuffle, attack=QUICK)).evaluation for shuffle in (RASE, BY_AGE))
    assert (own.central, own.leakage, own.estimates) == (plain.central, plain.leakage, plain.estimates)
    assert own.shuffler == "rase" and own.order.guarantee == plain.order.guarantee
    refined = go(rehearsal(shuffle=REFINED, attack=QUICK)).evaluation
    assert isinstance(refined.central, Missing) and refined.order.guarantee.alpha == 3000.0
    assert "contributors' own groups" in refined.order.guarantee.source


@pytest.mark.exhaust
def test_dishonest_people_are_assumed_to_sit_in_the_smallest_group() -> None:
    central = known(go(rehearsal(shuffle=BY_AGE, promise={"honest": 590}, attack=QUICK)).evaluation.central)
    assert central.honest_n == central.n - 10
    assert central.all < central.epsilon == central.honest < central.colluding


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", ["hadamard", "unary", "local_hashing"])
def test_other_randomizers_have_every_metric_too(randomizer: str) -> None:
    evaluation = go(rehearsal(randomize={"randomizer": randomizer}, shuffle=BY_AGE, attack=QUICK)).evaluation
    leakage = known(evaluation.leakage)
    assert leakage.prior < known(leakage.randomized_shuffled) < leakage.randomized
    assert not isinstance(evaluation.attacks, Missing) and not isinstance(evaluation.learnability, Missing)
    assert isinstance(evaluation.attacks["majority vote"], MeasuredAttack) and isinstance(
        evaluation.attacks["likelihood"], MeasuredAttack
    )
    value, error, truth = evaluation.estimates.overall.value, evaluation.estimates.overall.standard_error, 0.35
    assert abs(value[1] - truth) < 6.1 * error[1] + 0.1


@pytest.mark.exhaust
def test_numbers_are_collected_on_a_grid_and_averaged() -> None:
    evaluation = go(numeric(rehearsal(shuffle=BY_AGE))).evaluation
    found = evaluation.estimates
    assert found.measure == "mean" and found.overall.truth is not None and not isinstance(found.groups, Missing)
    assert abs(found.overall.value[0] - found.overall.truth[0]) < 6.1 * found.overall.standard_error[0] + 0.01
    assert len(found.groups) == 4


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "shuffler", tiered(["noisy_sort", "planar", "mallows", "best"], first=lambda name: name == "planar")
)
def test_order_private_shuffles_of_places_keep_regions_apart(shuffler: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    x, y = draw.random((2, 2000))
    table = pl.DataFrame({"secret": np.where(draw.random(2000) < x, "yes", "no"), "x": x, "y": y})
    table = table.with_columns(side=pl.when(pl.col("x") > 0.5).then(pl.lit("east")).otherwise(pl.lit("west")))
    config = release(
        data={"person": None, "public": ["x", "y", "side"]},
        shuffle={"shuffler": shuffler, "alpha": 8.0, "groups": {"points": ["x", "y"], "radius": 0.02}},
        estimate={"by": ["side"]},
    )
    evaluation = go(config, table, ledger=tmp_path).evaluation
    assert evaluation.order.guarantee.alpha == 8.0 and evaluation.order.guarantee.protects
    assert isinstance(evaluation.central, Missing) and not isinstance(evaluation.estimates.groups, Missing)
    east, west = evaluation.estimates.groups
    for entry in (east, west):
        truth = np.mean(table.filter(side=entry.group)["secret"].to_numpy() == "yes")
        # widened by what left the region, which is little here; 6.1 standard errors: false alarm below 1e-9
        assert abs(entry.value[1] - truth) < entry.bias_bound + 6.1 * entry.standard_error[1]
        assert entry.bias_bound < 0.1
    assert east.interval[1][0] > west.interval[1][1], "the regions can be told apart"


@pytest.mark.exhaust
def test_small_groups_are_withheld() -> None:
    table = survey().with_columns(age=pl.when(pl.col("id") < 30).then(60).otherwise(pl.col("age")))
    estimates = go(
        rehearsal(shuffle=BY_AGE, estimate={"min_group_size": 40}, attack=QUICK), table
    ).evaluation.estimates
    assert not isinstance(estimates.groups, Missing)
    assert "60" not in {entry.group for entry in estimates.groups}
    assert estimates.withheld == [{"by": "age", "groups": 1, "people": 30}]


# --- releases -----------------------------------------------------------------------------------------------------


def test_a_release_draws_from_the_operating_system_and_knows_no_truth(tmp_path: Path) -> None:
    report = go(release(shuffle=BY_AGE), out=tmp_path / "out", ledger=tmp_path / "ledger")
    document = report.document()
    assert document["entropy"] == "device" and document["watermark"]["value"] is document["seed"]["value"] is None
    assert document["local"]["caveats"] == []
    for key in ("attack", "attacks", "learnability"):
        assert document[key]["value"] is None and "truth" in document[key]["reason"]
    assert "truth" not in document["estimates"]["overall"]
    table = pl.read_parquet(tmp_path / "out" / "sanitized.parquet")
    assert table.columns == ["age", "town", "report"] and table.height == 600
    assert set(table["report"]) <= {"no", "yes"}


def test_a_uniform_release_has_no_public_columns(tmp_path: Path) -> None:
    assert sanitized(go(release(), ledger=tmp_path)).columns == ["report"]


@pytest.mark.parametrize(
    "shuffle", [{"shuffler": "uniform"}, BY_AGE, NEAR_AGE, RASE, REFINED], ids=lambda s: s["shuffler"]
)
def test_a_repeated_release_gives_the_same_reports_whatever_the_order_of_the_rows(
    tmp_path: Path, shuffle: dict[str, Any]
) -> None:
    config = release(shuffle=shuffle)
    first = go(config, ledger=tmp_path)
    again = go(config, survey().sort("secret"), ledger=tmp_path)
    assert sanitized(first).equals(sanitized(again))
    assert first.evaluation.estimates == again.evaluation.estimates
    assert first.evaluation.order.summary == again.evaluation.order.summary


@pytest.mark.exhaust
def test_other_estimates_are_read_off_the_same_release(tmp_path: Path) -> None:
    first = go(release(shuffle=BY_AGE), ledger=tmp_path)
    again = go(release(shuffle=BY_AGE, estimate={"by": ["town"]}, promise={"delta": 1e-8}), ledger=tmp_path)
    assert sanitized(first).equals(sanitized(again))


def test_a_second_release_needs_a_wish_and_its_budget_adds(tmp_path: Path) -> None:
    first = go(release(), ledger=tmp_path)
    with pytest.raises(UnsupportedError, match="--new-release"):
        go(release(randomize={"epsilon": 1.0}), ledger=tmp_path)
    alone = go(release(randomize={"epsilon": 1.0}), ledger=tmp_path / "another")
    second = go(release(randomize={"epsilon": 1.0}), ledger=tmp_path, new_release=True)
    assert second.evaluation.local.epsilon == 3.0 and "composition" in second.evaluation.local.source
    assert second.document()["release"] == {"number": 2, "releases": 2, "total_epsilon": 3.0}
    both, last = known(second.evaluation.central), known(alone.evaluation.central)
    assert both.colluding == 3.0 and both.delta == 2 * last.delta and both.attack_lower == 0.0
    assert both.honest == pytest.approx(known(first.evaluation.central).honest + last.honest)


def test_naming_the_categories_in_another_order_is_still_the_same_table(tmp_path: Path) -> None:
    go(release(), ledger=tmp_path)
    for categories in (["yes", "no"], ["maybe", "no", "yes"]):
        with pytest.raises(UnsupportedError, match="--new-release"):
            go(release(data={"categories": categories}), ledger=tmp_path)


def test_other_people_with_the_same_answers_are_not_taken_for_these(tmp_path: Path) -> None:
    first = go(release(), ledger=tmp_path)
    others = go(release(), survey().with_columns(id=pl.col("id") + 10_000), ledger=tmp_path)
    assert others.document()["release"]["releases"] == 1
    assert not sanitized(first).equals(sanitized(others))


def test_people_of_an_earlier_release_add_up_without_being_asked(tmp_path: Path) -> None:
    go(release(shuffle=BY_AGE), ledger=tmp_path)
    grown = go(release(shuffle=BY_AGE), survey(700), ledger=tmp_path)
    assert grown.evaluation.local.epsilon == 4.0 and grown.document()["release"]["releases"] == 2
    assert isinstance(grown.evaluation.central, Missing), "so many people are not these people"
    assert grown.evaluation.order.guarantee.alpha == float("inf"), "the groups are not the same"


def test_people_are_recognised_whether_their_numbers_came_as_text_or_not(tmp_path: Path) -> None:
    survey().write_csv(tmp_path / "t.csv")
    survey(700).write_parquet(tmp_path / "t.parquet")
    for name, releases in (("t.csv", 1), ("t.parquet", 2)):
        report = dt.run(release(data={"path": str(tmp_path / name)}), ledger=tmp_path / "ledger")
        assert report.document()["release"]["releases"] == releases


BIG = 2**53
KINDS: dict[str, pl.DataType | type[pl.DataType]] = {
    "whole": pl.Int64,
    "float": pl.Float64,
    "text": pl.String,
    "decimal": pl.Decimal(38, 2),
}


def of_people(first: int, kind: str, place: Path, *, step: int = 2) -> dict[str, Any]:
    """A release of 300 people whose ids are whole numbers above 2^53, held as `kind`."""
    people = survey(300).with_columns(id=(pl.int_range(300, dtype=pl.Int64) * step + first).cast(KINDS[kind]))
    people.write_parquet(place) if place.suffix == ".parquet" else people.write_csv(place)
    return release(data={"path": str(place)}, estimate={"by": []})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", ["whole", "text"])
def test_large_ids_are_different_people_where_one_double_holds_both(kind: str, suffix: str, tmp_path: Path) -> None:
    for number, first in enumerate((BIG, BIG + 1)):  # even ids, then odd ones
        config = of_people(first, kind, tmp_path / f"{number}{suffix}")
        assert dt.run(config, ledger=tmp_path / "ledger").document()["release"]["releases"] == 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind, least", [("float", BIG), ("float", 2**60), ("text", 2**60), ("decimal", BIG)])
def test_large_ids_are_the_same_people_however_a_file_holds_them(
    kind: str, least: int, suffix: str, tmp_path: Path
) -> None:
    """Doubles from 1e16 on are written with an exponent, the smaller ones with a point."""
    first = dt.run(of_people(least, "whole", tmp_path / "whole.csv", step=256), ledger=tmp_path / "ledger")
    again = dt.run(of_people(least, kind, tmp_path / f"other{suffix}", step=256), ledger=tmp_path / "ledger")
    assert again.document()["release"] == first.document()["release"], "the same table under the same terms"


def test_a_number_has_one_spelling_and_another_number_has_another() -> None:
    """Doubles above 2^53 are whole numbers, written in all their digits."""
    alike = ["9007199254740994", "9.007199254740994e15", "9007199254740994.0", "+09007199254740994"]
    assert set(as_text(pl.Series(alike))) == {"9007199254740994"}
    assert as_text(pl.Series([2.0**60, -(2.0**53), float("inf")])).to_list() == [str(2**60), str(-(2**53)), "inf"]
    apart = [BIG + step for step in range(9)] + [2**63 - 1, 2**63 - 2, -BIG, -BIG - 1, 1, 0]
    assert as_text(pl.Series(apart)).n_unique() == as_text(pl.Series(map(str, apart))).n_unique() == len(apart)
    assert as_text(pl.Series(["1", "01", "1.0", "nan", "1e400"])).to_list() == ["1.0"] * 3 + ["NaN", "inf"]
    assert as_text(pl.Series(["7", str(BIG), "seven"])).to_list() == ["7", str(BIG), "seven"], "names, not numbers"


def mixed(number: str) -> Callable[[int], str]:
    return lambda place: number.format(place) if place else "Ann"


def day(place: int) -> datetime:
    return datetime(2030, 1, 1) + timedelta(days=place)


SPELLINGS: dict[
    str, tuple[Callable[[int], str], Callable[[int], str]]
] = {  # of whole numbers, and of names; beside each how the same people are written elsewhere
    "zeros": (str, "{:05d}".format),
    "points": (str, "{}.0".format),
    "blanks": ("p{}".format, " p{} ".format),
    "blanks of an export": ("p{}".format, "p{}\u00a0".format),
    "Unicode forms": ("\u00dc{}".format, "U\u0308{}".format),
    "wide digits": (str, lambda place: str(place).translate({48 + digit: 0xFF10 + digit for digit in range(10)})),
    "signs that nobody sees": ("p{}".format, "\ufeffp\u200b{}\u00ad".format),
    "days and midnights": (lambda place: str(day(place).date()), lambda place: f"{day(place):%FT%T}"),
    "numbers among names": (mixed("{}.0"), mixed("{}")),
}


def of_names(write: Callable[[int], str]) -> pl.DataFrame:
    return survey(300).with_columns(id=pl.Series([write(place) for place in range(300)]))


@pytest.mark.parametrize("kind", SPELLINGS)
def test_people_are_the_same_however_their_names_are_spelled(kind: str, tmp_path: Path) -> None:
    config = release(estimate={"by": []})
    for releases, write in enumerate(SPELLINGS[kind], start=1):
        table = of_names(write).with_columns(pl.col("secret").shift(releases, fill_value=survey(300)["secret"][0]))
        assert go(config, table, ledger=tmp_path).document()["release"]["releases"] == releases


def test_a_date_is_the_same_person_as_its_midnight_and_no_other_time() -> None:
    days = pl.Series([day(place) for place in range(3)])
    for unit in ("ms", "us", "ns"):
        assert names_of(days.dt.cast_time_unit(unit)).to_list() == names_of(days.cast(pl.Date)).to_list()
    assert names_of(days + timedelta(hours=1)).to_list() != names_of(days.cast(pl.Date)).to_list()


def test_one_more_person_with_a_name_does_not_make_the_others_new(tmp_path: Path) -> None:
    config = release(estimate={"by": []})
    go(config, of_names(str), ledger=tmp_path)
    more = go(config, of_names(mixed("{}")), ledger=tmp_path)
    assert more.document()["release"]["releases"] == 2


@pytest.mark.parametrize("kind", SPELLINGS)
def test_a_person_stands_twice_however_the_name_is_spelled(kind: str, tmp_path: Path) -> None:
    one, other = SPELLINGS[kind]
    table = of_names(lambda place: other(7) if place == 8 else one(place))
    with pytest.raises(DataError, match="1 person stands in more than one row"):
        go(release(estimate={"by": []}), table, ledger=tmp_path)
    kept = release(estimate={"by": []}, data={"duplicates": "first"})
    assert go(kept, table, ledger=tmp_path).document()["collection"]["n"] == 299


@pytest.mark.exhaust
def test_order_promises_of_the_same_groups_add_over_releases(tmp_path: Path) -> None:
    go(release(shuffle=NEAR_AGE), ledger=tmp_path)
    second = go(release(shuffle=NEAR_AGE), ledger=tmp_path, new_release=True)
    assert second.evaluation.order.guarantee.alpha == 8.0
    third = go(release(), ledger=tmp_path, new_release=True)
    assert third.evaluation.order.guarantee.alpha == 8.0, "a uniform shuffle tells nothing of the order in any group"
    fourth = go(release(shuffle=BY_AGE), ledger=tmp_path, new_release=True)
    assert fourth.evaluation.order.guarantee.alpha == float("inf")


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffle", [{**BY_AGE, "groups": {"labels": "id2"}}, {**NEAR_AGE, "alpha": float("inf")}],
                         ids=["alone", "alpha infinite"])  # fmt: skip
def test_a_release_in_which_nobody_is_shuffled_is_refused(tmp_path: Path, shuffle: dict[str, Any]) -> None:
    table = survey().with_columns(id2=pl.col("id") + 5)
    config = release(data={"public": ["age", "id2"]}, shuffle=shuffle)
    with pytest.raises(UnsupportedError, match="publish who sent what"):
        go(config, table, ledger=tmp_path)
    promise = go({**config, "mode": "rehearsal", "seed": 1, "attack": QUICK}, table).evaluation.order.guarantee
    assert not promise.protects


def test_the_order_of_the_file_is_not_even_in_the_buffers_of_the_released_table(tmp_path: Path) -> None:
    names = [f"{row:04d} a street with a long name" for row in range(300)]
    table = pl.DataFrame({"secret": ["no"] * 150 + ["yes"] * 150, "street": names, "age": [20, 21] * 150})
    enum = pl.Enum(names)
    for kind, frame in (("text", table), ("enum", table.with_columns(pl.col("street").cast(enum)))):
        config = release(data={"person": None, "public": ["street", "age"]}, shuffle=BY_AGE, estimate={"by": []})
        report = go(config, frame, ledger=tmp_path / kind)
        sanitized(report).write_ipc(tmp_path / "copy.arrow")
        content = (tmp_path / "copy.arrow").read_bytes()
        places = [content.find(name.encode()) for name in names]
        assert places != sorted(places), "the order of the file can be read off"


def test_planted_values_dropped_columns_and_row_order_are_in_no_release_file(tmp_path: Path) -> None:
    planted = "7.3456789"
    table = survey().with_columns(hours=pl.when(pl.col("id") == 5).then(float(planted)).otherwise(pl.col("hours")))
    config = numeric(release(shuffle=BY_AGE))
    go(config, table, out=tmp_path / "out", ledger=tmp_path / "ledger")
    for path in [*(tmp_path / "out").iterdir(), *(tmp_path / "ledger").rglob("*")]:
        content = path.read_bytes() if path.is_file() else b""
        for secret in (planted, planted[:6], "dropped-", str(tmp_path)):
            assert secret.encode() not in content, (path.name, secret)
    frame = pl.read_parquet(tmp_path / "out" / "sanitized.parquet")
    assert frame.columns == ["age", "town", "report"]
    assert not np.isin(frame["report"].to_numpy(), table["hours"].to_numpy() + 1e-12).all()


def places_of_yes(table: pl.DataFrame, ledger: Path, runs: int) -> np.ndarray:
    """How often each place of the sanitized table holds the report "yes" over fresh releases, epsilon large."""
    config = release(data={"public": []}, randomize={"epsilon": 12.0}, estimate={"by": []})
    counts = np.zeros(table.height, dtype=int)
    for run in range(runs):
        report = go(config, table, ledger=ledger / str(run))
        counts += (sanitized(report)["report"] == "yes").to_numpy()
    return counts


@pytest.mark.exhaust
def test_sorting_the_input_by_the_secret_changes_nothing_in_distribution(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": range(12), "secret": ["no"] * 6 + ["yes"] * 6})
    runs = 200
    counts = places_of_yes(table, tmp_path, runs)
    # each place holds a yes with probability 1/2 (within e^-12), whatever the input order
    tails = np.minimum(binom.cdf(counts, runs, 0.5), binom.sf(counts - 1, runs, 0.5))
    assert 2 * counts.size * tails.min() >= FALSE_ALARM
    leaky = np.array([0] * 6 + [runs] * 6)  # what a release in input order would show
    expect_broken([leaky[0], runs - leaky[0]], [0.5, 0.5])


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_ledger_inside_the_output_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must lie outside"):
        go(release(), out=tmp_path / "out", ledger=tmp_path / "out" / "ledger")


@pytest.mark.exhaust
def test_an_existing_report_is_found_before_anything_is_drawn(tmp_path: Path) -> None:
    go(rehearsal(attack=QUICK), out=tmp_path / "out")
    with pytest.raises(OutputError, match="--force"):
        go(release(), out=tmp_path / "out", ledger=tmp_path / "ledger")
    assert not (tmp_path / "ledger").exists()


def test_one_row_runs_and_promises_no_more_than_the_local_guarantee() -> None:
    evaluation = go(rehearsal(attack={"targets": 1, "trials": 2}), survey().head(1)).evaluation
    assert isinstance(evaluation.central, Missing)
    with pytest.raises(DataError, match="no rows"):
        go(rehearsal(), survey().clear())
