"""Pages of documents open with what was found: from where releases are useful, the most that is given away."""

from typing import Any

from dovetail.report.html import render_text
from dovetail.report.verdict import text_verdict


def scored(release: str, epsilon: float | None, macro_f1: float, *, deviation: float = 0.0, unit: str = "") -> Any:
    score = {
        "macro_f1": macro_f1, "macro_f1_deviation": deviation, "accuracy": macro_f1, "accuracy_deviation": 0.0,
        "repetitions": 5,
    }  # fmt: skip
    return {
        "release": release, "epsilon": epsilon, "unit": unit, "sentences": "all", "documents": 9, "score": score,
        "same_class": None,
    }  # fmt: skip


PLAIN = [scored("guess by the classes' shares", None, 0.2), scored("mean of the sentences, not private", None, 0.8)]


def attacked(attack: str, epsilon: float, best: float) -> Any:
    chance = 0.5 if attack == "membership" else 0.1
    return {
        "attack": attack, "epsilon": epsilon, "possible": 10, "documents": 9, "chance": chance, "nearest": chance,
        "best": best, "best_error": 0.01, "bound": 0.99,
    }  # fmt: skip


def test_a_rehearsal_opens_with_the_epsilon_from_which_releases_beat_guessing() -> None:
    rows = [
        scored("clipped", 1.0, 0.25, deviation=0.03), scored("clipped", 3.0, 0.4, deviation=0.05),
        scored("clipped", 10.0, 0.7, deviation=0.02), scored("words", 1.0, 0.79, unit="one word, incomparable"),
    ]  # fmt: skip
    told = text_verdict({"rows": PLAIN + rows})
    assert told.startswith("Releases are more useful than guessing from epsilon 3 on: clipped at epsilon 3")
    assert "0.40, against 0.80 without privacy and 0.20 by guessing" in told
    assert "The best of all: clipped at epsilon 10 has a macro-F1 of 0.70." in told and "words" not in told


def test_a_rehearsal_in_which_nothing_beats_guessing_says_so_first() -> None:
    rows = [scored("clipped", 1.0, 0.21, deviation=0.02), scored("clipped", 3.0, 0.3, deviation=0.06)]
    assert text_verdict({"rows": PLAIN + rows}).startswith("No release is more useful than guessing up to epsilon 3")


def test_an_attack_opens_with_the_most_that_is_given_away() -> None:
    rows = [attacked("inversion", 1.0, 0.12), attacked("membership", 1.0, 0.55), attacked("inversion", 9.0, 0.43212),
            attacked("membership", 9.0, 0.8)]  # fmt: skip
    told = text_verdict({"attacks": rows})
    assert "at epsilon 9 the best possible attacker names a sentence of a document in 43.22% of the cases" in told
    assert "by chance in 10%; epsilon allows 99% at most. At epsilon 1 it is 12%." in told


def test_the_verdict_stands_above_everything_but_the_title() -> None:
    page = render_text({"candidates": 4, "attacks": [attacked("inversion", 1.0, 0.12)]})
    assert page.index("</h1>") < page.index("The most that is given away") < page.index("public candidates")
    assert text_verdict({"guarantee_lines": {}}) == ""


def test_a_release_opens_with_the_word_of_the_one_scale() -> None:
    told = [text_verdict({"epsilon": epsilon, "documents": 9}) for epsilon in (1.0, 2.0, 9.0)]
    assert [one.partition(",")[0].rpartition(" ")[2].removesuffix(":") for one in told[:2]] == ["strong", "moderate"]
    assert "one sentence: none: it protects nobody. " in told[2] and "at most 99.99%" in told[2]
