"""What values show of themselves: short in a terminal, escaped and self-contained in a notebook, never too good."""

import math
import re
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.written import read

import dovetail as dt
from dovetail.core.display import COLOURS, MOST_ROWS, Display, Grid, decimals_of, toward
from dovetail.core.estimate import Estimate
from dovetail.estimate.frequency import project_to_simplex
from dovetail.estimate.mean import QuantileEstimate

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e&\"'"


def shares() -> Estimate:
    return Estimate(np.array([0.251, 0.749]), np.array([0.0123, 0.0123]), 1200, np.array([0.02, 0.02]))


def grouped() -> Estimate:
    value = np.array([[0.2, 0.8], [0.4, 0.6], [0.5, 0.5]])
    return Estimate(value, np.full((3, 2), 0.01), np.array([10, 20, 30]), np.full((3, 2), 0.02), bias_bound=0.001)


def means() -> Estimate:
    return Estimate(np.array([1.5, 2.5]), np.array([0.1, 0.2]), np.array([7, 8]), np.array([0.3, 0.4]))


def single() -> Estimate:
    return Estimate(np.asarray(3.25), np.asarray(0.5), 9, np.asarray(0.6))


SHOWN: dict[str, Any] = {
    "shares": shares(),
    "groups": grouped(),
    "means": means(),
    "one number": single(),
    "projected": project_to_simplex(shares()),
    "quantile": QuantileEstimate(value=3.0, low=2.0, high=4.0, level=0.9, n=10),
    "local": dt.KRR(k=4, epsilon=2.0).guarantee,
    "simulated": dt.KRR(k=4, epsilon=2.0).guarantee.drawn_from("simulation"),
    "nothing promised": dt.LocalDP(math.inf),
    "central": dt.amplify(dt.KRR(k=4, epsilon=2.0), n=1000, honest=900, delta=1e-6),
    "order": dt.WithinGroups(dt.Groups.from_labels([1, 1, 2, 2])).guarantee,
    "no order": dt.Identity(5).guarantee,
    "guess": dt.vulnerability(dt.KRR(k=4, epsilon=2.0), n=100),
}
each_shown = pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN)


class Tags(HTMLParser):
    """The elements of a fragment, and what they load."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(fragment)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


@each_shown
def test_a_value_shows_itself_in_at_most_three_short_lines(shown: Any) -> None:
    lines = repr(shown).splitlines()
    assert 1 <= len(lines) <= 3 and all(line and len(line) <= 160 for line in lines)


@each_shown
def test_the_fragment_is_well_formed_and_needs_nothing_else(shown: Any) -> None:
    found = Tags(shown._repr_html_())
    assert not found.open
    assert found.seen <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert found.attributes <= {"style", "scope"}
    assert not re.search(r"url\(|https?:|@import", shown._repr_html_())


@pytest.mark.parametrize("place", ["brief", "title", "lead", "facts", "grid", "notes", "warnings"])
def test_every_word_is_escaped_and_moves_nothing(place: str) -> None:
    values: dict[str, Any] = {
        "lead": (HOSTILE,),
        "facts": ((HOSTILE, HOSTILE),),
        "grid": Grid((HOSTILE,), [(HOSTILE,)]),
        "notes": (HOSTILE,),
        "warnings": (HOSTILE,),
    }
    shown = Display(**{"brief": "b", "title": "t", place: values.get(place, HOSTILE)})
    found = Tags(shown.html())
    assert "script" not in found.seen and not found.open
    for text in (shown.html(), shown.text()):
        assert "\x1b" not in text and "\u202e" not in text


def test_labels_of_an_estimate_are_escaped() -> None:
    named = shares().label(["no", HOSTILE])
    assert "<script>" not in named._repr_html_() and "&lt;script&gt;" in named._repr_html_()
    assert "\x1b" not in repr(named)


def test_a_simulated_promise_says_so_wherever_it_is_shown() -> None:
    for made in (SHOWN["local"], SHOWN["central"], SHOWN["order"]):
        simulated = made.drawn_from("simulation")
        assert "protects nobody" in repr(simulated) and "protects nobody" in simulated._repr_html_()
        assert "protects nobody" not in repr(made) + made._repr_html_()


@given(epsilon=st.floats(1e-6, 700.0))
def test_a_shown_promise_is_never_smaller_than_the_promise(epsilon: float) -> None:
    found = Tags(dt.LocalDP(epsilon)._repr_html_()).words
    number = r"((?:[0-9.,]+ × )?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|[0-9.,]+|∞)"
    shown = read(re.findall(f"at most {number}", found)[0])
    factor = re.search(f"factor of at most {number}", found)
    assert shown >= epsilon and factor is not None and read(factor.group(1)) >= math.exp(epsilon)


@given(value=st.floats(-1e6, 1e6), digits=st.integers(0, 6))
def test_ends_of_intervals_are_rounded_outwards(value: float, digits: int) -> None:
    low, high = (Decimal(toward(value, digits, way).replace(",", "")) for way in ("ROUND_FLOOR", "ROUND_CEILING"))
    assert low <= Decimal(value) <= high or Decimal(repr(value)) in (low, high)  # 0.1 stays 0.1
    assert high - low <= Decimal(1).scaleb(-digits)
    assert toward(-0.0, digits, "ROUND_FLOOR")[0] != "-"


@pytest.mark.parametrize(("error", "digits"), [(math.inf, 6), (math.nan, 6), (0.0, 6), (1e-300, 12), (0.0099, 4)])
def test_decimals_follow_the_error(error: float, digits: int) -> None:
    assert decimals_of(error) == digits


def test_a_long_table_says_how_much_is_left_out() -> None:
    k = MOST_ROWS + 5
    many = Estimate(np.full(k, 1 / k), np.full(k, 0.01), 100, np.full(k, 0.01))
    assert "and 5 more rows" in many._repr_html_() and repr(many).endswith(f"and {k - 4} more")


def test_a_vulnerability_is_rounded_up_and_its_gain_too() -> None:
    seen = SHOWN["guess"]
    chance, gain = re.findall(r">([0-9.]+)(?:%| points)</td>", seen._repr_html_())[-2:]
    assert float(chance) >= 100 * seen.randomized_shuffled and float(gain) >= 100 * seen.randomized_shuffled_leakage


# --- names, data frames and figures --------------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", [shares(), grouped(), means(), single()], ids=repr)
def test_the_data_frame_has_every_number_once(estimate: Estimate) -> None:
    frame = estimate.to_polars(0.9)
    low, high = estimate.interval(0.9)
    for name, values in {"value": estimate.value, "standard_error": estimate.standard_error}.items():
        np.testing.assert_array_equal(frame[name], np.ravel(values))
    np.testing.assert_allclose(frame["low"], np.ravel(low))
    np.testing.assert_allclose(frame["high"], np.ravel(high))
    assert frame["n"].sum() == int(np.sum(np.asarray(estimate.n)) * estimate.value.size / np.size(estimate.n))


def test_names_reach_the_data_frame_in_the_order_of_the_array() -> None:
    frame = grouped().label(["no", "yes"], groups=["a", "b", "c"]).to_polars()
    assert frame.filter(pl.col("group") == "b").select("label", "value").rows() == [("no", 0.4), ("yes", 0.6)]
    assert means().label(groups=["x", "y"]).to_polars()["group"].to_list() == ["x", "y"]
    assert grouped().label(["no", "yes"]).group(1).labels == ("no", "yes")


@pytest.mark.parametrize(
    ("estimate", "names"),
    [
        (shares(), {"labels": ["no"]}),
        (shares(), {"labels": "no"}),
        (shares(), {"labels": [1, 2]}),
        (shares(), {"labels": 3}),
        (shares(), {"groups": ["a"]}),
        (means(), {"labels": ["a", "b"]}),
        (grouped(), {"labels": ["no", "yes"], "groups": ["a"]}),
    ],
    ids=repr,
)
def test_another_number_of_names_is_refused(estimate: Estimate, names: Any) -> None:
    with pytest.raises(dt.DovetailError, match=r"must be .* texts, one for each"):
        estimate.label(**names)


@pytest.mark.exhaust
def test_a_figure_shows_every_interval_and_pyplot_forgets_it() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    figure = grouped().label(["no", "$yes$"], groups=["a", "b", "c" * 90]).plot()
    axis = figure.axes[0]
    assert len(axis.get_yticklabels()) == 6 and axis.get_xlabel() == "estimate with 95 % interval"
    spans = [segment[:, 0] for segment in axis.collections[0].get_segments()]
    np.testing.assert_allclose(np.sort(spans, axis=1).T, [np.ravel(end) for end in grouped().interval()])
    assert pyplot.get_fignums() == [] and axis.lines[0].get_color() == COLOURS[0]
    figure.canvas.draw()  # dollars are no formula
