"""The verb on tables, arrays and images: its document, its page, and one clear line for what cannot be tested."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from dovetail.cli.main import invoke
from dovetail.core.errors import DataError, DovetailError
from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.sample_files import MixedTypes

KEYS = (
    "n", "z", "delta", "p_copying", "p_underfitting", "c_t", "c_t_standardized", "cells", "covered", "duplicates",
    "baselines", "verdict",
)  # fmt: skip
CELL_KEYS = ("n", "m", "delta", "interval", "z", "p", "p_holm")
COPYING = ["memorize", "copying", "--train", "t.csv", "--fresh", "p.csv", "--generated", "q.csv"]


def people(seed: int, count: int) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": draw.normal(40, 10, count).round(3),
            "income": draw.lognormal(10, 1, count).round(2),
            "town": draw.choice(["north", "south", "west"], count),
        }
    )


def stray(table: pl.DataFrame, row: int) -> pl.Series:
    """The ages as texts, one of which is no number."""
    return table["age"].cast(pl.String).scatter(row, "about 40")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tables, arrays and images of a generator that copies."""
    monkeypatch.chdir(tmp_path)
    train, fresh = people(1, 600), people(2, 400)
    train.write_csv("t.csv")
    fresh.write_parquet("p.parquet")
    fresh.write_csv("p.csv")
    pl.concat([train.head(120), people(3, 280)]).write_csv("q.csv")
    people(4, 400).write_csv("good.csv")
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert invoke([*arguments, "--json"]) == 0, capsys.readouterr().err
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return parsed


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert invoke([*arguments]) == 2
    told = capsys.readouterr().err.strip()
    assert "\n" not in told and "Traceback" not in told, told
    return told


def test_a_table_is_tested_and_its_copies_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *COPYING, "--report", "page.html", "--cells", "2")
    assert [key for key in KEYS if key not in found] == []
    assert found["n"] == 400 and found["duplicates"] == 120 and found["verdict"] == "copying"
    assert len(found["cells"]) == 2 and all(key in cell for cell in found["cells"] for key in CELL_KEYS)
    assert set(found["delta"]) == {"value", "interval"}
    assert found["copied_fraction"]["at_least"] > 0.2
    page = Path("page.html").read_text()
    assert "2505.01524" in page and "What this does not show" in page and "Side by side" in page
    assert page.index("repeats training data") < page.index("Where it happens")
    assert "use --force" in refusal(capsys, *COPYING, "--report", "page.html")


@pytest.mark.exhaust
def test_only_columns_that_are_constant_are_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, *COPYING, "--no-baselines")["warnings"] == []
    pl.read_csv("t.csv").with_columns(town=pl.lit("north")).write_csv("t.csv")
    (told,) = document(capsys, *COPYING, "--no-baselines")["warnings"]
    assert "Constant in the training sample" in told and "1 columns" in told


@pytest.mark.exhaust
def test_several_models_share_one_index_and_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *COPYING, "--generated", "good.csv", "--no-baselines")
    assert [one["verdict"] for one in found["results"]] == ["copying", "nothing found"]
    assert invoke([*COPYING[:-1], "good.csv", "--no-baselines"]) == 0
    assert "No copying was found" in capsys.readouterr().out


def test_cells_may_be_the_categories_of_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *COPYING, "--cells", "town", "--no-baselines", "--reference")
    assert len(found["cells"]) == 3 and found["formulas"] == "published code"


@pytest.mark.exhaust
def test_parquet_and_csv_of_one_table_give_one_result(capsys: pytest.CaptureFixture[str]) -> None:
    one = document(capsys, *COPYING, "--no-baselines")
    other = document(capsys, *COPYING[:4], "--fresh", "p.parquet", "--generated", "q.csv", "--no-baselines")
    assert one == other


@pytest.mark.exhaust
def test_arrays_and_images_are_tested_and_copies_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(5)
    pictures = draw.integers(0, 256, (180, 6, 6), dtype=np.uint8)
    for name, part in (("train", pictures[:80]), ("fresh", pictures[80:130]), ("made", pictures[:50])):
        Path(name).mkdir()
        for number, picture in enumerate(part):
            Image.fromarray(picture).save(f"{name}/{number:03}.png")
        np.save(f"{name}.npy", part)
        np.savez(f"{name}.npz", pictures=part, other=part)
    folders = document(
        capsys,
        "memorize",
        "copying",
        "--train",
        "train",
        "--fresh",
        "fresh",
        "--generated",
        "made",
        "--report",
        "i.html",
    )
    assert folders["duplicates"] == 50 and "data:image/png;base64" in Path("i.html").read_text()
    for suffix, more in ((".npy", []), (".npz", ["--array", "pictures"])):
        names = [f"{name}{suffix}" for name in ("train", "fresh", "made")]
        found = document(
            capsys, "memorize", "copying", "--train", names[0], "--fresh", names[1], "--generated", names[2],
            "--no-baselines", *more,
        )  # fmt: skip
        assert found["duplicates"] == 50 and found["z"] == pytest.approx(folders["z"])
    Image.fromarray(pictures[0, :5]).save("made/odd.png")
    told = refusal(capsys, "memorize", "copying", "--train", "train", "--fresh", "fresh", "--generated", "made")
    assert "odd.png: is 5 x 6" in told
    told = refusal(
        capsys, "memorize", "copying", "--train", "train.npz", "--fresh", "fresh.npz", "--generated", "made.npz"
    )
    assert "--array" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t, p, q: (t, pl.concat([p, t.head(5)]), q), "5 of 405 rows stand in the training sample"),
        (lambda t, p, q: (t, p, q.head(19)), "at least 20 rows, got 19"),
        (lambda t, p, q: (t.with_columns(age=pl.lit(3.0)), p, q), "'age' is constant"),
        (lambda t, p, q: (t, p, q.with_columns(age=pl.lit(None))), "lacks 400 values"),
        (lambda t, p, q: (t.with_columns(age=pl.lit(float("nan"))), p, q), "lacks 600 values"),
        (lambda t, p, q: (t, p.drop("town"), q), "lacks 'town'"),
        (lambda t, p, q: (t, p, q.rename({"town": "twon"})), "did you mean 'twon'"),
        (lambda t, p, q: (t, p, q.with_columns(age=pl.lit("old"))), "'age' holds 'old' in row 1, where the training"),
        (lambda t, p, q: (t, p.with_columns(age=stray(p, 7)), q), "fresh: column 'age' holds 'about 40' in row 8"),
        (lambda t, p, q: (t.with_columns(age=stray(t, 9)), p, q), "train: column 'age' holds 'about 40' in row 10"),
        (
            lambda t, p, q: (t, p, q.with_columns(id=pl.lit(1))),
            "q.csv: has the column 'id', which the training",
        ),
    ],
)
def test_bad_tables_get_one_clear_line(change: Any, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    tables = change(*(pl.read_csv(f"{name}.csv") for name in "tpq"))
    for name, table in zip("tpq", tables, strict=True):
        table.write_csv(f"{name}.csv")
    assert told in refusal(capsys, *COPYING)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*COPYING[:4], "--generated", "q.csv"], "a fresh sample of the truth, which the model has not seen"),
        ([*COPYING, "--cells", "age"], "is a number; cells are categories"),
        ([*COPYING, "--cells", "0"], "--cells must be"),
        ([*COPYING, "--distance", "manhattan"], "euclidean or cosine"),
        ([*COPYING, "--overlap", "ignore"], "refuse, drop or keep"),
        ([*COPYING, "--ignore", "agee"], "did you mean 'age'"),
        ([*COPYING, "--level", "2"], "--level must be"),
        ([*COPYING, "--holdout", "gone.csv"], "no such file"),
        ([*COPYING, "--holdout", "t.csv"], "holdout: 600 of 600 rows stand in the training sample"),
        ([*COPYING, "--image-shape", "5"], "HEIGHTxWIDTH"),
    ],
)
def test_bad_options_get_one_clear_line(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refusal(capsys, *arguments)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (np.zeros((0, 2)), "holds no numbers, its array is 0 x 2"),
        (np.zeros((50, 0)), "holds no numbers, its array is 50 x 0"),
        (np.full((50, 2), 1j), "must be rows of numbers, got 2 dimensions of complex128"),
        (np.array([[{}, {}]] * 50), "is no array of numbers"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_that_hold_no_numbers_get_one_clear_line(
    made: Any, told: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = np.random.default_rng(1).standard_normal
    for name, part in (("t", draw((60, 2))), ("p", draw((50, 2)))):
        np.save(f"{name}.npy", part)
    (np.save if suffix == ".npy" else np.savez)(f"q{suffix}", made)
    samples = ["--train", "t.npy", "--fresh", "p.npy", "--generated", f"q{suffix}"]
    assert f"q{suffix}: {told}" in refusal(capsys, "memorize", "copying", *samples)


@pytest.mark.parametrize("keep", [200, -40])
def test_a_damaged_archive_gets_one_clear_line(keep: int, capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(1).standard_normal
    for name, part in (("t", draw((60, 2))), ("p", draw((50, 2))), ("q", draw((50, 2)))):
        np.savez_compressed(f"{name}.npz", part)
    whole = Path("q.npz").read_bytes()
    Path("q.npz").write_bytes(whole[:keep] + bytes(40) + whole[keep + 40 :] if keep > 0 else whole[:keep])
    samples = ["--train", "t.npz", "--fresh", "p.npz", "--generated", "q.npz"]
    assert "q.npz: is no array of numbers" in refusal(capsys, "memorize", "copying", *samples)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("age,town\n40,Zürich\n".encode("latin-1"), "is not UTF-8 text (byte 13); save it as UTF-8."),
        ("age,town\n40,Bern\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8."),
        (b"age;town\n40;Bern\n", "is separated by semicolons; save it with commas."),
        (b"age,income,town\n", "p.csv: the table has no rows."),
        (b"age,age\n40,41\n", "the header names column 'age' 2 times; name the columns differently."),
    ],
)
def test_a_table_that_is_written_otherwise_gets_a_line_that_this_verb_can_follow(
    content: bytes, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("p.csv").write_bytes(content)
    line = refusal(capsys, *COPYING)
    assert told in line and "[data]" not in line


@pytest.mark.exhaust
def test_overlapping_rows_can_be_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    pl.concat([people(2, 400), people(1, 600).head(40)]).write_csv("p.csv")
    found = document(capsys, *COPYING, "--overlap", "drop", "--no-baselines")
    assert found["n"] == 400 and found["verdict"] == "copying"


def test_rows_that_coincide_by_chance_are_not_dropped_from_one_sample_alone() -> None:
    draw = np.random.default_rng(1)
    train, fresh, made = (draw.normal(size=(300, 1)).round(2) for _ in range(3))
    with pytest.raises(
        DataError, match=r"have an equal in such a sample, so rows coincide by chance.*--overlap keep"
    ):
        CopyingTest.prepare(train, fresh, overlap="drop")
    assert CopyingTest.prepare(train, fresh, overlap="keep").test(made, baselines=False).verdict == "nothing found"


def test_coincidences_of_discrete_tables_are_no_overlap_and_the_test_says_that_it_is_weak() -> None:
    draw = np.random.default_rng(1)
    train, fresh, made = (draw.integers(0, 4, (n, 3)).astype(float) for n in (500, 300, 300))
    found = CopyingTest.prepare(train, fresh).test(made, baselines=False)
    assert found.verdict == "nothing found" and any("weak" in line for line in found.warnings)


def test_a_differing_category_costs_two_and_an_unknown_one_differs_from_all() -> None:
    train = pl.DataFrame({"x": [0.0, 2.0, 4.0], "c": ["a", "b", "a"]})
    mixed = MixedTypes.fit(train, train)
    spread = np.std([0.0, 2.0, 4.0])
    points = mixed.points(train, "train")
    assert np.sum((points[0] - points[1]) ** 2) == pytest.approx((2 / spread) ** 2 + 2)
    assert np.sum((points[0] - points[2]) ** 2) == pytest.approx((4 / spread) ** 2)
    strange = mixed.points(pl.DataFrame({"x": [0.0], "c": ["z"]}), "generated")
    assert np.sum((strange[0] - points) ** 2, axis=1) == pytest.approx(
        [2.0, 2 + (2 / spread) ** 2, 2 + (4 / spread) ** 2]
    )


def test_any_embedding_and_the_cosine_decide_what_near_means() -> None:
    draw = np.random.default_rng(2).standard_normal
    train, fresh, scale = draw((300, 4)), draw((300, 4)), np.exp(draw((300, 1)))
    copies = CopyingTest.prepare(train, fresh, distance="cosine").test(scale * train, baselines=False)
    assert copies.verdict == "copying" and copies.overall.delta < 0.01
    halves = CopyingTest.prepare(train, fresh, embed=lambda points: points[:, :2])
    moved = train + np.array([0.0, 0.0, 5.0, 5.0])
    assert halves.test(moved, baselines=False).duplicates.generated == 300
    with pytest.raises(DataError, match="beyond 1e60"):
        CopyingTest.prepare(1e200 * train, fresh)
    with pytest.raises(DataError, match="have no cosine"):
        CopyingTest.prepare(np.concatenate([train, np.zeros((1, 4))]), fresh, distance="cosine")


@pytest.mark.exhaust
def test_the_lines_of_the_documentation_run_and_print_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "memorize.md").read_text()
    block = next(one for one in re.findall(r"```python\n(.*?)```", page, re.S) if "CopyingTest" in one)
    exec(compile(block, "memorize.md", "exec"), {})
    assert capsys.readouterr().out.strip() == "nothing found | copying"


@pytest.mark.exhaust
def test_a_table_of_few_distinct_rows_is_tested_with_all_measures() -> None:
    draw = np.random.default_rng(6)
    train, fresh, made = (draw.integers(0, 2, (600, 1)).astype(float) for _ in range(3))
    found = CopyingTest.prepare(train, fresh, cells=4).test(made)
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    assert document["verdict"] == "nothing found" and document["z"] == 0.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2, 3], [1.0, 2.0, 3.0]),
        (["1", "2.5", "x"], ["1.0", "2.50", " x"]),
        (["True", "False", "maybe"], ["true", "FALSE", "maybe"]),
        (["01", "1", "10"], ["01", "1.", "10"]),
    ],
)
def test_categories_are_alike_however_files_write_them(one: list[Any], other: list[Any]) -> None:
    draw = np.random.default_rng(1).integers(0, 3, 60)
    tables = [pl.DataFrame({"name": [names[i] for i in draw], "x": np.arange(60.0)}) for names in (one, other)]
    mixed = MixedTypes.fit(tables[0], tables[0], categories=["name"])
    assert (mixed.points(tables[0], "train") == mixed.points(tables[1], "generated")).all()
    assert len(mixed.columns[0].categories or ()) == 3


def test_generated_categories_that_are_mostly_unknown_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    pl.read_csv("q.csv").with_columns(pl.col("town").str.to_uppercase()).write_csv("q.csv")
    told = refusal(capsys, *COPYING)
    assert "q.csv: column 'town' holds" in told and "400 of 400" in told and "write them alike" in told


@pytest.mark.exhaust
def test_a_generated_folder_may_be_called_like_another_sample(capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(6)
    pictures = draw.integers(0, 256, (100, 4, 4), dtype=np.uint8)
    parts = {"t": pictures[:40], "p": pictures[40:70], "fresh": pictures[70:], "elsewhere": pictures[70:]}
    for name, part in parts.items():
        Path(name).mkdir()
        for number, picture in enumerate(part):
            Image.fromarray(picture).save(f"{name}/{number:03}.png")
    samples = ["memorize", "copying", "--train", "t", "--fresh", "p", "--no-baselines", "--generated"]
    one, other = (document(capsys, *samples, name) for name in ("fresh", "elsewhere"))
    assert one.pop("generated") == "fresh" and other.pop("generated") == "elsewhere" and one == other


@pytest.mark.parametrize(
    ("unit", "options", "told"),
    [
        (1e99, {}, "beyond 1e60"),
        (1e-200, {}, "varies by more than 1e-60"),
        (1j, {}, "no array of numbers"),
        (1.0, {"level": 0.0}, "`level` must be above 0 and below 1, got 0"),
        (1.0, {"cells": lambda points: np.zeros(3, dtype=int)}, "one whole number for each of the 30 points, got 3"),
        (1.0, {"cells": lambda points: np.full(len(points), "a")}, "got 30 of <U1"),
        (1.0, {"cells": lambda points: None}, "got one of object"),
    ],
)
def test_what_cannot_be_computed_with_is_refused_in_one_line(unit: complex, options: Any, told: str) -> None:
    draw = np.random.default_rng(7).standard_normal
    with pytest.raises(DovetailError, match=re.escape(told)):
        CopyingTest.prepare(unit * draw((40, 2)), unit * draw((30, 2)), **options)


@pytest.mark.exhaust
def test_the_largest_and_smallest_numbers_give_the_result_of_others() -> None:
    draw = np.random.default_rng(8).standard_normal
    train, fresh, made = draw((60, 3)), draw((40, 3)), draw((40, 3))
    found = [CopyingTest.prepare(unit * train, unit * fresh).test(unit * made) for unit in (2.0**190, 1.0, 2.0**-190)]
    assert len({one.overall for one in found}) == 1 and len({one.verdict for one in found}) == 1


@pytest.mark.exhaust
def test_grey_images_of_sixteen_bits_keep_their_shades(capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(5)
    pictures = draw.integers(0, 256, (60, 4, 4), dtype=np.uint16)
    found = []
    for bits, scaled in (("8", pictures.astype(np.uint8)), ("16", pictures * 257)):
        for name, part in (("t", scaled[:20]), ("p", scaled[20:40]), ("q", scaled[40:])):
            Path(name + bits).mkdir()
            for number, picture in enumerate(part):
                Image.fromarray(picture).save(f"{name}{bits}/{number:02}.png")
        samples = ["--train", f"t{bits}", "--fresh", f"p{bits}", "--generated", f"q{bits}", "--no-baselines"]
        found.append(document(capsys, "memorize", "copying", *samples))
    del found[0]["generated"], found[1]["generated"]
    assert found[0] == found[1]


def test_options_that_say_nothing_and_reports_that_are_folders_are_refused_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "--image-shape is for arrays" in refusal(capsys, *COPYING, "--image-shape", "2x2")
    assert "--tail must be" in refusal(capsys, *COPYING, "--tail", "100000")
    assert refusal(capsys, *COPYING, "--report", ".", "--force").endswith(".: is a folder; name another place.")
