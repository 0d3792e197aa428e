"""Traces in files, the private ledger and the verbs: only names, times and places come out, repeats replay."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.collect.durability import disk_steps

from dovetail.cli.main import invoke
from dovetail.core.entropy import system_entropy
from dovetail.core.errors import DataError, OutputError, UnsupportedError
from dovetail.trace.kernels import Matern32
from dovetail.trace.ledger import StoredRelease, TraceEntry, TraceLedger
from dovetail.trace.loss import condition, information
from dovetail.trace.noise import design_trace, joint_noise
from dovetail.trace.plan import TracePlan, TracePrior
from dovetail.trace.protect import UNNAMED, Protection, composed_guarantee, joint_prior
from dovetail.trace.table import TraceColumns, read_traces, write_traces
from dovetail.trace.trace import SecretTimes, TangentPlane, Trace

PRIOR = TracePrior(Matern32(120.0), np.array([[900.0, 200.0], [200.0, 400.0]]))
PLAN = TracePlan(PRIOR, SecretTimes(((60.0, 60.0),)), radius=50.0, error=20.0, noise="mixed")
TIMES = np.arange(10.0) * 15.0


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    return tmp_path


def walks(count: int, seed: int, *, n: int = 30) -> pl.DataFrame:
    """Random walks around Porto, 15 s between points."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(count):
        steps = (
            np.cumsum(rng.normal(0, 1e-4, (n, 2)), axis=0) + np.cumsum(rng.normal(0, 3e-4, 2)) * np.arange(n)[:, None]
        )
        places = np.array([41.15, -8.6]) + rng.normal(0, 0.01, 2) + steps
        stamps = 1_372_636_800 + 10_000 * number + 15 * np.arange(n)
        columns = {"trace": f"t{number}", "person": f"p{number % 3}", "time": stamps, "speed": 1.0}
        parts.append(pl.DataFrame({**columns, "latitude": places[:, 0], "longitude": places[:, 1]}, strict=False))
    return pl.concat(parts)


def trace(seed: int = 1, start: float = 0.0) -> Trace:
    """A trace in metres."""
    return Trace.of(f"t{seed}", TIMES + start, np.cumsum(np.random.default_rng(seed).normal(0, 20, (10, 2)), axis=0))


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON that a verb prints."""
    assert invoke(["trace", *arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The single line of a refusal."""
    assert invoke(["trace", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.strip().splitlines()) == 1, told
    return told.err


# --- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".gpx", ".geojson"])
def test_traces_survive_every_format(suffix: str) -> None:
    walks(2, 1).write_csv("in.csv")
    table = read_traces(Path("in.csv"))
    plane = PRIOR.plane
    assert plane is None and table.geographic and table.names() == ["t0", "t1"] and table.person("t1") == "p1"
    write_traces(table.rows.select("trace", "time", "latitude", "longitude"), Path("out" + suffix), suffix)
    again = read_traces(Path("out" + suffix))
    assert np.allclose(again.rows["latitude"], table.rows["latitude"], atol=1e-6)
    assert np.array_equal(again.rows["stamp"], table.rows["stamp"])


def test_times_may_be_seconds_or_iso_text() -> None:
    Path("a.csv").write_text("time,x,y\n2013-07-01T00:00:00Z,0,0\n2013-07-01 00:00:15,1,1\n")
    assert read_traces(Path("a.csv")).rows["stamp"].to_list() == [1372636800.0, 1372636815.0]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("time,north,longitude\n1,2,3\n", "latitude and longitude"),
        ("stamp,x,y\n1,2,3\n", "time is missing"),
        ("time,x,y\n", "holds no points"),
        ("time,x,y\n1,NaN,3\n2,1,1\n", "no numbers"),
        ("time,x,y\nnoon,1,3\n", "neither seconds nor an ISO"),
        ("time,x,y\n1372636800000,1,3\n1372636815000,1,4\n", "in milliseconds instead of seconds"),
        ("trace,time,x,y\n,1,1,3\n", "names no trace"),
    ],
)
def test_a_table_that_holds_no_traces_is_refused(text: str, word: str) -> None:
    Path("bad.csv").write_text(text)
    with pytest.raises(DataError, match=word):
        read_traces(Path("bad.csv"))


MESSY = "track_id;timestamp;lat;lon;note\na;2024-05-01T10:00:00;41,15;-8,6;x\na;2024-05-01T10:00:15;41,16;-8,61;y\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_table_is_read_however_it_is_written_and_whatever_its_columns_are_called(encoding: str) -> None:
    Path("messy.csv").write_bytes((MESSY + "b;2024-05-02T10:00:00;41,2;-8,7;é\n").encode(encoding))
    table = read_traces(Path("messy.csv"))
    assert (
        table.names() == ["a", "b"] and table.geographic and table.rows["stamp"][1] - table.rows["stamp"][0] == 15.0
    )
    assert table.rows["latitude"].to_list() == [41.15, 41.16, 41.2]
    named = read_traces(Path("messy.csv"), TraceColumns(trace="note", time="timestamp"))
    assert named.names() == ["x", "y", "é"]
    with pytest.raises(DataError, match=r"has no column 'nte', as --trace says; did you mean 'note'"):
        read_traces(Path("messy.csv"), TraceColumns(trace="nte"))


def test_all_faults_are_in_one_line_and_bad_points_are_left_out_and_counted(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = walks(3, 2)
    rows = [
        "trace,time,lat,lon",
        *(f"{t},{s},{a},{o}" for t, s, a, o in good.select("trace", "time", "latitude", "longitude").iter_rows()),
    ]
    faults = [",5,41,-8", "t0,noon,41,-8", "t0,1,n/a,-8", "t0,2,41,-181", rows[1], "t0,3,41,"]
    Path("bad.csv").write_text("\n".join([*rows, *faults]) + "\n")
    line = refused(capsys, "fit", "bad.csv", "--out", "prior.json")
    for what in (
        "1 point names no trace (at row 91)", "1 point has a time that is neither seconds nor an ISO time",
        "2 points have no numbers as latitude or longitude (first at rows 93, 96)",
        "1 point has a latitude outside", "1 point repeats a time of the same trace (at row 95)", "--drop-bad",
    ):  # fmt: skip
        assert what in line
    assert invoke(["trace", "fit", "bad.csv", "--out", "prior.json", "--drop-bad", "--json"]) == 0
    told = capsys.readouterr()
    assert told.err.count("left out: ") == 5 and json.loads(told.out)["traces"] == 3
    assert read_traces(Path("bad.csv"), drop_bad=True).rows.height == 90
    Path("none.csv").write_text("trace,time,x,y\na,noon,1,1\n")
    with pytest.raises(DataError, match="no point can be read"):
        read_traces(Path("none.csv"), drop_bad=True)


def test_geojson_of_points_or_lines_holds_traces_and_nothing_else_is_one() -> None:
    point = {"type": "Feature", "properties": {"track_id": "a", "timestamp": "2024-05-01T10:00:00Z"},
             "geometry": {"type": "Point", "coordinates": [-8.6, 41.15, 12.0]}}  # fmt: skip
    Path("points.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [point]}))
    assert read_traces(Path("points.geojson")).rows.select("trace", "latitude", "longitude").rows() == [
        ("a", 41.15, -8.6)
    ]
    lines = [[[0.0, 1.0], [0.0, 2.0]], [[3.0, 4.0]]]
    many = {"type": "Feature", "properties": {"coordTimes": [[1, 2], [3]]},
            "geometry": {"type": "MultiLineString", "coordinates": lines}}  # fmt: skip
    Path("lines.geojson").write_text(json.dumps(many))
    assert read_traces(Path("lines.geojson")).rows.select("trace", "stamp", "latitude").rows() == [
        ("1.1", 1.0, 1.0), ("1.1", 2.0, 2.0), ("1.2", 3.0, 4.0),
    ]  # fmt: skip
    del many["properties"]
    for text, word in (("{", "no JSON document"), (json.dumps(many), "must be GeoJSON"), ("[]", "must be GeoJSON")):
        Path("bad.geojson").write_text(text)
        with pytest.raises(DataError, match=word):
            read_traces(Path("bad.geojson"))


def test_a_trace_of_more_than_one_person_is_refused_and_an_unnamed_one_has_its_caveat(place: Path) -> None:
    for second in ("bob", ""):
        Path("two.csv").write_text(f"trace,person,time,x,y\na,ann,1,0,0\na,{second},2,0,0\n")
        with pytest.raises(DataError, match="trace 'a' must name one person"):
            read_traces(Path("two.csv"))
    Path("none.csv").write_text("trace,person,time,x,y\na,,1,0,0\na,,2,0,0\nb,bob,1,0,0\nb,bob,2,0,0\n")
    table = read_traces(Path("none.csv"))
    assert table.person("a") is None and table.person("b") == "bob"
    job = Protection(PLAN, system_entropy(), TraceLedger(place / "private"))
    unnamed, named = job.protect([trace(1), trace(2)], [None, "ann"])
    assert unnamed.guarantee.caveats == (UNNAMED,) and named.guarantee.caveats == ()


def test_a_damaged_gpx_is_refused() -> None:
    Path("bad.gpx").write_text("<gpx><trk>")
    with pytest.raises(DataError, match="not readable as GPX"):
        read_traces(Path("bad.gpx"))
    Path("bad.gpx").write_text('<gpx><trk><trkseg><trkpt lat="1" lon="2"/></trkseg></trk></gpx>')
    with pytest.raises(DataError, match="point 1 lacks one"):
        read_traces(Path("bad.gpx"))


# --- the ledger -----------------------------------------------------------------------------------------------------


def test_a_repeat_replays_the_stored_noise_and_other_terms_are_refused(place: Path) -> None:
    job = Protection(PLAN, system_entropy(), TraceLedger(place / "private"))
    first, again = (job.protect([trace()], [None])[0] for _ in range(2))
    assert not first.reproduced and again.reproduced and np.array_equal(first.points, again.points)
    assert again.guarantee.releases == 1
    other = TracePlan(PRIOR, PLAN.secrets, radius=50.0, error=25.0, noise="mixed")
    with pytest.raises(UnsupportedError, match="released before"):
        Protection(other, system_entropy(), job.ledger).protect([trace()], [None])
    part = Trace.of("part", TIMES[:8], trace().points[:8])  # a piece of it is the same person
    with pytest.raises(UnsupportedError, match="released before"):
        job.protect([part], [None])


def test_a_prior_with_another_origin_or_rounded_places_draw_nothing_again(place: Path) -> None:
    degrees = np.array([41.15, -8.6]) + np.cumsum(np.random.default_rng(5).normal(0, 2e-4, (10, 2)), axis=0)
    job, later = (
        Protection(replace(PLAN, prior=replace(PRIOR, plane=plane)), system_entropy(), TraceLedger(place / "private"))
        for plane in (TangentPlane(41.1, -8.6), TangentPlane(41.2, -8.7))
    )
    seen = Trace.of("t", TIMES, job.plan.prior.plane.to_metres(*degrees.T))  # type: ignore[union-attr]
    alone = job.protect([seen], [None])[0].guarantee
    for places, part in ((degrees, slice(None)), (degrees.round(5), slice(None)), (degrees.round(5), slice(3, 9))):
        stamps = TIMES[part] + 0.2  # times to a second
        same = Trace.of("t", stamps, later.plan.prior.plane.to_metres(*places[part].T))  # type: ignore[union-attr]
        with pytest.raises(UnsupportedError, match="released before"):
            later.protect([same], [None])
    both = replace(later, new_release=True).protect([same], [None])[0].guarantee
    assert both.releases == 2 and both.mu > alone.mu


@pytest.mark.exhaust
def test_a_second_release_composes_exactly_and_tells_more(place: Path) -> None:
    ledger = TraceLedger(place / "private")
    first = Protection(PLAN, system_entropy(), ledger).protect([trace()], [None])[0]
    again = Protection(PLAN, system_entropy(), ledger, new_release=True).protect([trace()], [None])[0]
    assert again.guarantee.releases == 2 and not again.reproduced
    # two independent draws with covariance G are one with G / 2
    design = design_trace(PLAN, TIMES)
    whole = joint_prior(PRIOR, TIMES)
    found = information(condition(whole, [8, 9]), joint_noise(design) / 2).largest.upper
    charge = PLAN.grid * np.sqrt(2 * 20 / np.linalg.eigvalsh(joint_noise(design))[0])  # rounding of 2 x 10 points
    assert again.guarantee.mu == pytest.approx(PLAN.radius * np.sqrt(found) + charge, rel=1e-6)
    assert again.guarantee.mu > first.guarantee.mu and set(again.guarantee.by_adversary.values()) == {np.inf}


def test_a_loss_that_cannot_be_stated_leaves_nothing_drawn_or_recorded(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = TraceLedger(place / "private")
    monkeypatch.setattr("dovetail.trace.protect.MOST_ROWS", 30)
    job = Protection(PLAN, system_entropy(), ledger)
    with pytest.raises(UnsupportedError, match="trace 't1': 2 releases of this person hold too many"):
        job.protect([trace(1), trace(2)], ["ann", "ann"])
    assert ledger.earlier(trace(1), "ann") == []


def test_the_secrets_of_earlier_releases_are_computed_again(place: Path) -> None:
    ledger = TraceLedger(place / "private")
    early = TracePlan(PRIOR, SecretTimes(((15.0, 15.0),)), radius=80.0, error=20.0, noise="full")
    alone = Protection(early, system_entropy(), ledger).protect([trace()], [None])[0].guarantee
    both = Protection(PLAN, system_entropy(), ledger, new_release=True).protect([trace()], [None])[0].guarantee
    assert [(one.places, one.other_release) for one in both.secrets] == [((4,), False), ((1,), True)]
    # two looks at one trace are one look with the inverse of the summed precisions
    looks = [joint_noise(design_trace(plan, TIMES)) for plan in (early, PLAN)]
    merged = np.linalg.inv(sum(np.linalg.inv(one) for one in looks))
    exact = 80.0 * np.sqrt(information(condition(joint_prior(PRIOR, TIMES), [2, 3]), merged).largest.lower)
    assert exact <= both.secrets[1].mu <= exact * 1.001
    assert both.mu >= both.secrets[1].mu > alone.mu and "no longer holds" in both.caveats[0]


def test_one_trace_twice_in_a_table_is_drawn_once(place: Path) -> None:
    first, second = Protection(PLAN, system_entropy(), TraceLedger(place / "private")).protect(
        [trace()] * 2, [None] * 2
    )
    assert not first.reproduced and second.reproduced and np.array_equal(first.points, second.points)
    assert first.guarantee.releases == second.guarantee.releases == 1


@pytest.mark.exhaust
def test_traces_of_one_person_in_one_table_are_counted_together(place: Path) -> None:
    job = Protection(PLAN, system_entropy(), TraceLedger(place / "private"))
    near, far, other = job.protect([trace(1), trace(2, 160.0), trace(3)], ["ann", "ann", "bob"])
    assert [one.guarantee.releases for one in (near, far, other)] == [2, 2, 1]
    assert near.guarantee.mu > other.guarantee.mu
    again = job.protect([trace(1), trace(2, 160.0), trace(3)], ["ann", "ann", "bob"])
    assert all(one.reproduced for one in again) and again[0].guarantee.mu == near.guarantee.mu


def test_releases_that_are_far_apart_in_time_add_nothing(place: Path) -> None:
    job = Protection(PLAN, system_entropy(), TraceLedger(place / "private"))
    found = job.protect([trace(1), trace(2, 1e6)], ["ann", "ann"])
    alone = design_trace(PLAN, TIMES).guarantee.mu
    assert found[0].guarantee.mu == pytest.approx(alone, rel=1e-4) and found[0].guarantee.releases == 2


def test_the_ledger_holds_no_true_location_and_needs_its_key(place: Path) -> None:
    ledger = TraceLedger(place / "private")
    Protection(PLAN, system_entropy(), ledger).protect([trace()], [None])
    with np.load(place / "private" / "000001" / "release.npz") as arrays:
        assert set(arrays) == {"prints", "cells", "named", "times", "points", "noise"}
        assert not np.isin(arrays["points"], trace().points).any()
    (place / "private" / "key").unlink()
    with pytest.raises(OutputError, match="lost its key"):
        ledger.earlier(trace(), None)


def test_a_release_and_its_key_are_on_the_disk_before_anybody_sees_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = disk_steps(monkeypatch, "fsync", "link", "rename")
    Protection(PLAN, system_entropy(), TraceLedger(place / "private")).protect([trace()], ["ann"])
    assert steps[:3] == ["sync file", "link", "sync folder"], "the key, under which everything is printed"
    assert steps[3:] == ["sync file"] * 2 + ["sync folder", "rename", "sync folder"]


def test_a_damaged_ledger_is_refused(place: Path) -> None:
    ledger = TraceLedger(place / "private")
    Protection(PLAN, system_entropy(), ledger).protect([trace()], [None])
    (place / "private" / "000001" / "record.json").write_text("{}")
    with pytest.raises(OutputError, match="damaged"):
        ledger.earlier(trace(), None)


def test_composition_without_the_joint_prior_would_be_caught() -> None:
    # the days' noise is independent, yet one place visited twice is read twice
    design = design_trace(PLAN, TIMES)
    entry = TraceEntry(1, "", design.guarantee.mu, 10, PLAN.grid, PLAN.radius, [[4]])
    stored = StoredRelease(entry, TIMES + 1.0, np.zeros((10, 2)), joint_noise(design))
    found = composed_guarantee(PLAN, TIMES, design, [stored])
    assert found.mu > 1.2 * design.guarantee.mu


# --- verbs ----------------------------------------------------------------------------------------------------------


def test_the_whole_way_from_public_traces_to_a_release_and_an_attack(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    walks(8, 2).write_csv("public.csv")
    walks(3, 3).write_csv("mine.csv")
    fitted = document(capsys, "fit", "public.csv", "--out", "prior.json", "--isotropic")
    assert fitted["length"] > 0 and fitted["goodness"]["traces"] == 4
    common = ("--secret", "150..150", "--radius", "100", "--times", "mine.csv", "--noise", "mixed")
    planned = document(capsys, "plan", "prior.json", *common, "--error", "60", "--out", "plan.json")
    sure = np.ceil(100.0 / (1.0 + 1.0 / planned["odds"]["10 %"]))
    between = "somebody undecided between two places 100 m apart"
    assert planned["meaning"] == f"{between} is {sure:.0f} % sure in one release of ten"
    plain = document(capsys, "plan", "prior.json", *common[:-1], "uniform", "--error", "60", "--out", "u.json")
    assert planned["uniform_mu"] == plain["mu"] > planned["mu"] and "uniform_mu" not in plain
    assert invoke(["trace", "plan", "prior.json", *common, "--error", "60", "--out", "shown.json"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "somebody undecided" in shown and "uniform noise" in shown
    wanted = document(capsys, "plan", "prior.json", *common, "--mu", str(planned["mu"]), "--out", "solved.json")
    assert wanted["error"] == pytest.approx(60.0, rel=0.01) and wanted["mu"] <= planned["mu"]
    released = document(capsys, "protect", "mine.csv", "--plan", "plan.json", "--out", "out.csv")
    assert released["mu"] >= planned["mu"] * 0.999 and released["reproduced"] == 0 and released["caveats"] == []
    out, mine = pl.read_csv("out.csv"), pl.read_csv("mine.csv")
    assert out.columns == ["trace", "time", "latitude", "longitude"]  # no speed, no person
    assert out["time"].equals(mine["time"])
    # metres, not degrees or kilometres: noise along a trace is one draw in the worst case, so there are six of them,
    # and their chi-square with six degrees leaves these bounds with a chance below 1e-9
    assert 1 < np.hypot(*((out[c] - mine[c]).to_numpy() * 111e3 for c in ("latitude", "longitude"))).mean() < 600
    again = document(capsys, "protect", "mine.csv", "--plan", "plan.json", "--out", "again.csv")
    assert again["reproduced"] == 3 and Path("again.csv").read_bytes() == Path("out.csv").read_bytes()
    assert "released before" in refused(capsys, "protect", "mine.csv", "--plan", "solved.json", "--out", "x.csv")
    assert "points of it" in refused(capsys, "protect", "public.csv", "--plan", "plan.json", "--out", "x.csv")
    assert not Path("x.csv").exists()
    simulated = document(capsys, "protect", "mine.csv", "--plan", "plan.json", "--out", "s.gpx", "--seed", "1")
    assert "protects nobody" in simulated["caveats"][0]
    attacked = document(capsys, "attack", "mine.csv", "--plan", "plan.json", "--draws", "3", "--report", "r.html")
    assert {row["adversary"] for row in attacked["attacks"]} >= {"knows the kernel", "random walk"}
    page = Path("r.html").read_text()
    assert page.count("<svg") == 2 and "http" not in page.replace("http://www.w3.org", "") and "<script" not in page


def test_the_loss_verb_keeps_its_contract(capsys: pytest.CaptureFixture[str]) -> None:
    options = "loss --length 6.103 --n 50 --secret 24 --mse 0.02 --noise full --floor 0"
    found = document(capsys, *options.split())
    assert found["loss"]["lower"] <= 7.7243026 <= found["loss"]["upper"] + 1e-7
    assert found["posterior_width"] == pytest.approx(0.6771, abs=5e-5)
    assert found["mu"] ** 2 == pytest.approx(found["box_loss"])
    assert found["by_adversary"]["value"] is None and "floor" in found["by_adversary"]["reason"]
    options = "loss --kernel matern32 --length 4 --n 20 --secret 5,9 --mse 0.1 --noise mixed"
    found = document(capsys, *options.split())
    assert found["box_loss"] <= 2 * found["loss"]["upper"] * (1 + 1e-9)
    assert {"length x 0.5", "length x 3", "unknown mean", "one sighting"} <= set(found["by_adversary"])
    for word in ("lower", "upper"):
        assert found["by_adversary"]["the kernel itself"]["loss"][word] == pytest.approx(found["loss"][word])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("loss --length 2 --n 1 --secret 0 --mse 1", "--n must be"),
        ("loss --length 2 --n 9 --secret 9 --mse 1", "inside the trace"),
        ("loss --length 2 --n 9 --secret x --mse 1", "--secret must be"),
        ("loss --length 2 --n 9 --secret 3 --mse 0", "--mse must be"),
        ("loss --length 2 --n 9 --secret 3 --mse 1e99", "hides all"),
        ("loss --length nan --n 9 --secret 3 --mse 1", "--length must be"),
        ("loss --kernel periodic --length 1 --n 9 --secret 3 --mse 1", "--period must be"),
        ("loss --length 2 --n 9 --secret 3 --mse 1 --floor 0", "--floor must be at least"),
        ("loss --length 1e9 --n 9 --secret 3,4 --mse 1", "nearly the same location"),
        ("loss --length 2 --n 9 --secret 3 --mse 1 --solver magic", "--solver must be"),
        ("plan nowhere.json --secret 1..2 --radius 1 --error 1 --points 9 --gap 1 --out p.json", "cannot be read"),
        ("plan nowhere.json --radius 1 --error 1 --mu 1 --points 9 --gap 1 --out p.json", "give one of"),
        ("fit nowhere.csv --out p.json", "no such file"),
        ("protect nowhere.csv --plan p.json --out x.txt", "are written as"),
        ("protect nowhere.csv --plan p.json --out x.csv", "cannot be read"),
        ("protect nowhere.csv --plan p.json --out x.csv --delta 0", "--delta must be"),
        ("plan nowhere.json --all-times --radius 1 --error 1 --delta 2 --out p.json", "--delta must be"),
    ],
)
def test_bad_input_is_one_line(arguments: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert word in refused(capsys, *arguments.split())


def test_an_attack_on_a_plan_that_leaves_no_other_time_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    plan = TracePlan(PRIOR, SecretTimes(), radius=20.0, error=20.0, noise="all")
    Path("all.json").write_text(json.dumps(plan.as_dict()))
    rows = "\n".join(f"{15 * i},{i},{i}" for i in range(10))
    Path("ten.csv").write_text("time,x,y\n" + rows + "\n")
    assert "secrets are all times" in refused(capsys, "attack", "ten.csv", "--plan", "all.json")
