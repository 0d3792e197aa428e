"""Macro-F1 of a public classifier on released documents, against epsilon, for every utility and for noisy means."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.datasets.arxiv import arxiv_abstracts
from dovetail.pipeline.rehearse_documents import rehearse_documents
from dovetail.text.candidates.candidates import Candidates
from dovetail.text.documents import Document, PublicDocuments, split_sentences
from dovetail.text.encoders.svd import SVDEncoder

SEED = 1
UTILITIES = ("clipped", "approval", "votes", "inner", "depth", "published")
WORDS = 40  # of each topic of the toy


def abstracts() -> tuple[list[Document], list[Document]]:
    """Public and private papers of the eight largest archives."""
    table = arxiv_abstracts()
    largest = table["archive"].value_counts(sort=True)["archive"].head(8)
    rows = table.filter(pl.col("archive").is_in(largest.implode())).select("abstract", "archive").rows()
    made = [Document(str(place), split_sentences(text), label) for place, (text, label) in enumerate(rows)]
    order = np.random.default_rng(SEED).permutation(len(made))
    half = len(made) // 2
    return [made[one] for one in order[:half]], [made[one] for one in order[half:] if len(made[one].sentences) >= 5]


def toy() -> tuple[list[Document], list[Document]]:
    """Documents of two topics that share no word."""
    draw = np.random.default_rng(SEED)

    def document(place: int) -> Document:
        topic = place % 2
        lines = (draw.integers(WORDS * topic, WORDS * (topic + 1), 6) for _ in range(8))
        return Document(str(place), tuple(" ".join(f"word{one}" for one in line) for line in lines), str(topic))

    return [document(place) for place in range(80)], [document(place) for place in range(30)]


def main(full: bool, out: Path) -> pl.DataFrame:
    """Five epsilons and five repetitions on abstracts in full, three and one on the synthetic corpus as a toy."""
    public, private = abstracts() if full else toy()
    encoder = SVDEncoder.fit(PublicDocuments(public), dimension=128)
    candidates = Candidates.from_documents(PublicDocuments(public), encoder, fewest_sentences=4)
    rows = rehearse_documents(
        private, candidates, encoder, epsilons=[1.0, 3.0, 6.0, 10.0, 20.0] if full else [1.0, 3.0, 10.0],
        utilities=UTILITIES, repetitions=5 if full else 1, seed=SEED,
    )  # fmt: skip
    table = pl.DataFrame(
        [
            {"release": one.release, "epsilon": one.epsilon, "macro_f1": one.score.macro_f1,
             "deviation": one.score.macro_f1_deviation, "accuracy": one.score.accuracy, "documents": len(private)}
            for one in rows
        ]
    )  # fmt: skip
    table.write_csv(out / "sentence_f1.csv")
    picture(out / "sentence_f1.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    private = table.filter(pl.col("epsilon") >= 3.0)
    ours = private.filter(pl.col("release").is_in(["clipped scores", "approval votes", "cluster votes"]))
    noisy = private.filter(pl.col("release").str.contains("Laplace"))
    best = ours.group_by("epsilon").agg(pl.col("macro_f1").min())
    peer = noisy.group_by("epsilon").agg(pl.col("macro_f1").max().alias("noisy"))
    both = best.join(peer, on="epsilon")
    depth, printed = (
        private.filter(pl.col("release").str.starts_with(name)).sort("epsilon")["macro_f1"][-1]
        for name in ("depth", "the published")
    )
    return {
        "from epsilon 3 on, clipped scores, approval and votes beat both noisy means": bool(
            (both["macro_f1"] > both["noisy"]).all()
        ),
        "the minimum is no worse than the printed maximum at the largest epsilon": bool(depth >= printed),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """F1 against epsilon; the non-private mean and guessing as lines."""
    figure, axis = pyplot.subplots(figsize=(10, 4.4))
    flat = table.filter(pl.col("epsilon").is_null())
    for (name, value), style in zip(flat.select("release", "macro_f1").rows(), (":", "--"), strict=True):
        axis.axhline(value, color="0.4", linestyle=style, label=name)
    for (name,), rows in table.drop_nulls("epsilon").group_by("release", maintain_order=True):
        marker = "x" if "Laplace" in name else "o"
        axis.errorbar(rows["epsilon"], rows["macro_f1"], rows["deviation"], marker=marker, markersize=4, label=name)
    axis.set(xscale="log", xlabel="epsilon of one sentence", ylabel="macro-F1", ylim=(0, 1))
    axis.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
