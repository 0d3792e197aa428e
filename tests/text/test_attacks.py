"""Attacks on a sentence: exact, never above what epsilon implies, and near it for a constructed document."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.text.corpus import PUBLIC, HashedWords, documents, small_candidates
from tests.text.small import candidates

from dovetail.cli.main import invoke
from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.text.deep_candidate import DeepCandidate
from dovetail.text.documents import Document, PublicDocuments
from dovetail.text.evaluation import attack_documents, inversion_success, nearest_sentences

ROWS = [HashedWords().encode(one.sentences) for one in documents(8, sentences=3, seed=7)]


@pytest.mark.exhaust
@pytest.mark.parametrize("attack", ["inversion", "membership"])
@pytest.mark.parametrize("utility", ["clipped", "votes"])
def test_no_attack_reaches_more_than_epsilon_implies(attack: str, utility: str) -> None:
    found = {}
    for epsilon in (0.5, 8.0, 200.0):
        mechanism = DeepCandidate.of(small_candidates(), epsilon=epsilon, utility=utility)
        made = attack_documents(ROWS, mechanism, attack=attack, possible=5, rng=simulation(1))
        size = 2 if attack == "membership" else 5
        assert (made.possible, made.chance, made.documents) == (size, 1 / size, len(ROWS))
        assert made.bound == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + size - 1))
        assert made.chance - 1e-9 <= made.best <= made.bound + 1e-9 and made.nearest <= made.best + 1e-9
        found[epsilon] = made.best
    assert utility == "votes" or found[0.5] < found[8.0]  # of votes a large epsilon tells the winner alone


def test_a_constructed_sentence_is_named_nearly_as_often_as_epsilon_allows() -> None:
    public = candidates([(4096, 0), (-4096, 0)], half_range=4096 * 4096)
    mechanism = DeepCandidate.of(public, epsilon=1.0, utility="votes", selection="permute-and-flip")
    ends = np.array([(4096, 0), (-4096, 0)], dtype=np.int16)
    made = inversion_success(mechanism, ends[:1], ends)  # one known sentence, so that the last one decides
    assert made.chance == 0.5 < made.best <= made.bound < made.best + 0.1


def test_documents_without_other_sentences_are_refused() -> None:
    with pytest.raises(DataError, match="different sentences in others"):
        attack_documents(ROWS[:1], DeepCandidate.of(small_candidates(), epsilon=1.0), attack="inversion",
                         rng=simulation(1))  # fmt: skip


def write_lines(place: Path, rows: list[object]) -> None:
    lines = ({"id": one.name, "text": list(one.sentences), "topic": one.label} for one in rows)  # type: ignore[attr-defined]
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_attacks_and_pages_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    write_lines(tmp_path / "public.jsonl", list(PUBLIC.documents))
    write_lines(tmp_path / "private.jsonl", documents(8, sentences=6, seed=9, prefix="<p>"))
    run = lambda line: invoke(line.split())  # noqa: E731
    made = "text candidates public.jsonl --label topic --dimension 8 --clusters 2 --recode 3 --out c.npz --json"
    assert run(made) == 0
    assert json.loads(capsys.readouterr().out)["recoder"]["documents"] == 15
    attack = "text attack private.jsonl --candidates c.npz --epsilon 1,10 --attacked 3 --possible 4 --report a.html"
    assert run(f"{attack} --json") == 0
    rows = json.loads(capsys.readouterr().out)["attacks"]
    assert [(row["attack"], row["epsilon"]) for row in rows] == [
        (name, epsilon) for epsilon in (1.0, 10.0) for name in ("inversion", "membership")
    ]
    assert run(attack) == 2 and "exists already" in capsys.readouterr().err
    line = "text evaluate private.jsonl --label topic --candidates c.npz --repetitions 1 --by-sentences 2,6 --epsilon"
    assert run(f"{line} 3,8 --report e.html") == 0
    said = capsys.readouterr().out
    assert "same class" in said and "incomparable" in said and "6 and more" in said
    assert run(f"{line} three") == 2 and "--epsilon must be numbers" in capsys.readouterr().err
    assert run(line.replace("2,6", "6,2") + " 3") == 2 and "increasing" in capsys.readouterr().err
    protect = "text protect private.jsonl --name id --candidates c.npz --epsilon 2 --most-sentences 6 --shuffle --out"
    assert run(f"{protect} r.jsonl --report p.html --json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["shuffle"]["local"] == 12.0 and not document["shuffle"]["gains"]
    assert "document" not in json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    for page, words in (("a.html", "membership"), ("e.html", "incomparable"), ("p.html", "adds nothing")):
        text = (tmp_path / page).read_text()
        assert words in text and "http" not in text.replace("http://www.w3.org", "") and "<p>0" not in text


def test_a_release_is_read_as_the_public_sentences_nearest_to_it() -> None:
    lines = ("the ship sails far.", "wind and tide.", "a tax on paper.")
    public = PublicDocuments([Document(str(i), (one, "the ship sails far.")) for i, one in enumerate(lines * 3)])
    encoder = HashedWords()
    for line in lines:
        found = nearest_sentences(encoder.encode([line])[0], public, encoder, count=9)
        assert len(found) == 3 and found[0][0] == line and found[0][1] == pytest.approx(1.0, abs=1e-3)
        assert [cosine for _, cosine in found] == sorted((cosine for _, cosine in found), reverse=True)
    assert nearest_sentences(np.zeros(encoder.dimension), public, encoder, count=1)[0][1] == 0.0
    with pytest.raises(ParameterError, match="must be PublicDocuments"):
        nearest_sentences(encoder.encode(["x"])[0], list(lines), encoder)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="must be one embedding of"):
        nearest_sentences(encoder.encode(["x"]), public, encoder)
