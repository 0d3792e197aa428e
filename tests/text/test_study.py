"""The studies of released documents: their toys run, and what is recorded supports their claims."""

from __future__ import annotations

import codecs
import gzip
import json
import pickle
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest
import studies.sentence_f1.run as sentence_f1
import studies.sentence_plan.run as sentence_plan
from studies import document_corpora
from studies.document_corpora import goodreads, imdb, newsgroups

from dovetail.core.errors import DataError

each_study = pytest.mark.parametrize("study", [sentence_f1, sentence_plan], ids=["f1", "plan"])


def home(study: ModuleType) -> Path:
    return Path(str(study.__file__)).parent


@each_study
@pytest.mark.exhaust
def test_the_toy_leaves_a_table_and_its_verdict_holds(study: ModuleType, tmp_path: Path) -> None:
    assert all(study.verdict(study.main(False, tmp_path)).values())
    assert json.loads((tmp_path / "record.json").read_text())["size"] == "toy"


@each_study
def test_the_recorded_results_are_full_and_support_the_claims(study: ModuleType) -> None:
    assert json.loads((home(study) / "record.json").read_text())["size"] == "full"
    assert all(study.verdict(pl.read_csv(home(study) / "results.csv")).values())


def test_the_chapters_corpora_are_read_where_a_user_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_DATA", str(tmp_path))
    for read, name in ((newsgroups, "20_newsgroups"), (imdb, "imdb"), (goodreads, "goodreads")):
        with pytest.raises(DataError, match=f"{name}: no such folder"):
            read()
    text = "One here. Two here. Three here. Four here. Five here. Six here."
    for number in range(8):
        for group in ("comp.graphics", "comp.windows.x", "alt.atheism", "misc.forsale"):
            place = tmp_path / "20_newsgroups" / "bydate-train" / group
            place.mkdir(parents=True, exist_ok=True)
            (place / str(number)).write_text(f"From: somebody\nSubject: x\n\n{number} {group} {text}", "latin-1")
        for kind in ("pos", "neg"):
            place = tmp_path / "imdb" / "aclImdb" / "train" / kind
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number}_1.txt").write_text(f"{number} {kind}<br />{text}")
    (tmp_path / "goodreads").mkdir()
    for genre in ("poetry", "history"):
        with gzip.open(tmp_path / "goodreads" / f"goodreads_reviews_{genre}.json.gz", "wt") as file:
            file.writelines(json.dumps({"review_text": f"{place} {genre} {text}"}) + "\n" for place in range(8))
    found = {one.name: one for one in (newsgroups(), imdb(), goodreads())}
    labels = {name: {each.label for each in one.public + one.private} for name, one in found.items()}
    assert labels == {
        "20 Newsgroups": {"computers", "religion", "for sale"}, "IMDB": {"pos", "neg"},
        "GoodReads": {"poetry", "history"},
    }  # fmt: skip
    assert not any("somebody" in line for each in found["20 Newsgroups"].public for line in each.sentences)
    assert not {each.sentences for each in found["IMDB"].public} & {each.sentences for each in found["IMDB"].private}


def test_twenty_newsgroups_are_read_as_scikit_learn_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    utils = pytest.importorskip("sklearn.utils")
    monkeypatch.setenv("DOVETAIL_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    with pytest.raises(DataError, match="20_newsgroups: no such folder"):
        newsgroups()
    text = "One here. Two here. Three here. Four here. Five here. Six here."
    names = ["alt.atheism", "comp.graphics", "misc.forsale"]
    part = utils.Bunch(
        data=[f"From: somebody\nSubject: x\n\n{number} {text}" for number in range(12)],
        target=np.arange(12) % 3, target_names=names, filenames=np.array([str(one) for one in range(12)]),
    )  # fmt: skip
    kept = codecs.encode(pickle.dumps({"train": part, "test": part}), "zlib_codec")
    (tmp_path / "20news-bydate_py3.pkz").write_bytes(kept)
    found = newsgroups()
    assert {each.label for each in found.public + found.private} == {"religion", "computers", "for sale"}
    assert not any("somebody" in line for each in found.public + found.private for line in each.sentences)


def test_the_twenty_groups_make_nine_classes() -> None:
    assert len(set(document_corpora.CLASSES_OF_GROUPS.values())) == 9
