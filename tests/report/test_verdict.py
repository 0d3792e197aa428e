"""The report opens with a verdict that follows from its numbers, on a scale that names its source."""

import pytest
from tests.report.documents import absent, numeric, rehearsal, release, stream

from dovetail.report.render.html import render_html
from dovetail.report.sections.verdict import SCALE, grade, verdict


@pytest.mark.parametrize("make", [rehearsal, release, numeric, stream])
def test_every_report_opens_with_the_four_lines(make: object) -> None:
    document = make()  # type: ignore[operator]
    lines = verdict(document)
    assert [line.name for line in lines] == ["Promised", "Leaks", "Risk for one person", "What to do"]
    assert all(line.text.endswith(".") and "None" not in line.text for line in lines)
    page = render_html(document)
    assert page.index("Promised") < page.index("Five ways") and SCALE.split("(")[0] in page
    assert lines[0].text.startswith("A release with these settings would") == (document["mode"] == "rehearsal")
    assert ("rehearsal: keep it in the house" in lines[3].text) == (document["mode"] == "rehearsal")


def test_grades_follow_the_scale() -> None:
    assert [grade(epsilon) for epsilon in (0.0, 1.0, 1.001, 10.0, 10.001)] == [
        "strong",
        "strong",
        "moderate",
        "moderate",
        "weak",
    ]
    document = rehearsal()
    document["central"] |= {"epsilon": 0.9, "honest": 0.9}
    assert verdict(document)[0].grade == "strong"
    document["central"] |= {"delta": 0.1}  # 139 people: such a guarantee allows publishing one of them
    assert verdict(document)[0].grade == "weak" and "Lower δ" in verdict(document)[3].text


def test_what_protects_nobody_is_said_to() -> None:
    document = rehearsal()
    document["central"] = absent("nothing is shuffled")
    document["local"] |= {"epsilon": 12.0}
    document["order"] = absent("nothing is shuffled")
    lines = verdict(document)
    assert lines[0].grade == lines[1].grade == "weak" and "shuffling adds nothing" in lines[0].text
    assert "all but an open answer" in lines[3].text and "no promise for the shuffled" in lines[3].text


def test_an_attack_that_gains_much_makes_the_risk_weakly_hidden() -> None:
    document = rehearsal()
    assert (verdict(document)[2].grade, verdict(document)[2].word) == (
        "strong",
        "low",
    )  # the attack is below the blind guess
    for gain, word in ((0.005, "strong"), (0.05, "moderate"), (0.2, "weak")):
        document["attack"] |= {"success": document["attack"]["chance"] + gain}
        assert verdict(document)[2].grade == word
    document["leakage"] = document["attack"] = absent("no number")
    assert verdict(document)[2] == ("Risk for one person", "", "Not measured: no number.")


def test_the_scale_cites_its_sources_and_says_which_limits_are_our_own() -> None:
    assert all(source in SCALE for source in ("Ponomareva and others (2023", "Dwork and Roth, 2014", "section 2.3"))
    assert "a convention and no theorem" in SCALE and "below 1 percentage point low, below 10 moderate" in SCALE
    assert SCALE.endswith("these limits are our own.")


def test_a_guess_that_gains_much_makes_the_risk_high() -> None:
    document = rehearsal()
    document["attack"] = absent("no attack was run")
    hand = document["leakage"]["at_hand"]
    for gain, word in ((0.005, "low"), (0.05, "moderate"), (0.2, "high")):
        hand["randomized_shuffled"] = hand["prior"] + gain
        assert verdict(document)[2].word == word


def test_the_share_that_is_nearly_always_right_is_that_of_the_attack_alone() -> None:
    page = render_html(rehearsal())
    assert "the attack alone guessed" in page and "whom the attack alone guessed right in at least" in page
