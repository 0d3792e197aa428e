"""The page and the terminal say what the document says, and nothing else."""

import io
import json
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.report.documents import N, absent, numeric, rehearsal, release, share, stream

from dovetail.report.html import charts, render_html
from dovetail.report.number_format import percent_up
from dovetail.report.sentences import guess_sentences, summarize_metrics
from dovetail.report.tables import comparison_table
from dovetail.report.terminal import print_report, print_short

Document = dict[str, Any]
SAMPLES = pytest.mark.parametrize("make", [rehearsal, release, numeric, stream])
VOID = {"meta", "link"}


class Balance(HTMLParser):
    """Reads a page strictly: every element is closed in order; collects addresses and headings."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.addresses += [
            value or "" for name, value in attrs if name in ("href", "src", "srcset", "action", "data")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parse(page: str) -> Balance:
    parser = Balance()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def text_of(page: str) -> str:
    """What a reader sees."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", body)))


def printed(document: Document, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    print_report(document, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@SAMPLES
def test_the_page_is_balanced_and_reads_from_heading_to_heading(make: Callable[[], Document]) -> None:
    levels = [int(tag[1]) for tag in parse(render_html(make())).seen if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@SAMPLES
def test_the_page_needs_nothing_from_outside(make: Callable[[], Document]) -> None:
    page = render_html(make())
    parser = parse(page)
    assert "http" not in page
    assert set(parser.addresses) == {"data:,"}
    assert "url(" not in page
    assert "@import" not in page
    assert not {"script", "img", "iframe", "object", "embed", "form"} & set(parser.seen)


@SAMPLES
def test_both_renderings_show_every_lens_with_its_number_or_its_reason(make: Callable[[], Document]) -> None:
    document = make()
    page, terminal = text_of(render_html(document)), printed(document, width=400)
    for metric in summarize_metrics(document):
        for shown in (page, flat(terminal)):
            for words in (
                metric.name,
                metric.headline,
                metric.meaning,
                *metric.lines,
                *metric.caveats,
                metric.source,
            ):
                assert words in shown


@pytest.mark.parametrize(
    "number",
    ["ε = 2", "factor of at most 7.39", "ε = 0.432", "10⁻⁶", "α = 0", "52.59%", "88.08%", "68.12%", "67.75%"],
)
def test_the_numbers_of_the_rehearsal_are_on_the_page(number: str) -> None:
    assert number in text_of(render_html(rehearsal()))


@pytest.mark.exhaust
@pytest.mark.parametrize("metric", ["local", "central", "order", "leakage", "attack"])
@pytest.mark.parametrize("make", [rehearsal, release])
def test_a_metric_that_does_not_apply_says_why(metric: str, make: Callable[[], Document]) -> None:
    document = make() | {metric: absent("the dog ate the theorem")}
    assert "Does not apply: the dog ate the theorem" in text_of(render_html(document))
    assert "Does not apply: the dog ate the theorem" in flat(printed(document, width=400))


def test_an_order_that_promises_nothing_says_so() -> None:
    document = rehearsal()
    document["order"]["alpha"] = "inf"
    document["local"]["epsilon"] = "inf"
    page = text_of(render_html(document))
    assert "α = ∞ Nothing is promised about the order of the rows." in page
    assert "ε = ∞ Nothing is promised: one report may reveal its owner's answer." in page


def test_without_a_uniform_shuffle_the_leakage_is_that_of_one_report() -> None:
    metric = summarize_metrics(release())[3]
    assert metric.headline == "+20.33 points"
    assert "the report of one person" in metric.meaning
    assert any("no number for the released order" in detail for detail in metric.details)


@pytest.mark.exhaust
def test_caveats_stand_beside_the_number_they_take_away() -> None:
    assert "drawn from a simulation seed: protects nobody" in summarize_metrics(rehearsal())[0].caveats
    assert "But: drawn from a simulation seed: protects nobody" in text_of(render_html(rehearsal()))
    assert "But: drawn from a simulation seed: protects nobody" in flat(printed(rehearsal(), width=400))


@pytest.mark.exhaust
def test_a_rehearsal_has_a_watermark_and_a_release_has_none() -> None:
    assert '<aside class="watermark"' in render_html(rehearsal())
    assert "REHEARSAL" in printed(rehearsal())
    assert '<aside class="watermark"' in render_html(rehearsal() | {"watermark": None})
    for document in (release(), numeric()):
        assert '<aside class="watermark"' not in render_html(document)
        assert "REHEARSAL" not in printed(document)


def test_a_release_shows_no_truth_even_when_the_document_holds_it() -> None:
    leaky = release()
    leaky["estimates"] = rehearsal()["estimates"]
    leaky["estimates"]["overall"]["truth"] = [0.123456, 0.876544]
    page, terminal = render_html(leaky), printed(leaky)
    for trace in ("12.35", "87.65", "truth (rehearsal", 'class="truth"', "0.123456"):
        assert trace not in page
        assert trace not in terminal
    assert ">truth<" not in page
    assert ">truth<" in render_html(rehearsal())


@pytest.mark.exhaust
def test_every_word_of_the_document_is_escaped() -> None:
    nasty = "<script>alert(1)</script>"
    document = rehearsal()
    document["title"] = document["watermark"] = nasty
    document["collection"] |= {"private": nasty, "public": [nasty], "categories": [nasty, "yes"]}
    document["shuffler"] = document["comparison"][2]["shuffler"] = document["order"]["shuffler"] = nasty
    document["estimates"]["overall"]["labels"] = [nasty, nasty]
    document["estimates"]["withheld"][0]["by"] = nasty
    for group in document["estimates"]["groups"]:
        group |= {"by": nasty, "group": nasty, "labels": ["no", nasty]}
    document["order"]["summary"] = {nasty: nasty}
    document["steps"][0] |= {"what": nasty, "guarantee": nasty, "theorem": nasty}
    document["assumptions"] = [nasty]
    document["files"] = {nasty: nasty}
    document["config"] = {nasty: "</pre>" + nasty}
    document["release"] = {nasty: nasty}
    document["randomizer"] |= {"name": nasty, "parameters": {nasty: nasty}}
    document["central"]["lines"] = [nasty]
    page = render_html(document)
    assert "script" not in parse(page).seen
    assert "&lt;script&gt;" in page


def test_markup_and_control_characters_do_not_steer_the_terminal() -> None:
    document = rehearsal()
    document["estimates"]["overall"]["labels"] = ["[red]no[/red]", "yes\x1b[2J"]
    shown = printed(document, width=200)
    assert "[red]no[/red]" in shown
    assert "\x1b" not in shown


FREE = {"title", "steps", "assumptions", "files", "lines", "source", "reason", "caveats", "labels", "question"}


def poisoned(node: Any, free: bool = False) -> Any:
    """The document with controls in every text that is shown as it is; words that the report looks up stay."""
    if isinstance(node, dict):
        return {key: poisoned(value, free or key in FREE) for key, value in node.items()}
    if isinstance(node, list):
        return [poisoned(value, free) for value in node]
    return f"{node}\x1b[2J\x07" if free and isinstance(node, str) else node


@SAMPLES
def test_no_text_of_a_document_steers_the_terminal_wherever_it_stands(make: Callable[[], Document]) -> None:
    shown = printed(poisoned(make()), width=200)
    assert "\x1b" not in shown and "\x07" not in shown
    assert shown.count("\ufffd[2J\ufffd") > 10


@SAMPLES
@pytest.mark.parametrize("width", [80, 60])
def test_the_terminal_keeps_to_its_width_and_loses_no_letter(make: Callable[[], Document], width: int) -> None:
    shown = printed(make(), width)
    assert max(cell_len(line) for line in shown.splitlines()) <= width
    assert "…" not in shown


def in_short(document: Document, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    print_short(document, console, place="survey-report/report.html", after="dovetail run a.toml --out a-release")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def crowded() -> Document:
    """A rehearsal with more and longer names than a screen holds, released twice."""
    document, names = rehearsal(), [f"a_column_with_a_long_name_{place}" for place in range(40)]
    document["title"] = "A_title_" * 40
    document["collection"] |= {"published": names, "unconfirmed": names, "alone": 6366, "private": names[0]}
    document["release"] = {"number": 2, "releases": 2, "total_epsilon": 123.456}
    overall = document["estimates"]["overall"]
    for key, cell in overall.items():
        if isinstance(cell, list):
            overall[key] = [cell[0]] * 40
    overall["labels"] = [f"an_answer_with_a_long_name_{place}" for place in range(40)]
    return document


@pytest.mark.parametrize("make", [rehearsal, release, numeric, stream, crowded])
def test_the_short_form_has_twenty_lines_of_eighty_letters_and_150_words(make: Callable[[], Document]) -> None:
    shown = in_short(make())
    lines = shown.splitlines()
    assert len(lines) <= 20 and len(shown.split()) <= 150
    assert max(cell_len(line) for line in lines) <= 80


@SAMPLES
def test_no_text_of_a_document_steers_the_terminal_in_the_short_form(make: Callable[[], Document]) -> None:
    shown = in_short(poisoned(make()), width=200)
    assert "\x1b" not in shown and "\x07" not in shown and "\ufffd[2J\ufffd" in shown


def test_the_short_form_says_who_is_protected_how_well_and_what_was_learned() -> None:
    document = rehearsal()
    document["collection"]["alone"] = 157
    shown = flat(in_short(document))
    for words in (
        "affairs of 6,366 people (rehearsal)",
        "strong, if the shuffler and 131 of 139 people of the smallest group are honest; moderate without that trust",
        "if it is known who sent what: right in at most 88.08%; blind 50%",
        "best attack tried right in 68.12%; a guess from public columns alone in 67.75%",
        "yes 32.57%, 95% interval 31.52% to 33.62%",
        "age, education; 157 of 6,366 people are alone",
        "Keep this rehearsal in the house.",
        "report survey-report/report.html next dovetail run a.toml --out a-release",
    ):
        assert words in shown
    assert "releases" not in shown
    assert "2 about these people; together ε = 4 for a person" in flat(in_short(release()))


@SAMPLES
def test_every_chart_on_the_page_is_well_formed_and_described(make: Callable[[], Document]) -> None:
    drawn = re.findall(r"<svg.*?</svg>", render_html(make()), flags=re.DOTALL)
    assert drawn
    for chart in drawn:
        root = ElementTree.fromstring(chart)
        assert root.get("role") == "img"
        assert root.findtext("title")
        assert root.findtext("desc")


@pytest.mark.exhaust
def test_the_comparison_shows_every_shuffler_and_every_reason() -> None:
    document = rehearsal()
    table = comparison_table(document)
    assert table.columns == ("metric", "identity", "uniform", "within groups (chosen)", "mallows")
    assert [row[0] for row in table.rows[:5]] == [
        "local ε",
        "central ε",
        "order α",
        "best guess right, if all answers are equally likely",
        "majority vote right",
    ]
    assert [row[0] for row in table.rows[5:8]] == ["correlation right", "de Finetti right", "± overall"]
    assert table.rows[-1][0] == "λ by age"
    for text in (text_of(render_html(document)), flat(printed(document, width=400))):
        assert "the order is released as it is: nothing is amplified" in text
        assert "0.0736" in text


@pytest.mark.exhaust
def test_every_attack_stands_beside_its_chance_level_or_its_reason() -> None:
    document = rehearsal()
    for shown in (text_of(render_html(document)), flat(printed(document, width=400))):
        assert "majority vote 68.12%" in shown and "correlation 55.78%" in shown
        assert "de Finetti does not apply: this order is released." in shown
    assert "correlation: 55.78% right, chance level 67.75%" in summarize_metrics(document)[4].details
    chart = charts(document)["attack"].chart
    assert "mallows: correlation" in chart and "chance level: 67.75%" in chart
    document["comparison"] = []
    assert "mallows" not in charts(document)["attack"].chart


def test_learnability_stands_between_its_two_ends() -> None:
    for shown in (text_of(render_html(rehearsal())), flat(printed(rehearsal(), width=400))):
        assert re.search(r"not shuffled within groups fully shuffled groups\W+age 0.06 0.01 0.37 6", shown)


def test_without_the_truth_the_attacks_say_why() -> None:
    assert "What attackers got" not in render_html(release())
    shown = flat(printed(release(), width=400))
    assert "No attack was mounted: an attack is measured against the truth" in shown
    assert "Learnability by group does not apply: an attack is measured" in shown


@pytest.mark.exhaust
def test_an_upper_bound_on_the_leakage_is_called_one() -> None:
    document = rehearsal()
    document["leakage"] |= {"method": "bracket", "curve": absent("drawn where every number is exact")}
    assert "in one try is right with probability at most 52.59%" in summarize_metrics(document)[3].meaning
    assert "at most 52.59%" not in text_of(render_html(rehearsal()))
    document["leakage"]["at_hand"] |= {"method": "bracket"}
    assert "is right with probability at most 67.752%: a gain of at most 0.002" in text_of(render_html(document))


@pytest.mark.exhaust
def test_a_guess_is_told_beside_the_blind_guess_for_the_same_prior() -> None:
    shown = text_of(render_html(rehearsal()))
    assert "without any data, is right for 67.75% of these people" in shown
    assert "is right with probability 67.752%: a gain of 0.002 percentage points" in shown
    assert "finds every answer equally likely beforehand" in shown and "without any data it is 50%" in shown
    estimated = release()
    estimated["leakage"]["at_hand"] |= {"prior_law": "estimated"}
    assert "is right for 67.75% of the people, by the estimate below" in text_of(render_html(estimated))


@pytest.mark.exhaust
def test_an_impossible_estimate_is_shown_as_the_nearest_possible_one() -> None:
    document = rehearsal()
    document["estimates"]["overall"] |= {"value": [1.08, -0.08], "possible": [1.0, 0.0]}
    shown = text_of(render_html(document))
    assert "The estimated share of “yes” is 0.00%" in shown and "the unbiased values, -8.00% to 108.00%" in shown
    assert "nearest answer that is possible" not in text_of(render_html(rehearsal()))


def test_a_release_without_comparison_has_no_comparison() -> None:
    assert "other shufflers" not in render_html(release())
    assert "other shufflers" not in printed(release())


def test_a_mean_is_written_without_percent() -> None:
    assert "The estimated mean is 29.123, with a 95% interval from 28.980 to 29.267." in text_of(
        render_html(numeric())
    )


@pytest.mark.exhaust
def test_many_groups_are_folded_on_the_page_and_cut_on_the_terminal() -> None:
    document = rehearsal()
    document["estimates"]["groups"] = [
        {"by": "town", "group": f"town {place}", **share(200, 0.3, 0.1, truth=True)} for place in range(50)
    ]
    page = render_html(document)
    assert "Estimates by group: table of 50 rows" in page
    assert "town 49" in page
    assert "20 more rows in the report file." in printed(document)


@pytest.mark.exhaust
def test_several_releases_name_their_total() -> None:
    assert "release 2 of 2 about these people" in text_of(render_html(release()))
    assert "together ε = 4 for a person" in text_of(render_html(release()))


@pytest.mark.exhaust
@SAMPLES
def test_the_document_survives_json_and_is_not_changed(make: Callable[[], Document]) -> None:
    document = json.loads(json.dumps(make(), allow_nan=False))
    before = json.dumps(document)
    render_html(document)
    printed(document)
    assert json.dumps(document) == before


@SAMPLES
def test_nothing_is_called_safe_or_anonymous(make: Callable[[], Document]) -> None:
    for shown in (text_of(render_html(make())), printed(make())):
        assert not re.search(r"\bsafe|anonym|guaranteed|secure", shown, flags=re.IGNORECASE)


@pytest.mark.exhaust
def test_the_place_of_the_collection_is_marked_on_the_curve() -> None:
    page = render_html(rehearsal())
    assert "n = 139 honest people shuffled together" in page
    document = rehearsal() | {key: rehearsal()["comparison"][1][key] for key in ("leakage", "central")}
    assert f"n = {N:,}<" in render_html(document)


def test_too_few_honest_people_are_named_instead_of_a_hollow_promise() -> None:
    document = rehearsal()
    document["central"] |= {"epsilon": 1.9999, "honest": 1.9999, "honest_n": 1}
    assert (
        "Shuffling adds next to nothing to the promise for one report: 1 of the 139"
        in summarize_metrics(document)[1].meaning
    )
    assert "shuffling adds next to nothing to that promise" in text_of(render_html(document))


@pytest.mark.exhaust
def test_whiskers_beyond_the_possible_shares_are_cut_and_the_caption_says_so() -> None:
    document = rehearsal()
    document["estimates"]["groups"][0]["interval"] = [[-0.4, 1.3], [-0.4, 1.3]]
    page = text_of(render_html(document))
    assert "drawn from 0% to 100% only" in page
    assert "-40.0% to 130.0%" in page
    assert "intervals drawn" not in text_of(render_html(rehearsal()))


def test_of_many_answers_the_most_frequent_are_drawn() -> None:
    document, overall = rehearsal(), rehearsal()["estimates"]["overall"]
    shares = [((7 * place) % 30) / 435.0 for place in range(30)]  # 0, 1, .. 29 in another order
    overall |= {
        "labels": [f"answer {round(435 * one)}" for one in shares],
        "interval": [[one, one] for one in shares],
        **dict.fromkeys(("value", "possible", "truth"), shares),
        **dict.fromkeys(("standard_error", "population_error"), [0.01] * 30),
    }
    document["estimates"]["overall"] = overall
    chart = charts(document)["overall"]
    assert chart.caption == "Estimates for everybody (largest 24 of 30)"
    drawn = [int(one) for one in re.findall(r">answer (\d+)<", str(chart.chart))]
    assert drawn == [*range(29, 5, -1)]


class Reader(HTMLParser):
    """Counts the words that stand open on a page: no style, no picture, of what is folded the heading only."""

    def __init__(self) -> None:
        super().__init__()
        self.path: list[str] = []
        self.opening, self.open, self.everything = 0, 0, 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.path.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "header":
            self.opening = self.open
        while self.path.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {"style", "svg", "head"} & {*self.path}:
            return
        words, folded = len(data.split()), self.path.count("details")
        self.everything += words
        if folded == 0 or (folded == 1 and "summary" in self.path):
            self.open += words


@pytest.mark.parametrize("make", [rehearsal, release, numeric, stream])
def test_a_report_has_at_most_120_words_on_its_first_screen_and_450_before_anything_is_opened(
    make: Callable[[], Document],
) -> None:
    document = make()
    if "published" not in document["collection"]:
        document["collection"] |= {"published": ["age", "years_married", "education", "occupation"], "alone": 157}
    page, reader = render_html(document), Reader()
    reader.feed(page)
    assert reader.opening <= 120 and reader.open <= 450, (reader.opening, reader.open)
    assert reader.everything > 1.5 * reader.open  # the rest is there
    assert page.partition("</header>")[0].count("<svg") == 2


def test_guesses_are_told_in_sentences_that_leave_nothing_reassuring_alone() -> None:
    document = rehearsal()
    first, table, attacks = guess_sentences(document)
    assert first == "Guessing the commonest answer for everybody is right in 67.75%."
    assert table.startswith("Somebody who has only the released table is right in at most 67.76%; if the shuffler")
    assert table.endswith(f"tells who sent what: at most {percent_up(document['leakage']['at_hand']['randomized'])}.")
    assert attacks.startswith("2 attacks were tried; the best was right in 68.12%, a guess from the public columns")
    for attack in document["attacks"]:
        if "success" in attack:
            attack["success"] = attack["chance"]
    assert [*guess_sentences(document)][-1].endswith("nothing beat a guess from the public columns alone.")
