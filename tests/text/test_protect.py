"""Documents through files, the ledger and the command line."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import polars as pl
import pytest
from tests.text.corpus import PUBLIC, HashedWords, documents, small_candidates

import dovetail as dt
from dovetail.cli.main import invoke
from dovetail.core.entropy import simulation, system_entropy
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.guarantee import LocalDP
from dovetail.ledger.releases import ReleaseLedger
from dovetail.text.candidates import candidates_bytes, read_candidates
from dovetail.text.deep_candidate import DeepCandidate, SentenceDP, protect_documents
from dovetail.text.documents import Document
from dovetail.text.encoders import SVDEncoder
from dovetail.text.evaluation import inversion_success
from dovetail.text.release import rehearse_documents, release_documents

ENCODER, PUBLIC_SET = HashedWords(), small_candidates()
PRIVATE = documents(12, sentences=8, seed=9, prefix="p")


def mechanism(epsilon: float = 5.0, **named: str) -> DeepCandidate:
    return DeepCandidate.of(PUBLIC_SET, epsilon=epsilon, **named)


def test_a_guarantee_adds_grows_with_sentences_and_says_what_it_leaves_open() -> None:
    one = SentenceDP(2.0, source="a")
    assert one.compose(SentenceDP(3.0)).epsilon == 5.0
    assert one.sentences(4) == 8.0
    assert one.whole_document(10) == LocalDP(20.0, source="group privacy over 10 sentences of [a]")
    assert one.implies(SentenceDP(2.5)) and not one.implies(SentenceDP(1.9)) and not one.implies(LocalDP(3.0))
    simulated = one.drawn_from("simulation")
    assert not simulated.implies(SentenceDP(9.0))
    assert simulated.whole_document(2).caveats == simulated.caveats != ()
    assert any("one less costs half" in said for said in one.not_protected)
    with pytest.raises(UnsupportedError, match="do not add"):
        one.compose(SentenceDP(1.0, unit="one word"))


def test_sums_and_multiples_of_epsilon_are_rounded_up() -> None:
    for first, second in ((0.1, 0.7), (0.1, 0.4)):  # whose doubles add to less than they are together
        together = SentenceDP(first).compose(SentenceDP(second)).epsilon
        assert Fraction(together) >= Fraction(first) + Fraction(second) > Fraction(first + second)
    for epsilon in (0.3, 1.4):
        assert Fraction(SentenceDP(epsilon).sentences(3)) >= 3 * Fraction(epsilon) > Fraction(3 * epsilon)
    assert SentenceDP(math.inf).sentences(0) == 0.0, "nothing changed costs nothing"


def test_the_sentence_epsilon_is_not_where_amplification_starts() -> None:
    # two candidates, ten equal sentences against ten others: the whole document's epsilon is far above 1
    rows = np.array([(4096, 0), (-4096, 0)], dtype=np.int16)
    from tests.text.small import candidates

    made = DeepCandidate.of(candidates([(4096, 0), (-4096, 0)], half_range=4096 * 4096), epsilon=1.0,
                            selection="exponential", utility="votes")  # fmt: skip
    law = [made.probabilities(np.repeat(rows[side : side + 1], 10, axis=0)) for side in (0, 1)]
    loss = math.log(law[0][0] / law[1][0])
    assert 4.5 < loss <= made.guarantee.whole_document(10).epsilon == 10.0
    wrong = dt.amplify(1.0, n=1000, delta=1e-6).epsilon
    truth = dt.amplify(dt.KRR(k=2, epsilon=4.5), n=1000, delta=1e-6).attack_lower  # documents of one sentence each
    assert wrong < 0.3 < 0.4 < truth


@pytest.mark.exhaust
def test_released_embeddings_are_candidates_and_names_must_differ() -> None:
    made = protect_documents(PRIVATE, mechanism(), ENCODER, rng=simulation(1))
    assert made.table.columns == ["document", "candidate", "candidate_name", "embedding"]
    assert (np.array(made.table["embedding"].to_list()) * 4096 == PUBLIC_SET.rows[made.table["candidate"]]).all()
    assert (made.unread, made.empty) == (0, 0)
    with pytest.raises(DataError, match="'p0' stands more than once"):
        protect_documents([*PRIVATE, PRIVATE[0]], mechanism(), ENCODER)
    with pytest.raises(DataError, match="must have 24 dimensions"):
        protect_documents(PRIVATE, mechanism(), SVDEncoder.fit(PUBLIC, dimension=5))
    with pytest.raises(DataError, match="no documents"):
        protect_documents([], mechanism(), ENCODER)


def test_empty_documents_and_unread_sentences_are_counted_for_their_owner_alone() -> None:
    strange = [Document("empty", ()), Document("silent", (" ",))]
    made = protect_documents(strange, mechanism(), ENCODER, rng=simulation(1))
    assert (made.unread, made.empty) == (1, 1)
    assert made.table.width == 4


def test_a_large_epsilon_keeps_the_topic_and_a_tiny_one_does_not() -> None:
    found = {}
    for epsilon in (1e-4, 50.0):
        made = protect_documents(PRIVATE, mechanism(epsilon), ENCODER, rng=simulation(2)).table
        labels = PUBLIC_SET.labels or ()
        found[epsilon] = sum(
            labels[one] == private.label for one, private in zip(made["candidate"], PRIVATE, strict=True)
        )
    assert found[50.0] == len(PRIVATE) > found[1e-4]


def test_documents_are_cut_to_their_first_sentences() -> None:
    assert Document("d", ("a", "b", "c")).first(2).sentences == ("a", "b")
    assert Document("d", ("a",)).first(None).sentences == ("a",)
    sure = mechanism(700.0)
    mixed = Document("d", PRIVATE[0].sentences[:1] + PRIVATE[1].sentences)
    cut = protect_documents([mixed], sure, ENCODER, most_sentences=1, rng=simulation(3)).table["candidate"][0]
    alone = sure.levels(ENCODER.encode(mixed.sentences[:1]))
    assert alone[cut] == 0 < sure.levels(ENCODER.encode(mixed.sentences))[cut]


def test_the_same_release_again_costs_nothing_and_another_one_adds(tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    first = release_documents(PRIVATE, mechanism(2.0), ENCODER, ledger=ledger, rng=rng)
    again = release_documents(PRIVATE[::-1], mechanism(2.0), ENCODER, ledger=ledger, rng=rng)
    assert again.reproduced and again.table.equals(first.table) and again.guarantee.epsilon == 2.0
    with pytest.raises(UnsupportedError, match="under other terms"):
        release_documents(PRIVATE, mechanism(3.0), ENCODER, ledger=ledger, rng=rng)
    more = release_documents(PRIVATE, mechanism(3.0), ENCODER, ledger=ledger, rng=rng, new_release=True)
    assert more.guarantee.epsilon == 5.0 and not more.reproduced


@pytest.mark.exhaust
def test_a_document_released_among_others_still_adds_up(tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    release_documents(PRIVATE[:4], mechanism(2.0), ENCODER, ledger=ledger, rng=rng)
    with pytest.raises(UnsupportedError, match="1 of these 9 documents were released before"):
        release_documents(PRIVATE[3:], mechanism(2.0), ENCODER, ledger=ledger, rng=rng)
    later = release_documents(PRIVATE[3:], mechanism(2.0), ENCODER, ledger=ledger, rng=rng, new_release=True)
    apart = release_documents(documents(3, sentences=8, seed=4, prefix="q"), mechanism(2.0), ENCODER, ledger=ledger,
                              rng=rng)  # fmt: skip
    assert later.guarantee.epsilon == 4.0 and apart.guarantee.epsilon == 2.0


def test_documents_are_known_again_under_other_names(tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    release_documents(PRIVATE, mechanism(2.0), ENCODER, ledger=ledger, rng=rng)
    renamed = [Document(f"other {place}", one.sentences) for place, one in enumerate(PRIVATE)]
    with pytest.raises(UnsupportedError, match="12 of these 12 documents were released before"):
        release_documents(renamed, mechanism(2.0), ENCODER, ledger=ledger, rng=rng)
    again = release_documents(renamed, mechanism(2.0), ENCODER, ledger=ledger, rng=rng, new_release=True)
    assert again.guarantee.epsilon == 4.0


def test_a_named_document_with_another_sentence_is_not_drawn_unasked(tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    release_documents(PRIVATE, mechanism(2.0), ENCODER, ledger=ledger, rng=rng)
    edited = [Document(PRIVATE[0].name, (*PRIVATE[0].sentences[1:], "another one."))]
    with pytest.raises(UnsupportedError, match="1 of these 1 documents were released before"):
        release_documents(edited, mechanism(2.0), ENCODER, ledger=ledger, rng=rng)


def test_documents_are_known_again_when_they_are_split_otherwise(tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    given = {"ledger": ledger, "rng": rng, "named": False}
    release_documents(PRIVATE, mechanism(2.0), ENCODER, **given)
    joined = [Document(one.name, (" ".join(one.sentences),)) for one in PRIVATE]
    with pytest.raises(UnsupportedError, match="12 of these 12 documents were released before"):
        release_documents(joined, mechanism(2.0), ENCODER, **given)


REWRITTEN = {
    "capitals": str.upper,
    "a zero-width space": lambda text: text.replace(" ", " \u200b", 1)[:3] + "\u200b" + text[3:],
    "soft hyphens": "\u00ad".join,
    "emoji style": lambda text: text + "\ufe0f",
    "letters with accents apart": lambda text: normalize("NFD", text),
    "full width": lambda text: "".join(chr(ord(one) + 0xFEE0) if "a" <= one <= "z" else one for one in text),
    "marks after all": lambda text: f"{text}!",
    "other quotation marks and dashes": lambda text: (
        "``" + text.replace(".", " \N{EM DASH}") + "\N{RIGHT DOUBLE QUOTATION MARK}"
    ),
    "words in underscores": lambda text: "_" + text.replace(" ", "_ _") + "_",
    "no marks": lambda text: text.rstrip("."),
    "other blanks": lambda text: text.replace(" ", "\u00a0\n"),
}


@pytest.mark.parametrize("how", [*REWRITTEN, "another order", "another order of words", "blank sentences"])
def test_documents_are_known_again_however_they_are_written(how: str, tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    given = {"ledger": ledger, "rng": rng, "named": False}
    letter = Document(
        "1", ("dass die straße nach zürich führt.", "the éclair sails on the old ship.", "wind and tide.")
    )
    release_documents([letter], mechanism(2.0), ENCODER, **given)
    sentences = letter.sentences[::-1]
    if how in REWRITTEN:
        sentences = tuple(map(REWRITTEN[how], letter.sentences))
    elif how == "another order of words":
        sentences = tuple(" ".join(reversed(one.rstrip(".").split())) + "." for one in letter.sentences)
    elif how == "blank sentences":
        sentences = ("", *letter.sentences, " \t")
    assert sentences != letter.sentences
    with pytest.raises(UnsupportedError, match="1 of these 1 documents were released before"):
        release_documents([Document("1", sentences)], mechanism(2.0), ENCODER, **given)


@pytest.mark.exhaust
def test_a_document_with_another_word_or_symbol_is_another_one_and_so_are_marks_alone(tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    for text in ("the ship sails", "the ship sank", "the ship sails sails", "the ship sails + sails", "?!", "!?!",
                 "\N{THUMBS UP SIGN}"):  # fmt: skip
        made = release_documents(
            [Document("1", (text,))], mechanism(2.0), ENCODER, ledger=ledger, rng=rng, named=False
        )
        assert made.guarantee.epsilon == 2.0, text


def test_numbers_of_rows_are_no_names(tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    for number in range(2):
        one = [Document("1", documents(1, sentences=5, seed=30 + number)[0].sentences)]
        made = release_documents(one, mechanism(2.0), ENCODER, ledger=ledger, rng=rng, named=False)
        assert made.guarantee.epsilon == 2.0


@pytest.mark.exhaust
def test_a_whole_documents_epsilon_adds_each_release_with_its_own_limit(tmp_path: Path) -> None:
    ledger, rng = ReleaseLedger(tmp_path / "ledger"), system_entropy()
    given = {"ledger": ledger, "rng": rng, "new_release": True}
    found = [
        release_documents(PRIVATE, mechanism(2.0), ENCODER, most_sentences=most, **given).whole_document
        for most in (100, 1, None, 1)
    ]
    assert found == [200.0, 202.0, None, None]


def test_a_simulated_release_takes_the_promise_away_from_all_that_follow(tmp_path: Path) -> None:
    ledger = ReleaseLedger(tmp_path / "ledger")
    release_documents(PRIVATE, mechanism(2.0), ENCODER, ledger=ledger, rng=simulation(1))
    later = release_documents(PRIVATE, mechanism(2.0), ENCODER, ledger=ledger, rng=system_entropy(), new_release=True)
    assert later.guarantee.caveats


def test_nothing_is_inverted_more_often_than_epsilon_allows() -> None:
    rows = ENCODER.encode(one for document in PRIVATE for one in document.sentences)
    for epsilon in (0.5, 4.0):
        found = inversion_success(mechanism(epsilon), rows[:7], rows[8:28])
        assert found.chance <= found.best <= found.bound
        assert found.nearest <= found.best + 1e-12
    assert inversion_success(mechanism(100.0), rows[:0], rows[8:28]).best > 3 * found.chance


def test_candidates_survive_their_file_and_a_changed_file_is_refused(tmp_path: Path) -> None:
    encoder = SVDEncoder.fit(PUBLIC, dimension=6)
    made, place = small_candidates(encoder), tmp_path / "c.npz"
    place.write_bytes(candidates_bytes(made, encoder))
    found, restored = read_candidates(place)
    assert found.digest == made.digest and found.labels == made.labels and found.names == made.names
    assert np.array_equal(restored.encode(["the ship sails"]), encoder.encode(["the ship sails"]))
    with np.load(place) as parts:
        content = dict(parts)
    content["rows"] = content["rows"][::-1]
    np.savez(place, **content)
    with pytest.raises(DataError, match="was changed after it was made"):
        read_candidates(place)
    place.write_bytes(b"PK\3\4 nothing")
    with pytest.raises(DataError, match="is no candidates file"):
        read_candidates(place)


def test_a_rehearsal_ranks_private_releases_below_the_mean() -> None:
    rows = rehearse_documents(
        PRIVATE, PUBLIC_SET, ENCODER, epsilons=[8.0], utilities=["clipped"], repetitions=2, seed=1
    )
    scores = {row.release: row.score.macro_f1 for row in rows}
    assert scores["mean of the sentences, not private"] == 1.0
    assert scores["clipped scores"] > scores["clipped to a box, Laplace noise"]


@pytest.mark.exhaust
def test_a_rehearsal_scores_candidates_once_for_all_draws_and_no_more_documents_than_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scored, plain = [], DeepCandidate.levels

    def counted(self: DeepCandidate, rows: Any) -> Any:
        scored.append(rows)
        return plain(self, rows)

    monkeypatch.setattr(DeepCandidate, "levels", counted)
    rows = list(rehearse_documents(
        PRIVATE, PUBLIC_SET, ENCODER, epsilons=[8.0], utilities=["clipped"], repetitions=5, seed=1, most_documents=7,
    ))  # fmt: skip
    assert {row.documents for row in rows} == {7} == {len(scored)}


@pytest.mark.exhaust
def test_an_interrupted_evaluation_shows_what_was_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "public.jsonl", list(PUBLIC.documents))
    assert (
        invoke(
            [
                "text",
                "candidates",
                "public.jsonl",
                "--label",
                "topic",
                "--name",
                "id",
                "--dimension",
                "8",
                "--out",
                "c.npz",
            ]
        )
        == 0
    )
    capsys.readouterr()

    def stop(self: object, rows: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DeepCandidate, "levels", stop)
    assert (
        invoke(
            [
                "text",
                "evaluate",
                "public.jsonl",
                "--label",
                "topic",
                "--candidates",
                "c.npz",
                "--scored",
                "9",
                "--json",
            ]
        )
        == 0
    )
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["interrupted"], found["scored"], found["documents"]) == (True, 9, 60)
    assert [row["release"] for row in found["rows"]] == [
        "guess by the classes' shares", "mean of the sentences, not private",
    ]  # fmt: skip
    assert "interrupted: what was computed until then follows" in told.err


def test_unknown_rules_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(ParameterError, match="must be one of clipped"):
        mechanism(1.0, utility="cliped")
    with pytest.raises(ParameterError, match="permute-and-flip, exponential"):
        mechanism(1.0, selection="softmax")


def write_lines(place: Path, rows: list[Document]) -> None:
    lines = ({"id": one.name, "text": " ".join(one.sentences), "topic": one.label} for one in rows)
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_from_public_texts_to_released_embeddings_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / "ledger"))
    write_lines(tmp_path / "public.jsonl", list(PUBLIC.documents))
    write_lines(tmp_path / "private.jsonl", PRIVATE)
    run = lambda line: invoke(line.split())  # noqa: E731
    assert run("text candidates public.jsonl --label topic --name id --dimension 8 --out c.npz --json") == 0
    assert json.loads(capsys.readouterr().out)["candidates"] == 60
    protect = "text protect private.jsonl --name id --candidates c.npz --epsilon 4 --most-sentences 8 --json --out"
    for out in ("r.parquet", "r.jsonl", "r.csv"):
        assert run(f"{protect} {out}") == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["epsilon"], found["documents"], found["candidates"]) == (4.0, 12, 60)
        assert found["whole_document_epsilon"] == {"value": 32.0}
        assert found["reproduced"] == (out != "r.parquet")
    assert {"unit", "utility", "selection", "sensitivity", "files"} <= set(found)
    assert pl.read_parquet("r.parquet")["document"].to_list() == pl.read_ndjson("r.jsonl")["document"].to_list()
    assert run("text evaluate private.jsonl --label topic --candidates c.npz --epsilon 8 --repetitions 1") == 0
    assert "clipped scores" in capsys.readouterr().out
    assert run("text protect private.jsonl --candidates c.npz --epsilon 9 --out nowhere/r.csv --ledger other") == 2
    assert "its folder is missing" in capsys.readouterr().err and not Path("other").exists()
    assert run(f"{protect} r.csv") == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.exhaust
def test_a_limit_on_sentences_hides_no_document_from_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    encoder = SVDEncoder.fit(PUBLIC, dimension=6)
    (tmp_path / "c.npz").write_bytes(candidates_bytes(small_candidates(encoder), encoder))
    lists = [{"text": one.sentences} for one in PRIVATE] + [{"text": ["a sail."] * 10_001}]
    (tmp_path / "private.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lists))
    protect = "text protect private.jsonl --candidates c.npz --epsilon 4 --ledger ledger --json"
    assert invoke(f"{protect} --out r.csv --most-sentences 5".split()) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 13
    assert invoke(f"{protect} --out s.csv --most-sentences 3".split()) == 2
    assert "released before" in capsys.readouterr().err
    assert invoke(f"{protect} --out s.csv --most-sentences 3 --new-release".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["epsilon"], found["whole_document_epsilon"]) == (8.0, {"value": 32.0})


def test_ctrl_c_says_what_is_kept_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def progress(step: str, done: int, total: int) -> None:
        if step == "protect documents" and done == 5:
            raise KeyboardInterrupt

    def interrupted(*given: object, **named: object) -> object:
        return release_documents(*given, **{**named, "progress": progress})  # type: ignore[arg-type]

    monkeypatch.chdir(tmp_path)
    encoder = SVDEncoder.fit(PUBLIC, dimension=6)
    (tmp_path / "c.npz").write_bytes(candidates_bytes(small_candidates(encoder), encoder))
    (tmp_path / "p.jsonl").write_text("".join(json.dumps({"text": one.sentences}) + "\n" for one in PRIVATE))
    given = "p.jsonl --candidates c.npz --epsilon 4 --ledger ledger --out r.csv"
    protect = ["text", "protect", *given.split()]
    with monkeypatch.context() as patch:
        patch.setattr("dovetail.text.release.release_documents", interrupted)
        assert invoke(protect) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "no file was written; what was drawn is in the ledger" in said
        assert not Path("r.csv").exists() and len(list(Path("ledger/unfinished").iterdir())) == 1
        assert invoke([*protect, "--seed", "1"]) == 1
        assert capsys.readouterr().err == "error: interrupted; nothing was written.\n"
    assert invoke([*protect, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 12 and not [*Path("ledger/unfinished").iterdir()]


def test_the_plan_answers_by_what_is_drawn_and_asks_a_little_more_than_the_papers_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "text plan --candidates 5000 --probability 0.95 --utility depth --selection exponential --json"

    def answer(more: str) -> dict[str, float]:
        assert invoke([*line.split(), *more.split()]) == 0
        found: dict[str, float] = json.loads(capsys.readouterr().out)
        return found

    for epsilon, depth, printed in ((3, 5, 52), (6, 3, 12), (10, 2, 5), (23, 1, 1)):
        asked = f"--depth {depth} --epsilon {epsilon}"
        found = answer(asked)
        assert printed < found["b"] < 1.2 * printed + 1 and found["probability"] >= 0.95
        assert answer(f"{asked} --good {found['b'] - 1:.0f}")["probability"] < 0.95
    back = answer("--depth 5 --good 60")
    assert 2.9 < back["epsilon"] <= 3.0 and back["probability"] >= 0.95
    alone, law = answer("--depth 5"), 0.4 * math.log(0.95 / 0.05 * 4999)  # of one good candidate, in real numbers
    assert alone["b"] == 1 and law < alone["epsilon"] < 1.03 * law


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "x", "must be one of .jsonl"),
        ("a.jsonl", "{broken", "1 line: no JSON object (first at line 1)"),
        (
            "a.jsonl",
            '{"text": "One."}\n{"text": {"a": 1}}\n',
            "1 row: no text and no list of sentences, in the",
        ),
        ("a.csv", 'id,text\n1,"my secret. unclosed\n', "a quote in row 1 is never closed"),
        ("a.csv", "id,words\n1,x\n", "has no column 'text'"),
        ("a.csv", "id,text\n", "has no rows"),
        ("missing.csv", None, "no such file"),
        ("a.jsonl", '{"text": 5}\n', "1 row: no text and no list of sentences"),
    ],
)
def test_bad_files_are_one_line(
    name: str, content: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    assert invoke(["text", "candidates", str(tmp_path / name), "--out", str(tmp_path / "c.npz")]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and "secret" not in error
    assert not (tmp_path / "c.npz").exists()
