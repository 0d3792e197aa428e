"""What holds people's data shows none of it: not in repr, HTML, errors, logs or the pickle of a release's report."""

import dataclasses
import importlib
import logging
import pickle
import pkgutil
import traceback
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DovetailError
from dovetail.pipeline.config.build import build_collection
from dovetail.pipeline.config.run_config import parse_config

MARK, UNNAMED = "marked-answer-7531", "marked-column-8642"
HOLDS = ("DataFrame", "Series", "Reports", "Survey")  # people's rows, in the annotation of a field
PUBLIC = {  # rows that are released or public, or sizes
    "dovetail.pipeline.stream.batch_sizes.Batches", "dovetail.text.protect.ReleasedDocuments",
    "dovetail.cli.collect.campaign_options.BatchOptions", "dovetail.scale.passes.draw.UnpackReports",
}  # fmt: skip


def table() -> pl.DataFrame:
    return pl.DataFrame(
        {"answer": [MARK, "no"] * 50, "age": list(range(50)) * 2, "diary": [UNNAMED] * 100, "id": range(100)}
    )


def collection(rng: Entropy | None = None, **changes: Any) -> dt.Collection:
    asked: dict[str, Any] = {"private": "answer", "categories": [MARK, "no"], "public": ["age"]}
    return dt.Collection.of(table(), randomizer=dt.KRR(k=2, epsilon=1.0), rng=rng, **{**asked, **changes})


def shown(one: Any) -> str:
    html = getattr(one, "_repr_html_", lambda: "")()
    return f"{one!r} {one} {html} {[one]!r}"


def test_a_collection_and_its_parts_show_no_answers() -> None:
    made = collection(rng=dt.simulation(1))
    for one in (made, made.survey, vars(made)["survey"], dataclasses.astuple(dataclasses.replace(made))[:0]):
        assert MARK not in shown(one) and UNNAMED not in shown(one)
    assert "100 people" in repr(made) and "values are not shown" in repr(made)
    config = parse_config({
        "schema_version": 1, "mode": "rehearsal", "data": {"private": "answer", "categories": [MARK, "no"]},
        "randomize": {"randomizer": "krr", "epsilon": 1.0},
    })  # fmt: skip
    assert UNNAMED not in shown(build_collection(config, dt.simulation(1), table=table()))


def test_no_class_shows_the_rows_that_it_holds() -> None:
    """Whatever dataclass has rows of people as a field must hide that field, or be mute."""
    wrong = []
    for found in pkgutil.walk_packages(dt.__path__, "dovetail."):
        if found.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except DovetailError:  # an extra that is not here
            continue
        except ImportError:
            continue
        for kind in vars(module).values():
            if not (isinstance(kind, type) and kind.__module__ == found.name and dataclasses.is_dataclass(kind)):
                continue
            if any(word in kind.__repr__.__qualname__ for word in ("mute", "displayed_by")):
                continue
            told = [one.name for one in dataclasses.fields(kind) if one.repr and _holds(str(one.type))]
            if told and f"{found.name}.{kind.__name__}" not in PUBLIC:
                wrong.append((f"{found.name}.{kind.__name__}", told))
    assert wrong == []


def _holds(annotation: str) -> bool:
    return any(word in annotation for word in HOLDS) and "Missing" not in annotation and "Callable" not in annotation


def test_a_report_of_a_release_can_be_kept_without_private_columns() -> None:
    report = dt.release(collection())
    assert UNNAMED.encode() not in pickle.dumps(report)
    assert UNNAMED not in shown(report) + str(report.document())


def test_errors_and_logs_name_places_and_no_answers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong: list[dict[str, Any]] = [
        {"public": ["town"]}, {"private": "nothing"}, {"honest": 101}, {"delta": 2.0},
        {"person": "age"},
    ]  # fmt: skip
    for changes in wrong:
        with pytest.raises(DovetailError) as raised:
            collection(**changes)
        text = "".join(traceback.format_exception(raised.value))
        assert MARK not in text and UNNAMED not in text, changes
    assert MARK not in caplog.text and UNNAMED not in caplog.text


def test_what_a_seed_makes_is_made_again() -> None:
    made = collection(rng=dt.simulation(1), public=[])
    first, again, other = (dt.rehearse(made, seed=seed).document() for seed in (5, 5, 6))
    assert first == again and first["seed"] == 5 and first["estimates"] != other["estimates"]
    with pytest.raises(DovetailError, match="not both"):
        dt.rehearse(made, seed=1, rng=dt.simulation(1))
    unseeded = dt.rehearse(made).document()
    assert unseeded["seed"]["value"] is None and unseeded["entropy"] == "device"
    assert np.isfinite(unseeded["verdict"]["rows"][0]["guess"])
