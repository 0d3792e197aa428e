"""A report in a notebook says what the document says, shows the truth in rehearsals alone, and escapes every word."""

import json
from html import escape
from pathlib import Path

import polars as pl
import pytest

import dovetail as dt
from dovetail.core.errors import OutputError, ParameterError
from dovetail.ledger.releases import ReleaseLedger
from dovetail.report.tables import summary

HOSTILE = '<img src=x onerror="alert(1)">'
LABELS = ["no", HOSTILE]


def asked(*, simulated: bool) -> dt.Collection:
    """A collection of 400 people with a hostile category."""
    table = pl.DataFrame({"answer": LABELS * 200, "age": [20, 20, 30, 30] * 100})
    return dt.Collection.of(
        table, private="answer", public=["age"], categories=LABELS, randomizer=dt.KRR(k=2, epsilon=2.0),
        rng=dt.simulation(1) if simulated else None,
    )  # fmt: skip


@pytest.fixture(scope="module")
def rehearsal() -> dt.PrivacyReport:
    return dt.rehearse(asked(simulated=True), rng=dt.simulation(2))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dt.PrivacyReport:
    ledger: Path = tmp_path_factory.mktemp("ledger")
    return dt.release(asked(simulated=False), ledger=ReleaseLedger(ledger))


@pytest.mark.exhaust
def test_the_fragment_says_what_the_document_says_and_escapes_it(rehearsal: dt.PrivacyReport) -> None:
    fragment = rehearsal._repr_html_()  # type: ignore[attr-defined]
    assert "<img" not in fragment and "&lt;img" in fragment
    assert "protects nobody" in fragment
    for sentence in summary(rehearsal.document()):
        assert escape(sentence) in fragment


def test_a_report_is_three_lines_in_a_terminal(rehearsal: dt.PrivacyReport, release: dt.PrivacyReport) -> None:
    assert repr(rehearsal).startswith("PrivacyReport of a rehearsal") and len(repr(rehearsal).splitlines()) == 3
    assert "protection of one person: strong, but only if the shuffler and all 400 people are honest" in repr(
        rehearsal
    )
    assert repr(release).startswith("PrivacyReport of a release") and "ε = 2" in repr(release)


def test_only_a_rehearsal_shows_the_truth(rehearsal: dt.PrivacyReport, release: dt.PrivacyReport) -> None:
    assert rehearsal.to_polars()["truth"].to_list()[:2] == [0.5, 0.5]
    assert "truth" not in release.to_polars().columns and "REHEARSAL" not in release._repr_html_()  # type: ignore[attr-defined]


def test_the_data_frame_is_the_document(rehearsal: dt.PrivacyReport) -> None:
    overall = rehearsal.document()["estimates"]["overall"]
    frame = rehearsal.to_polars().filter(pl.col("by").is_null())
    assert frame["label"].to_list() == LABELS and frame["value"].to_list() == overall["value"]
    assert [list(ends) for ends in frame.select("low", "high").rows()] == [list(ends) for ends in overall["interval"]]


@pytest.mark.exhaust
def test_the_figure_shows_the_truth_in_rehearsals_alone_and_names_its_priors(
    rehearsal: dt.PrivacyReport, release: dt.PrivacyReport
) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    first, second = rehearsal.plot(), release.plot()
    assert first.get_suptitle() == "REHEARSAL" and second.get_suptitle() == ""
    assert first.axes[0].get_legend() is not None and second.axes[0].get_legend() is None
    guesses = [text.get_text().replace("\n", " ") for text in second.axes[1].get_yticklabels()]
    assert guesses == ["blind guess, uniform prior", "best guess after the shuffle, uniform prior"]
    first.canvas.draw()
    assert pyplot.get_fignums() == []


@pytest.mark.exhaust
def test_a_plan_shows_its_promise_rounded_up() -> None:
    plan = dt.plan_collection(question="frequency", k=4, n=10_000, epsilon0=1.0, delta=1e-6)
    shown = repr(plan)
    assert shown.startswith("CollectionPlan for 10,000 people: k-ary randomized response, epsilon0 ")
    assert len(shown.splitlines()) == 2
    epsilon0, epsilon = (float(shown.split(f"{name} ")[1].split()[0]) for name in ("epsilon0", "\nepsilon"))
    assert epsilon0 >= plan.epsilon0 and epsilon >= plan.epsilon
    assert "Plan for 10,000 people" in plan._repr_html_()  # type: ignore[attr-defined]


def test_a_report_is_saved_as_a_run_saves_it_and_never_over_another(
    rehearsal: dt.PrivacyReport, release: dt.PrivacyReport, tmp_path: Path
) -> None:
    saved = release.save(tmp_path / "release")
    assert {path.name for path in (tmp_path / "release").iterdir()} == {*saved.files.values()}
    assert json.loads((tmp_path / "release" / "report.json").read_text()) == saved.document()
    assert pl.read_parquet(tmp_path / "release" / "sanitized.parquet").equals(release.sanitized)
    rehearsal.save(str(tmp_path / "rehearsal"))
    assert not (tmp_path / "rehearsal" / "sanitized.parquet").exists()
    with pytest.raises(OutputError, match="holds a report already"):
        rehearsal.save(tmp_path / "release")
    rehearsal.save(tmp_path / "release", force=True)
    assert "REHEARSAL" in (tmp_path / "release" / "report.html").read_text()


def test_pandas_gets_the_same_frame(rehearsal: dt.PrivacyReport) -> None:
    pytest.importorskip("pandas")
    frame, ours = rehearsal.to_pandas(), rehearsal.to_polars()
    assert list(frame.columns) == ours.columns and frame["value"].tolist() == ours["value"].to_list()


def test_groups_are_named_by_their_columns() -> None:
    table = pl.DataFrame({"answer": ["no", "yes"] * 50, "age": [20, 30] * 50, "town": ["a", "a", "b", "b"] * 25})
    given = {"private": "answer", "categories": ["no", "yes"], "randomizer": dt.KRR(k=2, epsilon=1.0)}

    def groups(*columns: str) -> dt.Groups:
        asked = dt.Collection.of(table, public=["age", "town"], shuffler=dt.WithinGroups.by(*columns), **given)
        found = asked.shuffler.guarantee.groups
        assert found is not None
        return found

    assert sorted(groups("age").sizes.tolist()) == [50, 50]
    assert sorted(groups("age", "town").sizes.tolist()) == [25] * 4
    with pytest.raises(ParameterError, match="must be public columns, got 'salary'"):
        groups("salary")
    with pytest.raises(ParameterError, match="at least one"):
        dt.WithinGroups.by()


def test_a_notebook_shows_the_message_and_the_line_of_its_own_cell() -> None:
    with pytest.raises(ParameterError) as raised:
        dt.KRR(k=1, epsilon=1.0)
    message, *lines = raised.value._render_traceback_()
    assert message.startswith("ParameterError: `k` must")
    assert lines and all("test_notebook.py" in line for line in lines)
