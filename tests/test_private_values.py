"""What holds people's data shows none of it: not in repr, HTML, errors, logs or the pickle of a release's report."""

import dataclasses
import importlib
import logging
import pickle
import pkgutil
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
import dovetail_device
import dovetail_protocol
from dovetail.core.entropy import Entropy
from dovetail.core.errors import DovetailError
from dovetail.job.build import build_collection
from dovetail.job.config import parse_config
from dovetail.memorize.copying.search import TrainingIndex
from dovetail.text.documents import Document
from dovetail.trace.fit import grouped
from dovetail.trace.trace import Trace

MARK, UNNAMED = "marked-answer-7531", "marked-column-8642"
# of annotations of rows
HOLDS = ("DataFrame", "Series", "Reports", "Survey", "Floats", "Points", "NDArray", "bytes]")
PRIVATE = {"sentences", "answers", "payload"}  # names of such fields
PUBLIC = (  # laws and designs, which are published with a release; what is released; sizes
    "dovetail.account.", "dovetail.core.", "dovetail.trace.loss.", "dovetail.trace.closed_form.",
    "dovetail.trace.plan.", "dovetail.trace.descent.", "dovetail.trace.regular.", "dovetail.trace.noise.",
    "dovetail.trace.posterior_loss.", "dovetail.trace.release_design.", "dovetail.trace.rehearsal.Smoother",
    "dovetail.trace.rehearsal._Guesses", "dovetail.trace.plan.TracePrior",
    "dovetail.trace.fit.Fit",
    "dovetail.trace.protect.ProtectedTrace", "dovetail.engine.job.",
    "dovetail.text.deep_candidate.ReleasedDocuments", "dovetail.job.stream.Batches",
    "dovetail.text.release.RehearsedRelease", "dovetail.plan.explain.",
    "dovetail.cli.audit.ClaimOptions",
    "dovetail.cli.collect.new.", "dovetail.cli.plan_shuffle.", "dovetail.engine.passes.UnpackReports",
    "dovetail.collect.simulate.", "dovetail.collect.shuffler.campaigns.",
    "dovetail.job.synthesize.SyntheticTable", "dovetail.question.nonresponse._Ratio",
)  # fmt: skip


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


@pytest.mark.exhaust
def test_no_class_shows_the_rows_that_it_holds() -> None:
    """Whatever class has rows of people as a field, here and on devices, must hide that field or be mute."""
    wrong = {place: fields for place, fields in _told() if fields and not place.startswith(PUBLIC)}
    assert wrong == {}


def _told() -> Iterator[tuple[str, list[str]]]:
    """Every class of every module, and those of its shown fields that are said to hold rows."""
    for package in (dt, dovetail_device, dovetail_protocol):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__"):
                continue
            try:
                module = importlib.import_module(found.name)
            except (DovetailError, ImportError):  # an extra that is not here
                continue
            for kind in vars(module).values():
                if isinstance(kind, type) and kind.__module__ == found.name:
                    yield (
                        f"{found.name}.{kind.__name__}",
                        [name for name, type_ in _shown(kind) if _holds(name, type_)],
                    )


def _shown(kind: type) -> list[tuple[str, str]]:
    """The fields that the repr of a class prints, with their annotations."""
    if (
        any(word in kind.__repr__.__qualname__ for word in ("mute", "displayed_by"))
        or kind.__repr__ is object.__repr__
    ):
        return []
    if dataclasses.is_dataclass(kind):
        return [(one.name, str(one.type)) for one in dataclasses.fields(kind) if one.repr]
    return [(name, str(kind.__annotations__[name])) for name in getattr(kind, "_fields", ())]


def _holds(name: str, annotation: str) -> bool:
    if "Missing" in annotation or "Callable" in annotation:
        return False
    return name in PRIVATE or any(word in annotation for word in HOLDS)


def test_what_is_built_of_marked_places_and_sentences_shows_none() -> None:
    places = [[75310.5, 1.0], [75310.5, 2.0], [75310.5, 3.0]]
    walk = Trace.of("monday", [0.0, 60.0, 120.0], places)
    letter = Document("letter", (MARK, UNNAMED))
    for one in (walk, grouped([walk]), letter, TrainingIndex(np.asarray(places))):
        assert not any(mark in shown(one) for mark in ("75310", MARK, UNNAMED)), type(one)


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
