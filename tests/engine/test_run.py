"""A job releases once, whole and recorded, or not at all; what cannot be done is refused in one line."""

import base64
import shutil
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.collect.durability import disk_steps
from tests.engine.oracle import SECRET, config, table, write_table
from tests.tiers import tiered
from typer.testing import CliRunner

import dovetail as dt
from dovetail.cli.main import app
from dovetail.core.errors import ConfigError, DataError, OutputError, StorageError, UnsupportedError
from dovetail.engine import run
from dovetail.engine.publication import Manifest, Staging, digest_of, read_manifest, verify
from dovetail.engine.rows import People, Secret
from dovetail.ledger.releases import ReleaseLedger, fingerprints
from dovetail.report.document import PrivacyReport
from dovetail.table.reader import as_text
from dovetail.table.spelling import names_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_table(tmp_path / "in", table())
    return tmp_path


def release(place: Path, *, out: str = "out", progress: Any = None, **change: Any) -> PrivacyReport:
    options = {name: change.pop(name) for name in ("new_release", "workers") if name in change}
    settings = config(place / "in", **change)
    watched = {} if progress is None else {"progress": progress}
    return run(settings, out=place / out, ledger=place / "ledger", **{"workers": 1, **options, **watched})


def leftovers(place: Path) -> list[str]:
    notes = (place / "ledger").glob("drawing-*")
    return [path.name for path in (*place.glob(".out*"), *notes)]


def reports(place: Path, out: str = "out") -> pl.DataFrame:
    return pl.concat([pl.read_parquet(file) for file in sorted((place / out / "sanitized").glob("*.parquet"))])


def test_a_release_is_whole_recorded_and_reproduced(place: Path) -> None:
    first = release(place, shuffler="within_groups")
    document = first.document()
    assert document["release"] == {"number": 1, "releases": 1, "total_epsilon": 2.0}
    assert document["engine"]["name"] == "processes" and document["engine"]["retried"] == 0
    assert document["central"]["n"] == table()["region"].value_counts()["count"].min()
    assert [group["group"] for group in document["estimates"]["groups"]] == ["north", "south", "west", "x"]
    assert any("anybody who runs it" in line for line in document["assumptions"])
    assert any("computational: reports" in line for line in document["assumptions"])
    assert any("Drawn by processes in 1 partitions" in line for line in document["assumptions"])
    assert sorted(path.name for path in (place / "out").iterdir()) == [
        "_DOVETAIL", "report.html", "report.json", "sanitized",
    ]  # fmt: skip
    before = reports(place)
    again = release(place, shuffler="within_groups")
    assert again.release["number"] == 1 and reports(place).equals(before) and leftovers(place) == []  # type: ignore[index]
    assert [entry.number for entry in ReleaseLedger(place / "ledger").entries()] == [1]
    manifest = read_manifest(place / "out")
    assert manifest is not None and manifest.digest == ReleaseLedger(place / "ledger").entries()[0].manifest


@pytest.mark.exhaust
def test_a_uniform_release_keeps_no_places_whatever_groups_are_named(place: Path) -> None:
    settings = config(place / "in", shuffler="within_groups")
    settings["shuffle"]["shuffler"], settings["estimate"] = "uniform", {"by": []}
    document = run(settings, out=place / "out", ledger=place / "ledger", workers=1).document()
    assert reports(place).columns == ["report"] and document["central"]["n"] == 600


@pytest.mark.exhaust
def test_two_releases_are_drawn_afresh_and_add(place: Path) -> None:
    first = release(place)
    with pytest.raises(UnsupportedError, match=r"released before \(1 time, epsilon 2 in all\) under"):
        release(place, out="other", epsilon=1.0)
    with pytest.raises(OutputError, match="holds another release"):
        release(place, new_release=True)
    second = release(place, out="second", new_release=True)
    assert second.document()["release"] == {"number": 2, "releases": 2, "total_epsilon": 4.0}
    assert second.document()["central"]["epsilon"] == 2.0 * first.document()["central"]["epsilon"]
    assert not reports(place, "second").equals(reports(place))
    for out, number in (("out", 1), ("second", 2)):
        assert release(place, out=out).document()["release"]["number"] == number


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", ["within_groups", "uniform"])
def test_releases_of_groups_with_other_members_promise_no_order_together(place: Path, shuffler: str) -> None:
    """Of a person in the north here and in the south there, the rows of both releases tell something."""
    release(place, shuffler=shuffler)
    alphas = []
    other_answers = table().with_columns(answer=pl.col("answer").reverse())
    other_members = table().with_columns(region=pl.col("region").reverse()).head(570)
    for number, frame in enumerate((other_answers, other_members)):
        write_table(place / f"wave {number}", frame)
        settings = config(place / f"wave {number}", shuffler=shuffler)
        found = run(settings, out=place / f"{number}", ledger=place / "ledger", workers=1, new_release=True)
        alphas.append(found.evaluation.order.guarantee.alpha)
    assert alphas == [0.0, float("inf")], "the same people in the same groups add up; others do not"


@pytest.mark.exhaust
def test_releases_in_memory_and_in_files_know_each_other(place: Path) -> None:
    write_table(place / "whole", table(), files=1)
    settings = config(place / "whole" / "part-0.parquet")
    dt.run(settings, ledger=place / "ledger")
    with pytest.raises(UnsupportedError, match="Exactly these people were released before without --engine"):
        release(place)
    assert release(place, new_release=True).document()["release"]["total_epsilon"] == 4.0
    shutil.rmtree(place / "ledger")
    release(place, out="fresh")
    with pytest.raises(UnsupportedError, match="Exactly these people were released before with --engine"):
        dt.run(settings, ledger=place / "ledger")
    assert dt.run(settings, ledger=place / "ledger", new_release=True).document()["release"]["total_epsilon"] == 4.0


@pytest.mark.parametrize("kind", [pl.Int64, pl.Float64, pl.String, pl.Decimal(38, 2), pl.Float32, pl.UInt64])
@pytest.mark.parametrize("first", [0, 2**53, 2**60])
def test_the_ledger_knows_people_by_one_text_whatever_the_engine(kind: Any, first: int) -> None:
    ids = pl.int_range(300, dtype=pl.Int64, eager=True) * 256 + first
    column, key = ids.cast(kind), bytes(32)
    known = fingerprints((name.encode() for name in as_text(column)), key)
    assert People(key).prints(column).tolist() == known.tolist()
    assert len({*known.tolist()}) == column.n_unique()


@pytest.mark.parametrize("numbers, names", [(True, ["07", "7.0", " 7 "]), (False, ["Ann", " Ann", "Ann\u00a0"])])
def test_a_name_has_one_print_and_one_id_however_it_is_spelled(numbers: bool, names: list[str]) -> None:
    people, column = People(bytes(32), numbers=numbers), pl.Series(names)
    known = fingerprints((name.encode() for name in names_of(column)), bytes(32))
    assert people.prints(column).tolist() == known.tolist() and len({*known.tolist()}) == 1
    assert (people.ids(column) == people.ids(column)[0]).all(), "so that a person who stands twice is found"


@pytest.mark.exhaust
def test_people_with_numbers_and_names_are_known_as_in_memory(place: Path) -> None:
    mixed = table().with_columns(pl.col("id").cast(pl.String).replace({"5": "Ann"}))
    write_table(place / "in", mixed)
    dt.run(config(place / "in" / "part-0.parquet"), ledger=place / "ledger")  # names a third of them
    assert release(place).document()["release"]["total_epsilon"] == 4.0


STEPS = ["check the table", "note in the ledger", "randomize and exchange", "order and write", "count the reports",
         "write the report", "write the manifest", "record the release", "publish"]  # fmt: skip


class Killed(BaseException):
    """A process that ends without clearing up."""


def killer(step: str) -> Any:
    def progress(at: str, done: int, total: int) -> None:
        if at == step:
            raise Killed

    return progress


@pytest.mark.parametrize("step", tiered(STEPS, first=lambda step: step in ("order and write", *STEPS[-2:])))
def test_killed_at_any_step_leaves_one_release_after_the_next_run(step: str, place: Path) -> None:
    with pytest.raises(Killed):
        release(place, progress=killer(step))
    recorded = len(ReleaseLedger(place / "ledger").entries())
    assert recorded == (1 if step == "publish" else 0) and not (place / "out").exists()
    held = [file.read_bytes() for file in sorted(place.glob(".out.staging-*/release/sanitized/*"))]
    report = release(place)
    assert len(ReleaseLedger(place / "ledger").entries()) == 1 and leftovers(place) == []
    assert report.document()["release"]["number"] == 1
    manifest = read_manifest(place / "out")
    assert manifest is not None
    verify(manifest, place / "out")
    if recorded:
        assert [file.read_bytes() for file in manifest.files(place / "out")] == held


def test_files_are_on_the_disk_before_they_are_listed_and_before_the_release_has_its_name(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staging = Staging(place / "out", place / ".out.staging-1", "1")
    staging.parts.mkdir(parents=True)
    (staging.parts / "part").write_bytes(b"reports")
    parts = [{"name": "part", "rows": 1, "sha256": digest_of(staging.parts / "part")}]
    steps = disk_steps(monkeypatch, "fsync", "rename")
    staging.seal(Manifest("1", 1, {}, {}, parts))
    staging.publish(ReleaseLedger(place / "ledger"))
    assert steps == ["sync file", "sync folder", "sync file", "sync folder", "rename", "sync folder"]


@pytest.mark.exhaust
def test_a_run_that_is_at_work_is_left_alone(place: Path) -> None:
    seen = []

    def progress(step: str, done: int, total: int) -> None:
        if step == "write the manifest":
            with pytest.raises(OutputError, match="another run is drawing"):
                release(place)
            seen.append(step)

    release(place, progress=progress)
    assert seen and len(ReleaseLedger(place / "ledger").entries()) == 1


def during(step: str, what: Any) -> Any:
    def progress(at: str, done: int, total: int) -> None:
        if at == step:
            what()

    return progress


@pytest.mark.exhaust
def test_a_table_that_moves_publishes_nothing(place: Path) -> None:
    moved = table().with_columns(pl.col("answer").sort())
    with pytest.raises(OutputError, match="the table has changed while it was read"):
        release(place, progress=during("note in the ledger", lambda: write_table(place / "in", moved)))
    assert ReleaseLedger(place / "ledger").entries() == [] and leftovers(place) == []
    with pytest.raises(DataError, match=r"has other rows than|cannot be read any more"):
        release(place, progress=during("note in the ledger", lambda: write_table(place / "in", table(30))))
    assert not (place / "out").exists()


def change_file(place: Path, number: int, **columns: Any) -> None:
    file = place / "in" / f"part-{number}.parquet"
    pl.read_parquet(file).with_columns(**columns).write_parquet(file)


@pytest.mark.exhaust
def test_bad_tables_are_refused_with_counts_and_without_values(place: Path) -> None:
    change_file(place, 1, answer=pl.lit("secretly"))
    with pytest.raises(DataError, match=r"'answer': 200 values are not among the declared") as refused:
        release(place)
    assert "secretly" not in str(refused.value)
    change_file(place, 1, answer=pl.lit(None, dtype=pl.String))
    with pytest.raises(DataError, match="'answer': 200 values are missing"):
        release(place)
    change_file(place, 1, answer=pl.lit("a"), region=pl.lit(None, dtype=pl.String))
    with pytest.raises(DataError, match="public column 'region': 200 values are missing"):
        release(place, shuffler="within_groups")
    change_file(place, 1, amount=pl.lit(99.0))
    with pytest.raises(DataError, match="'amount': 200 values lie outside the declared range"):
        release(place, randomizer="laplace")
    shutil.copy(place / "in" / "part-0.parquet", place / "in" / "part-2.parquet")
    with pytest.raises(DataError, match="'id': 200 people stand in more than one row"):
        release(place)
    change_file(place, 2, id=pl.lit(None, dtype=pl.Int64))
    with pytest.raises(DataError, match="200 rows have no person in column 'id'"):
        release(place)
    assert ReleaseLedger(place / "ledger").entries() == [] and leftovers(place) == []


def test_files_of_other_schemas_are_refused(place: Path) -> None:
    change_file(place, 2, id=pl.col("id").cast(pl.String))
    with pytest.raises(DataError, match=r"part-2.parquet: column 'id' has type String, but Int64 in"):
        release(place)
    pl.read_parquet(place / "in" / "part-1.parquet").drop("answer").write_parquet(place / "in" / "part-1.parquet")
    with pytest.raises(DataError, match=r"part-1.parquet: has no column 'answer'"):
        release(place)
    (place / "in" / "part-0.parquet").write_text("no parquet")
    with pytest.raises(DataError, match="is not readable as Parquet, or was cut off; replace it"):
        release(place)
    for nowhere in ("nowhere", "in/*.csv"):
        with pytest.raises(DataError, match="no Parquet files there"):
            run(config(place / nowhere), out=place / "out", ledger=place / "ledger", workers=1)


def test_a_full_disk_is_one_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10, 10, 0))
    with pytest.raises(StorageError, match="make room, or name a place on another disk"):
        release(place)
    monkeypatch.undo()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(StorageError, match="No space left on device"):
        release(place)
    assert ReleaseLedger(place / "ledger").entries() == [] and leftovers(place) == []


def altered(place: Path, **change: Any) -> dict[str, Any]:
    settings = config(place / "in", shuffler="within_groups")
    for section, new in change.items():
        settings[section] = {**settings.get(section, {}), **new} if isinstance(new, dict) else new
    return settings


ALONE = {"shuffle": {"shuffler": "uniform", "groups": None}, "estimate": {"by": []}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"data": {"person": None}}, "randomness is keyed by person"),
    ({"data": {"duplicates": "first"}}, "which row comes first"),
    ({"shuffle": {"shuffler": "rase"}}, "'rase' needs everybody's place in one memory"),
    ({"shuffle": {"groups": {"labels": "region", "radius": 1.0}}}, "groups must be equal labels"),
    ({"data": {"public": ["region", "amount"]}}, "only the column of groups can stand beside"),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_no_engine_draws_is_refused_with_the_reason(change: Any, reason: str, place: Path) -> None:
    with pytest.raises(UnsupportedError, match=f"--engine: .*{reason}.*leave out --engine"):
        run(altered(place, **change), out=place / "out", ledger=place / "ledger")


def test_what_does_not_fit_is_refused(place: Path) -> None:
    with pytest.raises(UnsupportedError, match="`engine` must be"):
        run(config(place / "in"), out=place / "out", ledger=place / "ledger", engine="abacus")
    with pytest.raises(UnsupportedError, match="`workers` must be a whole number"):
        release(place, workers=0)
    with pytest.raises(ConfigError, match="at most the 600 people"):
        settings = {**config(place / "in"), "promise": {"honest": 601}}
        run(settings, out=place / "out", ledger=place / "ledger", workers=1)
    catalogued = altered(place, data={"path": None, "table": "db.t"})
    with pytest.raises(UnsupportedError, match=r"'db.t' is of Spark's catalogue: use --engine spark"):
        run(catalogued, out=place / "out", ledger=place / "ledger", workers=1)
    with pytest.raises(DataError, match=r"'db.t' is of Spark's catalogue: use --engine spark"):
        dt.run(catalogued, ledger=place / "ledger")
    with pytest.raises(ConfigError, match="name either `path` or"):
        dt.run(altered(place, data={"table": "db.t"}), ledger=place / "ledger")
    with pytest.raises(UnsupportedError, match="`master` goes with engine 'spark'"):
        run(config(place / "in"), out=place / "out", ledger=place / "ledger", master="local")
    (place / "out").mkdir()
    (place / "out" / "mine.txt").write_text("keep me")
    with pytest.raises(OutputError, match="is not empty, and holds no release in files"):
        release(place)
    assert (place / "out" / "mine.txt").read_text() == "keep me"


@pytest.mark.exhaust
def test_files_that_are_gone_or_altered_are_not_released_again(place: Path) -> None:
    release(place)
    with pytest.raises(OutputError, match="was published to another place"):
        release(place, out="elsewhere")
    part = next((place / "out" / "sanitized").iterdir())
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(OutputError, match="is gone or not what was released"):
        release(place)


def everything_written(place: Path) -> Iterator[bytes]:
    for file in place.rglob("*"):
        if file.is_file() and "in" not in file.relative_to(place).parts:
            yield file.read_bytes()


@pytest.mark.exhaust
def test_the_secret_and_the_people_are_in_no_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Secret, "fresh", classmethod(lambda cls: cls(SECRET)))
    encoded = [
        SECRET,
        SECRET.hex().encode(),
        base64.b64encode(SECRET),
        repr(SECRET).encode(),
        str(list(SECRET)).encode(),
    ]
    ids = [int(one).to_bytes(8, "little") for one in table()["id"] if one > 1 << 12]
    looked = []

    def look(step: str, done: int, total: int) -> None:
        content = b"\n".join(everything_written(place))
        looked.append(len(content))
        assert not any(one in content for one in encoded)
        assert not any(one in content for one in ids)

    release(place, progress=look)
    look("afterwards", 1, 1)
    assert max(looked) > 600 * 17
    (place / "leak").write_bytes(b"x" + SECRET)
    with pytest.raises(AssertionError):
        look("a leak would be found", 1, 1)


def test_the_command_line_releases_in_files(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "survey.toml").write_text(
        'schema_version = 1\nmode = "release"\n[data]\npath = "in/*.parquet"\nperson = "id"\nprivate = "answer"\n'
        'categories = ["a", "b", "c"]\n[randomize]\nepsilon = 2.0\n'
    )
    monkeypatch.chdir(place)
    words = ["run", "survey.toml", "--engine", "processes", "--ledger", "ledger"]
    done = CliRunner().invoke(app, [*words, "--workers", "1", "--full"])
    assert done.exit_code == 0, done.output
    assert "anybody who runs it" in " ".join(done.output.split())
    for wrong, reason in (
        ([*words, "--force"], "never replaces a release"),
        (["run", "survey.toml", "--workers", "2"], "goes with --engine"),
    ):
        refused = CliRunner().invoke(app, wrong)
        assert refused.exception is not None and reason in str(refused.exception)


def test_what_follows_a_rehearsal_in_files_is_drawn_as_it_was(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the same tasks and the same ledger a release would fail, or forget what was released before."""
    (place / "survey.toml").write_text(
        'schema_version = 1\nmode = "rehearsal"\nseed = 1\n[data]\npath = "in/*.parquet"\nperson = "id"\n'
        'private = "answer"\ncategories = ["a", "b", "c"]\n[randomize]\nepsilon = 2.0\n'
    )
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "400")
    drawn = "--engine processes --workers 1 --ledger ledger"
    done = CliRunner().invoke(app, ["run", "survey.toml", "--out", "out", *drawn.split()])
    assert done.exit_code == 0, done.output
    assert 'set mode = "release"' in done.output
    assert f"dovetail run survey.toml {drawn} --out survey-release" in done.output
