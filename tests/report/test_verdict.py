"""The first screen of a report: whom one has to trust for what, what is public, and what to do."""

from io import StringIO

import pytest
from rich.console import Console
from tests.report.documents import absent, central, numeric, rehearsal, release, stream

from dovetail.core.verdict import guess_bound, percent_up, scale_sentences
from dovetail.report.html import charts, render_html
from dovetail.report.number_format import Document
from dovetail.report.terminal import print_report
from dovetail.report.verdict import judged, verdict

NAMES = ["Protection of one person", "Trusting nobody", "Trusting the shuffler"]


def lines(document: Document) -> dict[str, str]:
    return {line.name: line.text for line in verdict(document)}


@pytest.mark.parametrize("make", [rehearsal, release, numeric, stream])
def test_every_report_opens_with_a_row_for_each_trust(make: object) -> None:
    document = make()  # type: ignore[operator]
    found = verdict(document)
    assert [line.name for line in found][:3] == NAMES and [line.name for line in found][-2:] == [
        "Public",
        "What to do",
    ]
    assert all(line.text.endswith(".") and "None" not in line.text for line in found)
    page = render_html(document)
    opening = page[: page.index("Five ways")]
    assert judged(document).sentence() in opening and all(one in opening for one in scale_sentences())
    assert "You trust" in opening and "What to do" in opening
    assert ("Keep this rehearsal in the house" in found[-1].text) == (document["mode"] == "rehearsal")


@pytest.mark.parametrize("make", [rehearsal, release, numeric, stream])
def test_the_bars_of_guesses_end_with_trust_in_nobody(make: object) -> None:
    document = make()  # type: ignore[operator]
    chart, rows = charts(document)["guesses"].chart, judged(document).rows
    told = [percent_up(row.guess) for row in rows]
    assert chart.count('class="bar"') == 1 + len({*told})
    assert all(f"at most {guess}" in chart for guess in told)
    assert chart.index("blind") < chart.index("trusting nobody")


def test_without_noise_the_report_says_that_it_protects_nobody_but_by_trust() -> None:
    for epsilon in (9.0, 20.0, 600.0):
        document = rehearsal()
        document["local"] |= {"epsilon": epsilon}
        document["central"] |= {"epsilon": epsilon, "honest": epsilon, "all": epsilon, "colluding": epsilon}
        found = verdict(document)
        assert found[0].grade == "none" and "protects nobody but by trust in the shuffler" in found[0].text
        assert {line.grade for line in found} == {"none", ""}
        assert "all but an open answer" in found[-1].text
        assert "strong" not in render_html(document).partition('<details class="scale">')[0].partition("<body")[2]


def test_what_protects_nobody_is_said_to() -> None:
    document = rehearsal()
    document["central"] = absent("nothing is shuffled")
    document["local"] |= {"epsilon": 12.0}
    document["order"] = absent("nothing is shuffled")
    found = verdict(document)
    assert found[0].text == "none: it protects nobody." and [line.name for line in found][1:3] == [NAMES[1], "Public"]
    assert "all but an open answer" in found[-1].text and "no promise for the shuffled" in found[-1].text


def test_a_large_delta_is_named_in_what_to_do() -> None:
    document = rehearsal()
    document["central"] |= {"delta": 0.1}  # 139 people: such a guarantee allows publishing one of them
    assert "Delta = 0.1 is not below 1/n" in verdict(document)[-1].text


def test_what_is_public_stands_on_the_first_screen() -> None:
    document = rehearsal()
    document["collection"] |= {"published": ["age", "education"], "alone": 157}
    document["copying"] = {"verdict": "copying", "p_copying": 3e-9, "released": 3183}
    text = lines(document)["Public"]
    assert text == (
        "Published unchanged, so that taking part is visible: age, education. Alone with their combination: 157 of "
        "6,366 people. Test whether released rows are those of people: copying (p = 3e-09)."
    )
    assert "Publish fewer or coarser columns." in lines(document)["What to do"]
    opening = render_html(rehearsal() | {"collection": document["collection"]}).partition("Five ways")[0]
    assert "157 of 6,366" in opening and "taking part is visible" in opening
    document["collection"] |= {"published": [], "alone": absent("no column leaves beside the reports")}
    assert lines(document)["Public"] == "No column beside the reports; how many people took part is visible."


def test_what_to_do_names_what_stands_in_the_configuration() -> None:
    document = rehearsal()
    assert lines(document)["What to do"].endswith('To release, set mode = "release", remove `seed`.')
    document["seed"] = absent("drawn from the operating system")
    assert lines(document)["What to do"].endswith('To release, set mode = "release".')
    document["collection"] |= {"unconfirmed": ["categories", "missing"]}
    assert "confirm categories, missing and delete `unconfirmed`" in lines(document)["What to do"]
    document["collection"] |= {"inferred": True}  # what is to be confirmed was read off by a check
    assert "declare" not in lines(document)["What to do"]
    document["collection"] |= {"unconfirmed": []}
    assert lines(document)["What to do"].endswith('mode = "release", declare `categories`.')
    document["config"] = {}
    assert lines(document)["What to do"].endswith("To release, declare `categories` and call dt.release.")
    document["collection"] |= {"inferred": False}
    assert lines(document)["What to do"].endswith("To release, call dt.release.")


def test_dummies_of_the_shuffler_are_moderate_at_best() -> None:
    document = rehearsal()
    document["local"] |= {"epsilon": "inf"}
    document["central"] |= {"trust": "shuffler", "honest_n": 1, "epsilon": 0.1, "colluding": "inf"}
    found = judged(document)
    assert [row.word for row in found.rows] == ["none", "moderate", "moderate"]
    assert found.decides.trusted == "shuffler"
    document["central"] |= {"trust": "users", "honest_n": 6000}
    assert judged(document).decides.trusted == "people"


def test_a_release_that_protects_by_trust_alone_is_not_called_unremarkable() -> None:
    document = rehearsal() | {"mode": "release"}
    document["local"] |= {"epsilon": "inf"}
    document["central"] |= {"trust": "shuffler", "honest_n": 1, "epsilon": 1.0, "colluding": "inf"}
    document["collection"] |= {"alone": absent("no column leaves beside the reports")}
    assert judged(document).rows[0].word == "none"
    assert lines(document)["What to do"] == "Read the assumptions before anything is published."


def test_the_word_stands_once_in_every_line() -> None:
    for document in (rehearsal(), release(), numeric(), stream()):
        found = verdict(document)
        assert found[0].words == found[0].text and found[0].text.startswith(found[0].grade)
        assert [line.words for line in found[1:3]] == [f"{line.grade}: {line.text}" for line in found[1:3]]
        assert found[-1].words == found[-1].text
        console = Console(width=500, file=StringIO())
        with console.capture() as printed:
            print_report(document, console)
        assert f"Protection of one person: {found[0].text}\n" in printed.get()


@pytest.mark.exhaust
def test_who_knows_the_published_shares_starts_from_the_commonest_answer() -> None:
    document = rehearsal()
    blind = max(high for _, high in document["estimates"]["overall"]["interval"])
    assert 0.67 < document["estimates"]["overall"]["value"][0] < blind < 0.70
    found = judged(document)
    for row, said in zip(found.rows, found.document()["rows"], strict=True):
        most = guess_bound(row.epsilon, row.delta, blind=blind)
        assert said["at_hand"] == {"blind": blind, "guess": most} and most > row.guess
    page = render_html(document)
    assert "knowing the shares below" in page and f">{percent_up(blind)}</td>" in page
    for other in (numeric(), stream()):
        assert judged(other).document()["rows"][0]["at_hand"]["value"] is None
        assert "knowing the shares below" not in render_html(other)


def test_people_who_hide_behind_their_own_group_only_are_told_so() -> None:
    document = rehearsal()
    assert judged(document).rows[-1].who == "the shuffler and 131 of 139 people of the smallest group"
    document["central"] = central(0.0713, 0.0736)
    assert judged(document).rows[-1].who == "the shuffler and 6,000 of 6,366 people"


def test_the_factor_of_the_batch_stands_beside_its_delta() -> None:
    document = rehearsal()
    document["central"] |= {"delta": 0.5}
    assert "(slack δ = 0.5), if the shuffler and 131 of the 139 people" in render_html(document)


def test_the_share_that_is_nearly_always_right_is_that_of_the_attack_alone() -> None:
    page = render_html(rehearsal())
    assert "the attack alone guessed" in page and "whom the attack alone guessed right in at least" in page
