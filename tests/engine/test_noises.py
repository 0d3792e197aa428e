"""What noises add to a release in files: exactly what the secret says, whatever the batches and partitions."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.oracle import SECRET
from tests.engine.test_draw import draw, files, reports

import dovetail as dt
from dovetail.core.entropy import KeyedEntropy
from dovetail.core.errors import ConfigError, UnsupportedError
from dovetail.engine import publication
from dovetail.engine.orders import Layout
from dovetail.engine.passes import Batch
from dovetail.engine.rows import Secret
from dovetail.ledger.releases import ReleaseLedger
from dovetail.randomize.krr import KRR

NAMES = ["a", "b", "c"]
PEOPLE = pl.DataFrame(
    {"id": range(300), "answer": (["a", "b", "b"] * 100), "class": ["careful", "open", "open", "open"] * 75}
)


def asked(place: Path, **more: Any) -> dict[str, Any]:
    place.mkdir()
    for part in range(3):
        PEOPLE[100 * part : 100 * (part + 1)].write_parquet(place / f"{part}.parquet")
    data = {"path": str(place), "person": "id", "private": "answer", "categories": NAMES, "public": ["class"]}
    return {"schema_version": 1, "mode": "release", "data": data, **more}


def counts(table: pl.DataFrame) -> list[int]:
    return [int((table["report"] == name).sum()) for name in NAMES]


@pytest.mark.exhaust
def test_dummies_of_the_shuffler_are_added_once_whatever_the_batches_and_partitions(tmp_path: Path) -> None:
    settings = asked(tmp_path / "in", promise={"trust": "shuffler", "epsilon": 1.0, "delta": 1e-3})
    job, census, _ = draw(settings, tmp_path / "four", parts=4, rows=100)
    draw(settings, tmp_path / "one", parts=1, rows=17)
    whole = reports(tmp_path / "four")
    assert whole.equals(reports(tmp_path / "one"))
    keys, dummies = Batch(job.messages(census.n)[0], Layout(census.n, 1), Secret(SECRET)).added()
    assert len(np.unique(keys, axis=0)) == dummies.size > 0
    assert counts(whole) == (np.array([100, 200, 0]) + np.bincount(dummies, minlength=3)).tolist()
    assert len(files(tmp_path / "four")) == 4


@pytest.mark.exhaust
def test_dummies_of_people_are_drawn_by_the_people(tmp_path: Path) -> None:
    settings = asked(tmp_path / "in", promise={"trust": "users", "epsilon": 6.0, "delta": 1e-2})
    job, census, found = draw(settings, tmp_path / "four", parts=4, rows=100)
    draw(settings, tmp_path / "one", parts=1, rows=17)
    whole, noise = reports(tmp_path / "four"), job.parts(census.n)[0].noise
    assert whole.equals(reports(tmp_path / "one"))
    own = KeyedEntropy(Secret(SECRET).of("dummies of people"), PEOPLE["id"].to_numpy())
    senders, dummies = noise.beside(300, own)
    assert found.summaries[-1]["beside"] == senders.size == len(set(senders.tolist())) > 0
    assert counts(whole) == (np.array([100, 200, 0]) + np.bincount(dummies, minlength=3)).tolist()


def test_each_class_answers_with_its_own_epsilon(tmp_path: Path) -> None:
    by = {"epsilon": 4.0, "by": "class", "epsilons": {"careful": 1.0}}
    draw(asked(tmp_path / "in", randomize=by), tmp_path / "out", parts=4, rows=50)
    expected = np.zeros(3, dtype=np.int64)
    own = KeyedEntropy(Secret(SECRET).of("randomize krr"), PEOPLE["id"].to_numpy())
    for name, epsilon in (("careful", 1.0), ("open", 4.0)):
        here = np.flatnonzero((PEOPLE["class"] == name).to_numpy())
        codes = PEOPLE["answer"].cast(pl.Enum(NAMES)).to_physical().to_numpy().astype(np.int64)[here]
        expected += np.bincount(KRR(3, epsilon).randomize(codes, own.at(here)), minlength=3)
    released = reports(tmp_path / "out")
    assert released.columns == ["report"] and counts(released) == expected.tolist()


def test_a_misspelled_class_is_refused_in_files_too(tmp_path: Path) -> None:
    """Else the careful ones would be given the noise of everybody else."""
    settings = asked(tmp_path / "in", randomize={"epsilon": 4.0, "by": "class", "epsilons": {"carefull": 1.0}})
    with pytest.raises(ConfigError, match=r"nobody has 'carefull' in column 'class'; did you mean 'careful'\?"):
        dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
    assert not (tmp_path / "out").exists() and ReleaseLedger(tmp_path / "ledger").entries() == []


def test_dummies_that_no_task_could_hold_are_refused_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = asked(tmp_path / "in", promise={"trust": "shuffler", "epsilon": 1.0, "delta": 1e-3})
    monkeypatch.setattr(publication, "memory", lambda: 1000)
    with pytest.raises(UnsupportedError, match=r"adding .* dummies takes"):
        dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
    assert ReleaseLedger(tmp_path / "ledger").entries() == []
