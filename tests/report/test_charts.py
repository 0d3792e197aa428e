"""Charts are well-formed, accessible and draw what they are given."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup

from dovetail.report.charts import (
    ChangeRow,
    IntervalRow,
    NamedCurve,
    ReferenceLine,
    change_chart,
    curve_chart,
    heat_chart,
    interval_chart,
    round_ticks,
)

NASTY = "<script>alert('&\"')</script>\x00\x1b]]>"
NUMBERS = st.floats(-1e6, 1e6)


def tick(value: float) -> str:
    return f"{value:g}"


def draw_all(label: str) -> list[Markup]:
    return [
        interval_chart([IntervalRow(label, label, 0.5, 0.4, 0.6, 0.45)], title=label, description=label, tick=tick),
        change_chart(
            [ChangeRow(label, label, 2.0, 0.1), ChangeRow("none", "", 2.0, None)],
            title=label, description=label, tick=tick, names=(label, "after"),
        ),
        heat_chart([label, "b"], {(1, 0): 0.5}, title=label, description=label),
        heat_chart(["a"], {(0, 0): 2.0, (0, 1): -1.0}, columns=[label, "c"], title=label, description=label),
        curve_chart(
            [NamedCurve(label, "curve-main", [1, 10, 100], [1.0, 0.6, 0.5])],
            title=label, description=label, tick=tick,
            levels=[ReferenceLine(label, "level-main", 0.5)], mark=ReferenceLine(label, "mark", 50),
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("label", ["plain", NASTY])
def test_every_chart_is_well_formed_with_role_title_and_description(label: str) -> None:
    for chart in draw_all(label):
        root = ElementTree.fromstring(str(chart))
        assert root.get("role") == "img"
        assert [child.tag for child in root][:2] == ["title", "desc"]
        assert "script" not in {element.tag for element in root.iter()}


@example(0.0, 5e-324)
@example(1e6, 1e6 + 1e-9)
@given(NUMBERS, NUMBERS)
def test_round_ticks_hold_the_range_and_are_few(one: float, other: float) -> None:
    low, high = sorted((one, other))
    first, last, marks = round_ticks(low, high)
    slack = 1e-6 * (last - first)
    assert first - slack <= low
    assert high <= last + slack
    assert 2 <= len(marks) <= 9


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_everything_is_drawn_inside_the_picture(pairs: list[tuple[float, float]]) -> None:
    rows = [IntervalRow("row", "", (a + b) / 2, min(a, b), max(a, b), a) for a, b in pairs]
    root = ElementTree.fromstring(str(interval_chart(rows, title="t", description="d", tick=tick)))
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    for element in root.iter():
        for name, limit in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("cy", height)):
            assert -0.1 <= float(element.get(name, 0.0)) <= limit + 0.1


def test_a_square_of_a_heat_map_is_as_dark_as_its_part_of_the_darkest() -> None:
    heat = {(row, column): (row + column) / 3.0 for row in range(2) for column in range(3)}
    chart = str(heat_chart(["a", "b"], heat, columns=["low", "middle", "high"], title="t", description="d"))
    squares = [one for one in ElementTree.fromstring(chart).iter() if one.tag == "rect"]
    places = {(float(one.attrib["y"]), float(one.attrib["x"])): float(one.attrib["fill-opacity"]) for one in squares}
    assert [places[place] for place in sorted(places)] == pytest.approx([*heat.values()], abs=1e-3)
    assert "1 low · 2 middle · 3 high" in chart


def test_the_truth_is_drawn_only_where_it_is_known() -> None:
    row = IntervalRow("yes", "", 0.5, 0.4, 0.6)
    assert 'class="truth"' not in interval_chart([row], title="t", description="d", tick=tick)
    assert 'class="truth"' in interval_chart([row._replace(truth=0.5)], title="t", description="d", tick=tick)


def test_a_curve_over_one_place_is_drawn() -> None:
    chart = curve_chart([NamedCurve("one", "curve-main", [1.0], [1.0])], title="t", description="d", tick=tick)
    assert math.isfinite(float(ElementTree.fromstring(str(chart)).attrib["viewBox"].split()[3]))
