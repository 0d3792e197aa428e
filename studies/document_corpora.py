"""Labelled documents for the studies on sentence privacy: what is here, and by path what a user has.

Each corpus is split in halves: the public half gives encoder, candidates, classifier and every parameter, the other
half is protected. Folders of $DOVETAIL_DATA: `arxiv_abstracts`; `20_newsgroups` (http://qwone.com/~jason/20Newsgroups,
one folder for each group, or what scikit-learn has downloaded); `imdb`
(https://ai.stanford.edu/~amaas/data/sentiment, the folder `aclImdb`); `goodreads`
(https://mengtingwan.github.io/data/goodreads, files goodreads_reviews_GENRE.json.gz). The docstrings are those of
packages that the extra `test` installs.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from dovetail.core.errors import DataError
from dovetail.datasets.people import arxiv_abstracts
from dovetail.text.documents import Document, split_sentences

SEED = 1
FEWEST = 5  # sentences of a private document
PACKAGES = ("cvxpy", "matplotlib", "networkx", "pandas", "scipy", "sqlalchemy")
MOST_OF_A_CLASS = 300  # docstrings
MOST_READ = 6_000  # of a corpus of the chapter
MOST_PRIVATE = 400  # documents that are released
CLASSES_OF_GROUPS = {  # nine classes of the twenty groups; the chapter says how many, and does not print which
    "comp.": "computers", "rec.autos": "vehicles", "rec.motorcycles": "vehicles", "rec.sport.": "sport",
    "sci.crypt": "electronics", "sci.electronics": "electronics", "sci.med": "medicine", "sci.space": "space",
    "misc.forsale": "for sale", "talk.politics.": "politics", "talk.religion.": "religion",
    "alt.atheism": "religion", "soc.religion.": "religion",
}  # fmt: skip
_SECTION = re.compile(r"\n\s*(Parameters|Returns|Examples|References|See Also|Notes|Attributes)\s*\n\s*-{3,}.*", re.S)


@dataclass(frozen=True)
class Corpus:
    """Public and private documents of one source, in a random order that is always the same."""

    name: str
    public: list[Document]
    private: list[Document]

    @classmethod
    def halves(cls, name: str, found: Iterable[tuple[str, str]]) -> Corpus:
        """A random half of texts with classes is public; what has five sentences and more of the rest is private."""
        made = [Document(str(place), split_sentences(text), label) for place, (text, label) in
                enumerate(dict(found).items())]  # fmt: skip
        order = np.random.default_rng(SEED).permutation(len(made))
        half = len(made) // 2
        private = [made[one] for one in order[half:] if len(made[one].sentences) >= FEWEST]
        return cls(name, [made[one] for one in order[:half]], private[:MOST_PRIVATE])


def abstracts() -> Corpus:
    """Papers of the eight largest archives; the class is the archive."""
    table = arxiv_abstracts()
    largest = [name for name, _ in Counter(table["archive"].to_list()).most_common(8)]
    rows = table.filter(pl.col("archive").is_in(largest)).select("abstract", "archive").rows()
    return Corpus.halves("abstracts", rows)


def docstrings() -> Corpus:
    """Prose of docstrings of installed packages, whose names are masked; the class is the package.

    Six packages of different kinds, so that the mean of the sentences, without privacy, scores about .9.
    """
    names = re.compile(r"\b(" + "|".join((*PACKAGES, "cp", "pd", "plt", "nx", "sp", "sa")) + r")\b", re.I)
    found = []
    for package in PACKAGES:
        texts = dict.fromkeys(names.sub("it", _SECTION.sub("", one)) for one in _docstrings(package))
        long = [one for one in texts if len(split_sentences(one)) >= FEWEST]
        picked = np.random.default_rng(SEED).permutation(len(long))[:MOST_OF_A_CLASS]
        found += [(long[one], package) for one in sorted(picked)]
    return Corpus.halves("docstrings", found)


def _docstrings(package: str) -> Iterator[str]:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise DataError(f"docstrings of {package} are asked for and it is not installed: pip install {package}.")
    for file in sorted(Path(spec.origin).parent.rglob("*.py")):
        if "tests" not in file.parts and not file.name.startswith("test_"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    yield ast.get_docstring(node) or ""


def newsgroups() -> Corpus:
    """20 Newsgroups without headers, in nine classes: from its folder, or as scikit-learn keeps it here."""
    if not _has("20_newsgroups") and (kept := _kept_by_sklearn()):
        return Corpus.halves("20 Newsgroups", kept)
    home = _folder("20_newsgroups")
    files = [file for file in sorted(home.rglob("*")) if file.is_file() and _class_of(file.parent.name)]
    texts = ((_body(file.read_text(encoding="latin-1")), _class_of(file.parent.name) or "") for file in _some(files))
    return Corpus.halves("20 Newsgroups", texts)


def _kept_by_sklearn() -> list[tuple[str, str]]:
    """Messages and classes of what `fetch_20newsgroups` has downloaded before; nothing is downloaded here."""
    if find_spec("sklearn") is None:
        return []
    from sklearn.datasets import fetch_20newsgroups

    try:
        found = fetch_20newsgroups(subset="all", shuffle=False, download_if_missing=False)
    except OSError:
        return []
    groups = [found.target_names[one] for one in found.target]
    chosen = np.random.default_rng(SEED).permutation(len(groups))[:MOST_READ]
    return [(_body(found.data[one]), label) for one in sorted(chosen) if (label := _class_of(groups[one]))]


def _class_of(group: str) -> str | None:
    return next((label for start, label in CLASSES_OF_GROUPS.items() if group.startswith(start)), None)


def _body(message: str) -> str:
    return message.replace("\0", " ").partition("\n\n")[2]


def imdb() -> Corpus:
    """Reviews of films, positive or negative."""
    files = [file for kind in ("pos", "neg") for file in sorted(_folder("imdb").rglob(f"{kind}/*.txt"))]
    texts = ((file.read_text(encoding="utf-8").replace("<br />", " "), file.parent.name) for file in _some(files))
    return Corpus.halves("IMDB", texts)


def goodreads() -> Corpus:
    """Reviews of books of four genres."""
    files = sorted(_folder("goodreads").glob("goodreads_reviews_*.json.gz"))
    return Corpus.halves("GoodReads", (row for file in files for row in _reviews(file, MOST_READ // len(files))))


def _reviews(file: Path, most: int) -> Iterator[tuple[str, str]]:
    genre = file.name.removeprefix("goodreads_reviews_").removesuffix(".json.gz")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in islice(lines, most):
            yield json.loads(line)["review_text"].replace("\0", " "), genre


def _some(files: list[Path]) -> list[Path]:
    """At most 6,000 of them, drawn always alike."""
    picked = np.random.default_rng(SEED).permutation(len(files))[:MOST_READ]
    return [files[one] for one in sorted(picked)]


def _has(name: str) -> bool:
    return (Path(os.environ.get("DOVETAIL_DATA", ".")) / name).is_dir()


def _folder(name: str) -> Path:
    home = Path(os.environ.get("DOVETAIL_DATA", ".")) / name
    if not home.is_dir():
        raise DataError(f"{home}: no such folder; studies/document_corpora.py says where it comes from.")
    return home


def toy() -> Corpus:
    """Documents of two topics that share no word."""
    draw, words = np.random.default_rng(SEED), 40

    def document(place: int) -> Document:
        topic = place % 2
        lines = (draw.integers(words * topic, words * (topic + 1), 6) for _ in range(8))
        return Document(str(place), tuple(" ".join(f"word{one}" for one in line) for line in lines), str(topic))

    return Corpus("toy", [document(place) for place in range(80)], [document(place) for place in range(30)])


CHAPTER: dict[str, Callable[[], Corpus]] = {"20_newsgroups": newsgroups, "imdb": imdb, "goodreads": goodreads}


def corpora(full: bool) -> list[Corpus]:
    """Docstrings, abstracts, and those of the chapter's corpora that $DOVETAIL_DATA has; else a toy."""
    if not full:
        return [toy()]
    there = {name: _has(name) or (read is newsgroups and bool(_kept_by_sklearn())) for name, read in CHAPTER.items()}
    return [docstrings(), abstracts(), *(read() for name, read in CHAPTER.items() if there[name])]
