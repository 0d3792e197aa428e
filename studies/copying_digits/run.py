"""Figure 2.3 d to f in small: kernel densities and Gaussian mixtures of MNIST digits, from copying to under-fitting.

Images are projected to 32 principal components of T, in which a kernel density or a mixture is fitted and sampled;
then kernel densities once more between codes of an autoencoder of T, scaled to the total variance of the components.
T 6,000, P 2,000, validation 2,000 of the first 10,000 training images, in the order of a permutation [0].
"""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from studies.copying_digits.autoencoder import encoder_of
from studies.record import command, picture, record

from dovetail.cli.progress import each
from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError
from dovetail.core.extras import require
from dovetail.memorize.copying.baselines import neighbour_accuracy
from dovetail.memorize.copying.data_copying import CopyingTest

WIDTHS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5, 2.0, 3.0)
TOY_WIDTHS = (0.2, 0.6, 2.0)
CODED_WIDTHS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.5)
MIXTURES = (1, 10, 50, 200, 500, 1000)
TOY_MIXTURES = (10, 500)
COMPONENTS = 32


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write copying_digits.csv and its picture: three bandwidths and two mixtures as a toy."""
    table = pl.DataFrame(list(rows(full)))
    table.write_csv(out / "copying_digits.csv")
    picture(out / "copying_digits.png", lambda pyplot: drawn(pyplot, table))
    record(out, seed=0, full=full)
    return table


def images() -> NDArray[np.float64]:
    """The first 10,000 training images as rows."""
    folder = Path(os.environ.get("DOVETAIL_DATA", "data")) / "mnist"
    found = sorted(folder.glob("train-images*.gz")) if folder.is_dir() else []
    if not found:
        raise DataError(
            f"{folder}: has no train-images*.gz; get train-images-idx3-ubyte.gz of MNIST (LeCun, Cortes, Burges) and "
            "name its parent folder with --data or DOVETAIL_DATA."
        )
    with gzip.open(found[0]) as file:
        raw = np.frombuffer(file.read(), dtype=np.uint8)
    return np.asarray(raw[16:].reshape(-1, 784)[:10_000] / 255.0)


def rows(full: bool) -> Iterator[dict[str, Any]]:
    """One row for each model."""
    pixels = images()[simulation(0).permutation(10_000)]
    scale = 1 if full else 3
    train, fresh, valid = pixels[: 6000 // scale], pixels[6000 : 6000 + 2000 // scale], pixels[8000:]
    project = require("sklearn.decomposition", extra="memorize").PCA(COMPONENTS, random_state=0).fit(train)
    coded = _coded(train, (train, fresh, valid), spread=float(project.explained_variance_.sum()))
    train, fresh, valid = (project.transform(part) for part in (train, fresh, valid))
    density = require("sklearn.neighbors", extra="memorize").KernelDensity
    prepared = CopyingTest.prepare(coded[0], coded[1])
    for width in each(CODED_WIDTHS if full else TOY_WIDTHS, "test each bandwidth between codes"):
        model = density(bandwidth=width).fit(coded[0])
        sample = model.sample(len(fresh), random_state=1)
        yield _row(prepared, "kernel density of codes", width, model, sample, coded[2])
    prepared = CopyingTest.prepare(train, fresh)
    mixture = require("sklearn.mixture", extra="memorize").GaussianMixture
    for width in each(WIDTHS if full else TOY_WIDTHS, "test each bandwidth"):
        model = density(bandwidth=width).fit(train)
        yield _row(prepared, "kernel density", width, model, model.sample(len(fresh), random_state=1), valid)
    for count in MIXTURES if full else TOY_MIXTURES:
        model = mixture(count, covariance_type="diag", random_state=0, max_iter=30, tol=0.1, reg_covar=1e-4)
        model.fit(train)
        sample = model.sample(len(fresh))[0]
        yield _row(prepared, "mixture", float(count), model, sample, valid)
    copies = train[simulation(2).permutation(len(train))[: len(fresh) // 20]]
    model = density(bandwidth=0.7).fit(train)
    some = np.concatenate([copies, 0.9 * model.sample(len(fresh) - len(copies), random_state=3)])
    yield _row(prepared, "5 % copies in a shrunk model", 0.7, model, some, valid)


def _coded(train: Any, parts: tuple[Any, ...], *, spread: float) -> list[NDArray[np.float64]]:
    """Codes of images by an autoencoder of the training sample, whose codes are scaled to a total variance."""
    encode = encoder_of(train, seed=1)
    codes = [encode(part) for part in parts]
    return [one * np.sqrt(spread / codes[0].var(axis=0).sum()) for one in codes]


def _row(prepared: CopyingTest, kind: str, size: float, model: Any, sample: Any, valid: Any) -> dict[str, Any]:
    result = prepared.test(sample, baselines=False)
    accuracy = neighbour_accuracy(prepared.train, sample, rng=simulation(1))
    return {
        "model": kind,
        "size": size,
        "likelihood": float(np.mean(model.score_samples(valid))),
        "z": result.overall.z,
        "delta": result.overall.delta,
        "c_t": result.cells.c_t,
        "c_t_standardized": result.cells.c_t_standardized,
        "worst_cell": min(cell.p_holm for cell in result.cells.cells),
        "copied_cells": sum(cell.p_holm < 0.05 for cell in result.cells.cells),
        "cells": len(result.cells.cells),
        "ratio": result.ratio.p,
        "singled_out": result.paired.p,
        "membership": result.membership.auc,
        "nn_train": accuracy.train,
        "nn_generated": accuracy.generated,
        "verdict": result.verdict,
    }


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What figure 2.3 d to f is to show, and what it leaves out."""
    kernel = table.filter(pl.col("model") == "kernel density").sort("size")
    peak = int(kernel["likelihood"].arg_max() or 0)
    mixture = table.filter(pl.col("model") == "mixture").sort("size")
    planted = table.filter(pl.col("model").str.starts_with("5 %")).row(0, named=True)
    crossing = kernel.filter(pl.col("c_t") > 0)["size"][0] / kernel["size"][peak]
    many = mixture.row(-1, named=True)
    coded = table.filter(pl.col("model") == "kernel density of codes").sort("size")
    best = int(coded["likelihood"].arg_max() or 0)
    turn = coded.filter(pl.col("c_t") > 0)["size"][0] / coded["size"][best]
    return {
        "between codes of an autoencoder C_T crosses 0 next to the likelihood's peak as well": 1 / 2 < float(turn) < 2
        and float(coded["c_t"][0]) < -5 < 5 < float(coded["c_t"][-1]),
        "C_T rises from copying to under-fitting, until it saturates": float(kernel["c_t"].diff().min() or 0.0) > -0.5  # type: ignore[arg-type]
        and float(kernel["c_t"][0]) < -5 < 5 < float(kernel["c_t"][-1]),
        "C_T crosses 0 next to the likelihood's peak": 1 / 1.5 < float(crossing) < 1.5,
        "the narrowest kernel is found to copy, the widest is not": kernel["verdict"][0] == "copying"
        and kernel["verdict"][-1] == "nothing found",
        "a mixture of many components copies in some cells while C_T stays near 0": many["worst_cell"] < 0.01
        and abs(many["c_t"]) < 3
        and many["verdict"] == "copying",
        "a mixture of one to ten components is not found to copy": mixture["verdict"][0] == "nothing found",
        "5 % of copies in a shrunk model are told apart from shrinking": planted["verdict"] == "copying"
        and planted["singled_out"] < 0.01,
    }


def drawn(pyplot: Any, table: pl.DataFrame) -> Any:
    """C_T, two-sample accuracy and membership over the bandwidth, and over the number of components."""
    figure, axes = pyplot.subplots(3, 3, figsize=(11, 9))
    kinds = {
        "kernel density": "bandwidth",
        "kernel density of codes": "bandwidth between codes",
        "mixture": "components",
    }
    for line, (kind, name) in zip(axes, kinds.items(), strict=True):
        part = table.filter(pl.col("model") == kind).sort("size")
        for place, columns in zip(line, (("c_t",), ("nn_train", "nn_generated"), ("membership",)), strict=True):
            for column in columns:
                place.plot(part["size"], part[column], marker="o", label=column.replace("_", " "))
            place.axvline(float(part["size"][int(part["likelihood"].arg_max() or 0)]), linestyle="--", color="grey")
            place.set_xscale("log")
            place.set_xlabel(name)
            place.legend()
    figure.suptitle("MNIST, 32 principal components or 64 codes; dashed: peak of the held-out likelihood")
    figure.tight_layout()
    return figure


if __name__ == "__main__":
    command(main, __doc__)
