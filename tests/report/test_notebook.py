"""A report in a notebook says what the document says, shows the truth in rehearsals alone, and escapes every word."""

from html import escape
from pathlib import Path

import polars as pl
import pytest

import dovetail as dt
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


def test_the_fragment_says_what_the_document_says_and_escapes_it(rehearsal: dt.PrivacyReport) -> None:
    fragment = rehearsal._repr_html_()  # type: ignore[attr-defined]
    assert "<img" not in fragment and "&lt;img" in fragment
    assert "protects nobody" in fragment
    for sentence in summary(rehearsal.document()):
        assert escape(sentence) in fragment


def test_a_report_is_three_lines_in_a_terminal(rehearsal: dt.PrivacyReport, release: dt.PrivacyReport) -> None:
    assert repr(rehearsal).startswith("PrivacyReport of a rehearsal") and len(repr(rehearsal).splitlines()) == 3
    assert "protection of one person: strong, if the shuffler and all 400 people are honest" in repr(rehearsal)
    assert repr(release).startswith("PrivacyReport of a release") and "ε = 2" in repr(release)


def test_only_a_rehearsal_shows_the_truth(rehearsal: dt.PrivacyReport, release: dt.PrivacyReport) -> None:
    assert rehearsal.to_polars()["truth"].to_list()[:2] == [0.5, 0.5]
    assert "truth" not in release.to_polars().columns and "REHEARSAL" not in release._repr_html_()  # type: ignore[attr-defined]


def test_the_data_frame_is_the_document(rehearsal: dt.PrivacyReport) -> None:
    overall = rehearsal.document()["estimates"]["overall"]
    frame = rehearsal.to_polars().filter(pl.col("by").is_null())
    assert frame["label"].to_list() == LABELS and frame["value"].to_list() == overall["value"]
    assert [list(ends) for ends in frame.select("low", "high").rows()] == [list(ends) for ends in overall["interval"]]


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


def test_a_plan_shows_its_promise_rounded_up() -> None:
    plan = dt.plan_collection(question="frequency", k=4, n=10_000, epsilon0=1.0, delta=1e-6)
    shown = repr(plan)
    assert shown.startswith("CollectionPlan for 10,000 people: krr, epsilon0 ") and len(shown.splitlines()) == 2
    epsilon0, epsilon = (float(shown.split(f"{name} ")[1].split()[0]) for name in ("epsilon0", "\nepsilon"))
    assert epsilon0 >= plan.epsilon0 and epsilon >= plan.epsilon
    assert "Plan for 10,000 people" in plan._repr_html_()  # type: ignore[attr-defined]
