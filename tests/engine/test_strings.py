"""A search for strings in files is the one that an oracle makes in memory, whatever the files and engines."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.oracle import KEY, SECRET, write_table

import dovetail as dt
from dovetail.core.entropy import KeyedEntropy
from dovetail.core.errors import ConfigError, DataError, DovetailError, OutputError
from dovetail.engine.rows import Asked, People, Reader, Secret
from dovetail.job.config import parse_config
from dovetail.job.strings import FrequentStrings, Level, Tally, found_table, levels_of, search_levels
from dovetail.ledger.releases import ReleaseLedger
from dovetail.table.data_section import DataSection
from dovetail.table.spelling import names_of

WORDS = ["we", "us", "west!", "Zürich", "we", ""]


def words(n: int = 900, *, text: bool = False) -> pl.DataFrame:
    texts = [WORDS[i % 6] if i % 40 < 37 else f"rare {i}" for i in range(n)]
    held = pl.Series("answer", [one or "none" for one in texts])
    return pl.DataFrame({"id": [f"device {i}" for i in range(n)] if text else range(1, n + 1), "answer": held})


def asked(path: Path, **changes: Any) -> dict[str, Any]:
    return {
        "schema_version": 1, "mode": "release",
        "data": {"path": str(path), "person": "id", "private": "answer"},
        "strings": {"epsilon": 3.0, "levels": 4, **changes.pop("strings", {})}, **changes,
    }  # fmt: skip


def oracle(people: pl.DataFrame, key: bytes, **strings: Any) -> FrequentStrings:
    """The search in memory, person by person, under `SECRET`."""
    levels = levels_of(names_of(people["id"]), strings["levels"])
    own = People(key, numbers=True).ids(people["id"])
    texts = people["answer"].to_list()

    def ask(level: Level) -> Tally:
        secret, total = Secret(Secret(SECRET).of(f"level {level.number}")), np.zeros(0)
        for i in np.flatnonzero(levels == level.number):
            sent = level.tally([texts[i]], KeyedEntropy(secret.of("randomize"), own[i : i + 1]))
            total = sent + total if total.size else sent
        return level.complete(total, KeyedEntropy(secret.of("dummies"), np.arange(1)))

    settings = parse_config(asked(Path("x"), strings=strings, mode="rehearsal")).strings
    assert settings is not None
    sizes = np.bincount(levels, minlength=settings.levels).tolist()
    return search_levels(sizes, ask, settings)


def run(settings: dict[str, Any], place: Path, out: str = "out", **options: Any) -> Any:
    chosen: dict[str, Any] = {"out": place / out, "ledger": place / "ledger", "workers": 1, **options}
    return dt.engine.run(settings, **chosen)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Secret, "fresh", classmethod(lambda cls: cls(SECRET)))


@pytest.mark.parametrize(("text", "dummies"), [(False, "geometric"), (True, "geometric"), (True, "gaussian")])
def test_a_release_is_that_of_the_oracle_whatever_the_files(text: bool, dummies: str, tmp_path: Path) -> None:
    people = words(text=text)
    key = ReleaseLedger(tmp_path / "ledger").people_key()
    expected = found_table(oracle(people, key, epsilon=3.0, levels=4, dummies=dummies).found)
    assert {"we", "us", "none", "west", "Zür"} <= set(expected["string"])
    written = []
    for out, table, files in (("one", people, 3), ("two", people[::-1], 5)):
        given = asked(write_table(tmp_path / f"in {out}", table, files=files), strings={"dummies": dummies})
        report = run(given, tmp_path, out, new_release=True)
        (file,) = (tmp_path / out / "sanitized").iterdir()
        written.append(file.read_bytes())
        assert pl.read_parquet(file).equals(expected) and report.sanitized.equals(expected)
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("n", "noise"),
    [
        (1200, {"trust": "local"}),
        (1200, {}),
        (1200, {"dummies": "gaussian"}),
        (1200, {"dummies": "sparse"}),
        (6000, {"trust": "users", "delta": 1e-2}),
    ],
    ids=str,
)
def test_a_rehearsal_in_files_says_what_one_in_memory_says(n: int, noise: dict[str, Any], tmp_path: Path) -> None:
    people, place = words(n), tmp_path / "in"
    strings = {"epsilon": 6.0, "levels": 3, "keep": 8, **noise}
    settings = asked(write_table(place, people), mode="rehearsal", strings=strings)
    report = run(settings, tmp_path)
    found = oracle(people, Secret(SECRET).of("people"), **strings)
    overall = report.evaluation.estimates.overall
    shown = [one.text if one.complete else f"{one.text}..." for one in found.found]
    assert overall.labels[:-1] == shown and overall.value[:-1] == [one.share for one in found.found]
    assert report.evaluation.central == found.guarantee.drawn_from(report.entropy)
    held = people["answer"].to_list()
    for one, truth in zip(found.found, overall.truth, strict=False):
        holds = [text == one.text if one.complete else text.encode()[:3].decode(errors="replace") == one.text
                 for text in held]  # fmt: skip
        assert truth == sum(holds) / len(held), one
    memory = dt.run({**settings, "seed": 1}, table=people)
    told = [next(line for line in one.assumptions if "strings that at least" in line) for one in (report, memory)]
    assert len({line.partition(", ")[0] for line in told}) == 1
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]
    assert not ReleaseLedger(tmp_path / "ledger").entries()


def test_a_release_is_recorded_reproduced_and_known_again(tmp_path: Path) -> None:
    people = words()
    settings = asked(write_table(tmp_path / "in", people))
    first, again = run(settings, tmp_path).document(), run(settings, tmp_path).document()
    assert first["release"]["releases"] == again["release"]["releases"] == 1
    same = ("estimates", "central", "assumptions", "engine", "sanitized")
    assert [first.get(key) for key in same] == [again.get(key) for key in same]
    assert (first["local"]["epsilon"], first["engine"]["partitions"]) == (again["local"]["epsilon"], 4)
    with pytest.raises(DovetailError, match="other terms"):
        run(asked(tmp_path / "in", strings={"epsilon": 2.0}), tmp_path, "other")
    with pytest.raises(OutputError, match="published to another place"):
        run(settings, tmp_path, "elsewhere")
    more = run(settings, tmp_path, "more", new_release=True).document()
    assert more["release"]["releases"] == 2 and more["central"]["epsilon"] == 2 * first["central"]["epsilon"]
    with pytest.raises(DovetailError, match="Exactly these people were released before with --engine"):
        dt.run(settings, table=people, ledger=tmp_path / "ledger")
    folder = tmp_path / "ledger"
    assert [one.shuffler for one in ReleaseLedger(folder).entries()] == ["uniform"] * 2
    said = pl.read_parquet_metadata(next((tmp_path / "out" / "sanitized").iterdir()))["dovetail"]
    assert json.loads(said)["private"] == "answer"


def test_another_string_is_another_table_and_groups_are_those_of_every_question() -> None:
    data = DataSection(path="x", person="id", private="answer", categories=None)
    people, read = words(40), []
    for table in (people, people.with_columns(answer=pl.col("answer") + "!")):
        reader = Reader((Asked(data, texts=True),), People(KEY), levels=4)
        plain = Reader((Asked(data, texts=True),), People(KEY))
        rows, other = reader.exactly(table), plain.exactly(table)
        read.append((reader.fingerprint(rows), reader.grouping(rows)))
        assert read[-1][1] == plain.grouping(other)
    assert read[0][0] != read[1][0] and read[0][1] == read[1][1]


@pytest.mark.parametrize(
    ("people", "strings", "error", "words_of_it"),
    [
        (words(24), {"levels": 20}, ConfigError, r"^\[strings\] a group has \d people.*fewer levels"),
        (pl.concat([words(40), words(40)]), {}, DataError, "40 people stand in more than one row"),
        (
            words(40).with_columns(answer=pl.when(pl.col("id") > 3).then("answer")), {}, DataError,
            "private column 'answer': 3 values are missing",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused_and_nothing_is_left(
    people: pl.DataFrame, strings: dict[str, Any], error: type[Exception], words_of_it: str, tmp_path: Path
) -> None:
    settings = asked(write_table(tmp_path / "in", people), strings=strings)
    with pytest.raises(error, match=words_of_it):
        run(settings, tmp_path)
    assert sorted(place.name for place in tmp_path.iterdir()) in (["in", "ledger"], ["in"])


def test_a_table_that_changes_between_two_levels_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write_table(tmp_path / "in", words())
    strings = import_module("dovetail.engine.strings")
    pack = strings.PackLevel

    def late(reader: Any, secret: Any, level: Level) -> Any:
        if level.number == 1:
            write_table(place, words().with_columns(answer=pl.lit("other")))
        return pack(reader, secret, level)

    monkeypatch.setattr(strings, "PackLevel", late)
    with pytest.raises(OutputError, match="the table has changed while it was read; nothing was released"):
        run(asked(place), tmp_path)
    assert not ReleaseLedger(tmp_path / "ledger").entries() and not (tmp_path / "out").exists()


@pytest.mark.exhaust
def test_several_processes_and_spark_release_the_same_bytes(tmp_path: Path) -> None:
    people = words(text=True)
    settings = asked(write_table(tmp_path / "in", people))
    run(settings, tmp_path, "one")
    run(settings, tmp_path, "two", workers=2, new_release=True)
    engines = ["one", "two"]
    if _has_spark():
        run(settings, tmp_path, "spark", workers=None, engine="spark", master="local[2]", new_release=True)
        engines.append("spark")
    written = {next((tmp_path / one / "sanitized").iterdir()).read_bytes() for one in engines}
    assert len(written) == 1


def _has_spark() -> bool:
    try:
        import_module("pyspark")
        from dovetail.engine.spark import need_java

        need_java()
    except (ImportError, DovetailError):
        return False
    return True
