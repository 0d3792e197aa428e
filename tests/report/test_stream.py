"""A stream is told round by round where it is short, and thinned, which is said, where it is long."""

import math
import re
from xml.etree import ElementTree

import pytest
from tests.report.documents import stream
from tests.report.test_renderings import flat, parse, printed, text_of

from dovetail.report.charts import TimePoint, time_series_chart
from dovetail.report.html import charts, render_html
from dovetail.report.rounds import MOST_POINTS, bin_rounds, missing_rounds, series_table, window_table


def tick(value: float) -> str:
    return f"{value:g}"


def draw(points: list[TimePoint]) -> str:
    return str(time_series_chart(points, title="t", description="d", tick=tick, names=("e", "truth")))


def test_page_and_terminal_tell_the_rounds_the_windows_and_their_cost() -> None:
    page, terminal = text_of(render_html(stream())), flat(printed(stream(), width=400))
    for words in (
        "448 reports of 65 devices in 8 rounds",
        "Reading all reports of one device, over all rounds,",
        "the device that reports most often spends ε = 7 over all rounds",
        "one round: ε = 1",
        "one round: no bound, in some round somebody is shuffled with nobody else",
        "Budget of a device: ε = 7.5. The device that spent most: ε = 7; 60 of 65 devices have reached the cap.",
        "63 times it was held back because its budget was spent. 1 of 8 rounds have no estimate.",
        "achieved: 50.55% at 3.9, 70.01% at 178.3",
        "Lemma 1 as published says 4.51",
        "Estimator: rao-blackwell. The smaller error is promised by: median (in the largest round: noise dominates)",
        "1 to 4",
        "26.8 to 31.6",
    ):
        assert words in page, words
        assert words in terminal, words


def test_rounds_without_an_estimate_are_gaps_and_dashes() -> None:
    assert series_table(stream()).rows[2][:3] == ("3", "–", "–")
    assert [row[-1] for row in window_table(stream()).rows] == ["3", "4 rounds"]
    assert [missing_rounds(list(range(many))) for many in (0, 2, 4)] == ["none", "0, 1", "4 rounds"]
    spent = stream(6, silent=(5, 6))
    assert len(series_table(spent).rows) == 4
    assert series_table(spent).notes == ("From round 5 to 6 no device that had a value had budget left.",)
    assert len(re.findall("<polyline", str(charts(stream())["series"].chart))) == 2, "the line is cut at the gap"


def test_truth_is_drawn_in_a_rehearsal_only() -> None:
    assert "truth" in series_table(stream(truth=True)).columns
    leaky = stream(truth=True) | {"mode": "release"}
    assert "truth" not in series_table(leaky).columns and 'class="curve-other"' not in render_html(leaky)


@pytest.mark.parametrize("count", [1, 2, 119, 120, 121, 10_000])
def test_a_series_of_any_length_is_drawn_with_few_points(count: int) -> None:
    document = stream(count, silent=())
    bins = bin_rounds(document, MOST_POINTS)
    assert len(bins) <= MOST_POINTS and sum(each.rounds for each in bins) == count
    assert [each.first for each in bins[1:]] == [each.last + 1 for each in bins[:-1]]
    page = render_html(document)
    assert len(page) < 200_000
    assert (f"each the mean of {bins[0].rounds:,} rounds" in page) == (count > MOST_POINTS)
    parse(page)


def test_a_thinned_point_is_what_a_window_query_answers() -> None:
    document = stream(12, silent=(2,))
    first = bin_rounds(document, 3)[0]
    known = [value for value in document["rounds"]["series"]["value"][:4] if value is not None]
    assert (first.first, first.last, first.rounds, len(known)) == (1, 4, 4, 3)
    assert first.value == pytest.approx(sum(known) / 3)
    assert first.error == pytest.approx(2.0 / math.sqrt(3))
    assert first.interval[1] - first.value == pytest.approx(1.959964 * 2.0 / math.sqrt(3) + 0.1)


def test_a_stream_in_which_nobody_reports_any_more_has_no_chart_of_rounds() -> None:
    document = stream(3, silent=(1, 2, 3))
    assert "series" not in charts(document)
    parse(render_html(document))


def test_everything_is_drawn_inside_the_picture() -> None:
    for points in (
        [TimePoint(5.0, 1.0, 0.0, 2.0, 1.5)],
        [TimePoint(float(t), math.sin(t), math.sin(t) - 1, math.sin(t) + 2, 0.0) for t in range(1, 100)],
        [TimePoint(1.0, None), TimePoint(2.0, 3.0, 1.0, 4.0), TimePoint(900.0, None)],
        [TimePoint(1e6, -1e5, -2e5, 3e5), TimePoint(2e6, 1e5, -2e5, 3e5)],
    ):
        root = ElementTree.fromstring(draw(points))
        width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
        for element in root.iter():
            for name, limit in (
                ("x", width),
                ("x1", width),
                ("x2", width),
                ("cx", width),
                ("y", height),
                ("cy", height),
            ):
                assert -0.1 <= float(element.get(name, 0.0)) <= limit + 0.1
            for pair in element.get("points", "").split():
                x, y = (float(part) for part in pair.split(","))
                assert 0 <= x <= width and 0 <= y <= height


def test_few_points_are_drawn_one_by_one_and_many_as_a_band() -> None:
    few = [TimePoint(float(t), 1.0, 0.5, 1.5) for t in range(10)]
    assert "whisker" in draw(few) and "polygon" not in draw(few)
    many = [TimePoint(float(t), 1.0, 0.5, 1.5) for t in range(100)]
    assert "whisker" not in draw(many) and draw(many).count("<polygon") == 1


def test_whole_times_have_whole_marks() -> None:
    points = [TimePoint(t, 0.5, 0.4, 0.6) for t in range(1, 13)]
    assert re.findall(r'class="tick middle"[^>]*>([^<]*)<', draw(points)) == ["5", "10", "round"]
    halves = [TimePoint(t / 2, 0.5, 0.4, 0.6) for t in range(1, 5)]
    assert re.findall(r'class="tick middle"[^>]*>([^<]*)<', draw(halves))[:-1] == ["0.5", "1", "1.5", "2"]


def test_means_outside_the_declared_range_are_shown_at_its_end_and_the_note_says_so() -> None:
    document = stream()
    assert not any("declared range" in note for note in series_table(document).notes)
    document["collection"] |= {"lower": 29.0, "upper": 178.3}
    table = series_table(document)
    low = [value for value in document["rounds"]["series"]["value"] if value is not None and value < 29.0]
    assert len(low) > 1 and all(float(row[1]) >= 29.0 for row in table.rows if row[1] != "\u2013")
    assert (
        f"{len(low)} of 7 are shown at the nearest end" in table.notes[0] and "half the noise error" in table.notes[0]
    )
    assert all(each.interval[0] >= 29.0 for each in bin_rounds(document, MOST_POINTS) if each.known)


def test_unbiased_means_stand_beside_on_request() -> None:
    document = stream()
    document["collection"] |= {"lower": 29.5, "upper": 178.3}
    document["windows"]["rows"][0] |= {"possible": 29.5}
    assert "unbiased" not in series_table(document).columns + window_table(document).columns
    document["config"] = {**document["config"], "estimate": {"unbiased": True}}
    rounds, windows = series_table(document), window_table(document)
    assert "unbiased" in rounds.columns and "unbiased" in windows.columns
    place = windows.columns.index("unbiased")
    assert (windows.rows[0][1], windows.rows[0][place], windows.rows[1][place]) == ("29.5", "29.2", "\u2013")
    parse(render_html(document))
