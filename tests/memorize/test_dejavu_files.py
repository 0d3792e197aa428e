"""Deja vu on the command line: every form of file gives the same result, and what is wrong is one line."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dovetail.cli.main import invoke
from dovetail.core.errors import OutputError
from dovetail.memorize.dejavu.pairs import KEYS, Pair, Planted, read_pair, write_pair

PLANTED = Planted(40, "1/5", "1/4")
PAGE = Path(__file__).parent.parent.parent / "docs" / "dejavu.md"
Arrays = dict[str, Any]


def arrays_of(pair: Pair) -> Arrays:
    """The pair under the names that files have."""
    labels = {f"labels_{name}": np.asarray(found) for name, found in pair.labels.items()}
    return {
        **labels,
        **{f"{name}_by_model_{model}": np.asarray(rows) for (name, model), rows in pair.embeddings.items()},
    }


@pytest.fixture
def arrays() -> Arrays:
    return arrays_of(PLANTED.pair())


def written(place: Path, arrays: Arrays) -> Path:
    np.savez(place, **arrays)
    return place


def result(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    assert invoke(["memorize", "dejavu", *map(str, arguments), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line that a refusal is, without the name of the file."""
    status = invoke(["memorize", *map(str, arguments)])
    found = capsys.readouterr()
    lines = found.err.strip().splitlines()
    assert status == 2 and not found.out and len(lines) == 1 and lines[0].startswith("error: "), (status, found)
    return lines[0]


def test_every_form_of_file_gives_the_planted_counts(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "pair"
    folder.mkdir()
    for name, value in arrays.items():
        np.save(folder / name, value)
    rows = [
        {"set": name, "label": int(label),
         **{f"model_{m}": arrays[f"{name}_by_model_{m}"][place].tolist() for m in "ab"}}
        for name in ("a", "b", "public")
        for place, label in enumerate(arrays[f"labels_{name}"])
    ]  # fmt: skip
    pl.DataFrame(rows).sample(fraction=1.0, shuffle=True, seed=1).write_parquet(tmp_path / "pair.parquet")
    places = [written(tmp_path / "pair.npz", arrays), folder, tmp_path / "pair.parquet"]
    found = [result(capsys, place, "--neighbours", "10", "--draws", "100") for place in places]
    assert found[0] == found[1]
    assert (
        found[0]["partition"] == found[2]["partition"]
        and found[0]["scores"][0]["value"] == found[2]["scores"][0]["value"]
    )
    for name in ("target_accuracy", "reference_accuracy", "score", "partition", "mcnemar_p", "interval"):
        assert name in found[0]
    counts = PLANTED.partition
    assert found[0]["partition"]["memorized"] == 2 * counts.memorized
    assert found[0]["partition"]["misrepresented"] == 2 * counts.misrepresented


def test_a_pair_is_read_as_it_was_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    guesses = {"a": ["x", "y"], "controls": ["y", "x"]}
    labels = {"a": np.array(["x", "y"]), "controls": np.array(["x", "y"])}
    pair = Pair(
        labels, {(name, "a"): rng.random((2, 3)) for name in labels}, classes=["x", "y", "z"], classifier=guesses
    )
    write_pair(pair, tmp_path / "p.npz")
    again = read_pair(tmp_path / "p.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["p.npz"]
    assert {name: list(found) for name, found in again.classifier.items()} == guesses
    assert all((np.asarray(again.embeddings[key]) == rows).all() for key, rows in pair.embeddings.items())
    assert list(again.labels["controls"]) == ["x", "y"] and list(np.asarray(again.classes)) == ["x", "y", "z"]
    with pytest.raises(OutputError, match=r"must end in \.npz"):
        write_pair(pair, tmp_path / "p.parquet")
    with pytest.raises(OutputError, match="cannot be written"):
        write_pair(pair, tmp_path / "no" / "p.npz")


def test_one_direction_says_that_it_is_one(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = {name: rows for name, rows in arrays.items() if name not in ("labels_b", "b_by_model_a", "b_by_model_b")}
    found = result(capsys, written(tmp_path / "p.npz", arrays), "--neighbours", "10", "--draws", "100")
    assert found["directions"] == 1 and found["images"] == 40
    assert any("one direction only" in line for line in found["warnings"])


def test_directions_of_other_sizes_have_no_exact_test(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("labels_b", "b_by_model_a", "b_by_model_b"):
        arrays[name] = arrays[name][:30]
    found = result(capsys, written(tmp_path / "p.npz", arrays), "--neighbours", "10", "--draws", "100")
    assert found["mcnemar_p"]["value"] is None and "does not cancel" in found["mcnemar_p"]["reason"]
    assert 0.0 <= found["gap"]["p"] <= 1.0


def test_a_handful_of_images_leaves_out_scores_that_it_is_too_small_for(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in arrays:
        if "public" not in name:
            arrays[name] = arrays[name][:12]
    found = result(capsys, written(tmp_path / "p.npz", arrays), "--neighbours", "10", "--draws", "100")
    assert [one["share"] for one in found["scores"]] == [0.2, 1.0] and found["curve"][0]["share"] == 0.1


def test_logits_need_no_public_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.arange(40) % 4
    right, wrong = np.eye(4)[labels], np.eye(4)[(labels + 1) % 4]
    arrays = {
        "labels_a": labels, "classes": np.arange(4), "labels_b": labels,
        "a_by_model_a": right, "a_by_model_b": wrong, "b_by_model_a": wrong, "b_by_model_b": right,
    }  # fmt: skip
    found = result(capsys, written(tmp_path / "p.npz", arrays), "--draws", "100")
    assert found["partition"]["memorized"] == 80 and found["score"] == 1.0


def one_model(arrays: Arrays, **more: Any) -> Arrays:
    """Model A alone; the images of B, which it never saw, are its controls."""
    kept = {name: arrays[name] for name in ("labels_a", "labels_public", "a_by_model_a", "public_by_model_a")}
    return {**kept, **more}


def test_one_model_needs_controls_and_says_so(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    place, options = tmp_path / "p.npz", ("--neighbours", "10")
    controls = {"labels_controls": arrays["labels_b"], "controls_by_model_a": arrays["b_by_model_a"]}
    found = result(capsys, written(place, one_model(arrays, **controls)), *options)
    assert found["method"] == "one model with controls"
    assert found["target_accuracy"] == pytest.approx(0.4) and found["control_accuracy"] == pytest.approx(0.25)
    assert found["within_classes"] and found["difference"] == pytest.approx(0.15)
    few = {name: rows[arrays["labels_b"] != arrays["labels_b"][0]] for name, rows in controls.items()}
    found = result(capsys, written(place, one_model(arrays, **few)), *options)
    assert not found["within_classes"] and any("commoner" in line for line in found["limits"])
    guessed = {"a_by_classifier": arrays["labels_a"] * (np.arange(40) % 5 == 0)}
    found = result(capsys, written(place, one_model(arrays, **guessed)), *options)
    assert found["method"] == "one model without controls" and found["found"] == "unclear"
    assert "Excess over the classifier" in found["verdict"] and "Not memorization" in found["verdict"]
    both = {**controls, **guessed, "controls_by_classifier": arrays["labels_b"]}
    assert result(capsys, written(place, one_model(arrays, **both)), *options)["method"] == "one model with controls"
    handful = {name: rows[:19] for name, rows in controls.items()}
    found = refusal(capsys, "dejavu", written(place, one_model(arrays, **handful)), *options)
    assert "`controls` must be at least 20 images, got 19" in found
    assert "got one model alone" in refusal(capsys, "dejavu", written(place, one_model(arrays)), *options)
    twice = refusal(capsys, "dejavu", place, place, *options)
    assert "must all have a reference model where there are several" in twice


def changed(**changes: Any) -> Any:
    """The arrays with some of them replaced; None takes one away."""
    return lambda arrays: {
        name: value
        for name, value in {**arrays, **{key: f(arrays[key]) if f else None for key, f in changes.items()}}.items()
        if value is not None
    }


def with_nan(rows: np.ndarray) -> np.ndarray:
    rows = rows.copy()
    rows[0, 0] = np.nan
    return rows


@pytest.mark.parametrize(
    ("change", "options", "line"),
    [
        (changed(labels_a=None), [], "has no array labels_a"),
        (changed(labels_public=None), [], "has no array labels_public"),
        (changed(a_by_model_b=None), [], "has no array a_by_model_b"),
        (changed(labels_b=None), [], "b_by_model_a needs labels_b"),
        (changed(labels_a=lambda labels: labels[:-1]), [], "must have a row for each of the 39 labels_a, got 40"),
        (changed(public_by_model_a=lambda rows: rows[:-1]), [], "must have a row for each of the 200 labels_public"),
        (changed(labels_a=lambda labels: labels.astype(object)), [], "save it as an array"),
        (
            changed(labels_a=lambda labels: np.where(labels == 0, np.nan, labels)),
            [],
            "`labels` must be given for every",
        ),
        (changed(labels_a=lambda labels: labels + 50), [], "`labels` must occur in the public labels, got 50"),
        (changed(labels_public=lambda labels: 0 * labels), [], "must hold at least two classes, got 0 alone"),
        (changed(a_by_model_a=with_nan), [], "`crops` must be finite numbers; 1 of 800 are not"),
        (changed(public_by_model_b=with_nan), [], "`public` must be finite numbers; 1 of 4,000 are not"),
        (changed(a_by_model_a=lambda rows: rows[:, :-1]), [], "`public` must have 19 columns like `crops`, got 20"),
        (changed(), ["--neighbours", "201"], "--neighbours must be at most the public set's 200 rows, got 201"),
        (changed(), ["--share", "0"], "--share must be above 0 and at most 1"),
        (changed(), ["--share", "0.01"], "--share must be at least 1/40"),
        (changed(), ["--distance", "taxi"], "--distance must be euclidean or cosine"),
        (changed(), ["--draws", "5"], "--draws"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    change: Any, options: list[str], line: str, tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "p.npz", change(arrays))
    assert line in refusal(capsys, "dejavu", place, *(options or ["--neighbours", "10"]))


def test_what_is_no_pair_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such file or folder" in refusal(capsys, "dejavu", tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no archive")
    assert "cannot be read as .npz" in refusal(capsys, "dejavu", tmp_path / "text.npz")
    (tmp_path / "table.csv").write_text("a,b\n")
    assert "must be .npz, .parquet or a folder of .npy" in refusal(capsys, "dejavu", tmp_path / "table.csv")
    assert "has no array labels_a" in refusal(capsys, "dejavu", tmp_path)
    (tmp_path / "no.parquet").write_text("no table")
    assert "cannot be read as Parquet" in refusal(capsys, "dejavu", tmp_path / "no.parquet")
    rows = {"set": ["a", "public"], "label": ["x", "y"], "model_a": [[1.0], [1.0, 2.0]]}
    for change, line in (
        ({"label": None}, "has no column 'label'"),
        ({"set": ["a", "test"]}, "must hold a, b, controls or public, got 'test'"),
        ({"label": ["x", None]}, "column label must be filled in every row of set public"),
        ({"set": ["a", "a"]}, "column model_a must hold lists of numbers of one length in set a"),
    ):
        made = {name: value for name, value in {**rows, **change}.items() if value is not None}
        pl.DataFrame(made).write_parquet(tmp_path / "wrong.parquet")
        assert line in refusal(capsys, "dejavu", tmp_path / "wrong.parquet")


def test_a_page_says_first_what_was_found_and_last_what_it_does_not_show(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    place, page = written(tmp_path / "p.npz", arrays), tmp_path / "page.html"
    found = result(capsys, place, "--neighbours", "10", "--draws", "100", "--report", page)
    text = page.read_text()
    assert found["files"] == {"report": str(page)}
    assert text.index(found["verdict"][:30]) < text.index("Who guesses what") < text.index("What this does not show")
    assert "<script" not in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "exists already" in refusal(capsys, "dejavu", place, "--neighbours", "10", "--report", page)
    controls = {"labels_controls": arrays["labels_b"], "controls_by_model_a": arrays["b_by_model_a"]}
    for more in (controls, {"a_by_classifier": arrays["labels_a"]}):
        written(place, one_model(arrays, **more))
        assert invoke(["memorize", "dejavu", str(place), "--neighbours", "10", "--report", str(page), "--force"]) == 0
        assert "What this does not show" in page.read_text()


def test_crop_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    image = ["memorize", "crop", "--height", "300", "--width", "300"]
    assert invoke([*image, "--boxes", "100,200,120,300;200,200,220,300;400,0,500,9", "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["crop"] == [0, 0, 300, 200] and found["smaller_side"] == 200 and found["outside"] == [3]
    assert found["corners"]["lower-left"] == [0, 210, 90, 300] and found["corners"]["lower-right"] is None
    assert shown.err == "warning: no part of box 3 lies in the image of 300 x 300; it hides nothing.\n"
    assert invoke(image) == 0 and "0, 0, 300, 300" in capsys.readouterr().out
    for boxes, line in (
        ("0,0,300,300", "they cover all of it"),
        ("0,0,1", "four finite numbers"),
        ("0,0,x,1", "must be x0,y0,x1,y1;.. with numbers, got '0,0,x,1'"),
        ("0,0,nan,1", "four finite numbers"),
        ("5,0,3,1", "must have x0 <= x1"),
    ):
        assert line in refusal(capsys, *image[1:], "--boxes", boxes)
    assert "height" in refusal(capsys, "crop", "--height", "0", "--width", "3")
    assert "--objective must be side or area" in refusal(capsys, *image[1:], "--objective", "volume")


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (0, "128 memorized"),
        (1, "0.19 of the training images are remembered"),
        (2, "(0, 0, 300, 200)"),
        (3, "repeats 100% of its people"),
    ],
)
def test_the_lines_of_the_page_run(
    number: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(code) == 4
    exec(compile(code[number], "dejavu.md", "exec"), {})
    assert says in capsys.readouterr().out


def test_the_page_and_the_help_name_every_array(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["memorize", "dejavu", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for name in KEYS:
        if name != "controls_by_model_b":  # read, and needed by nothing
            assert f"`{name}`" in PAGE.read_text() and name in told, name


def test_a_report_that_cannot_be_written_is_refused_before_the_test(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    place = written(tmp_path / "pair.npz", arrays)
    for report, told in ((tmp_path, "is a folder"), (tmp_path / "no" / "x.html", "there is no folder")):
        assert told in refusal(capsys, "dejavu", place, "--report", report, "--force")


def test_pairs_and_sets_that_repeat_each_other_are_refused(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    draw, images = np.random.default_rng(1).standard_normal, len(arrays["labels_a"])
    rows = draw((images, 6))
    sets = {"labels_b": arrays["labels_a"], "b_by_model_a": rows, "b_by_model_b": rows, "a_by_model_a": rows}
    public = {f"public_by_model_{model}": draw((len(arrays["labels_public"]), 6)) for model in "ab"}
    place = written(tmp_path / "same.npz", {**arrays, **sets, **public, "a_by_model_b": draw((images, 6))})
    one = written(tmp_path / "other.npz", {**arrays, "a_by_model_a": rows, "a_by_model_b": rows, **public,
                                           "b_by_model_a": draw((images, 6)), "b_by_model_b": rows})  # fmt: skip
    assert "`pairs` 1 and 2 hold the same embeddings" in refusal(capsys, "dejavu", one, one)
    assert "100% of the embeddings of set b stand in set a of pair 1" in refusal(capsys, "dejavu", place)


def test_memorized_images_are_named_in_json_and_in_the_table_the_surest_first(
    tmp_path: Path, arrays: Arrays, capsys: pytest.CaptureFixture[str]
) -> None:
    named = arrays | {"names_a": np.array([f"dam_{row}.png" for row in range(40)])}
    place = written(tmp_path / "pair.npz", named)
    found = result(capsys, place, "--neighbours", "10")
    images = found["memorized_images"]
    assert len(images) == found["partition"]["memorized"] == 2 * PLANTED.partition.memorized
    assert [one["confidence"] for one in images] == sorted((one["confidence"] for one in images), reverse=True)
    (attacked, other) = PLANTED.pair().attack(neighbours=10)
    for name, each in (("a", attacked), ("b", other)):
        rows = {one["row"] for one in images if one["set"] == name}
        assert rows == set(np.flatnonzero((each.target.correct == 1.0) & (each.reference.correct == 0.0)).tolist())
    assert all(one["image"] == f"dam_{one['row']}.png" for one in images if one["set"] == "a")
    assert all("image" not in one for one in images if one["set"] == "b")
    assert invoke(["memorize", "dejavu", str(place), "--neighbours", "10"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Memorized images, the surest first; about 12 are among them by chance" in shown and "dam_" in shown
    kept = read_pair(place)
    write_pair(kept, tmp_path / "again.npz")
    assert np.asarray(read_pair(tmp_path / "again.npz").names["a"]).tolist() == named["names_a"].tolist()
    short = written(tmp_path / "short.npz", named | {"names_a": np.array(["one"])})
    assert "names_a must name each of the 40 images, got 1" in refusal(capsys, "dejavu", short)


def test_a_column_names_images_in_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = PLANTED.pair()
    sets = [(name, row) for name in ("a", "b", "public") for row in range(len(np.asarray(pair.labels[name])))]
    columns = {
        "set": [name for name, _ in sets],
        "image": [f"{name}{row}" for name, row in sets],
        "label": [str(np.asarray(pair.labels[name])[row]) for name, row in sets],
        **{
            f"model_{model}": [np.asarray(pair.embeddings[name, model])[row].tolist() for name, row in sets]
            for model in ("a", "b")
        },
    }
    pl.DataFrame(columns).write_parquet(tmp_path / "pair.parquet")
    images = result(capsys, tmp_path / "pair.parquet", "--neighbours", "10")["memorized_images"]
    assert images and all(one["image"] == f"{one['set']}{one['row']}" for one in images)
