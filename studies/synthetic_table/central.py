"""MST and AIM of the package dpmm on the people of this study: what one who reads every answer makes of them.

The package is none of ours, pins few of its own dependencies, and takes an environment of its own:

    python -m venv central && central/bin/pip install dpmm==0.1.9 pandas==2.1.0 numpy==1.26.4 scipy==1.17.1
    central/bin/python studies/synthetic_table/central.py out/people.csv mst 1

`people.csv` is written by `dovetail study synthetic_table --full --out out`; the last number is the seed. It prints
mean and largest total variation distance of the 66 two-way tables at epsilon 1 and delta 1e-6, and the seconds.
Neighbours of dpmm differ by a person more, ours by another answer of one, which is the stronger promise.
"""

import argparse
import csv
import importlib
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (11, 9, 7, 7, 15, 6, 5, 2, 7, 2, 2, 3)
MODELS = {"mst": ("dpmm.models.mst", "MSTGM"), "aim": ("dpmm.models.aim", "AIMGM")}


def distances(one: Any, other: Any) -> list[float]:
    """Total variation distances of all two-way tables of two integer arrays (n, columns)."""
    found = []
    for i, j in itertools.combinations(range(len(SIZES)), 2):
        shares = [
            np.bincount(rows[:, i] * SIZES[j] + rows[:, j], minlength=SIZES[i] * SIZES[j]) / len(rows)
            for rows in (one, other)
        ]
        found.append(0.5 * float(np.abs(shares[0] - shares[1]).sum()))
    return found


def main() -> None:
    """Fit one model and print how far its table is off."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("people", type=Path)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("seed", type=int)
    given = parser.parse_args()
    module, name = MODELS[given.model]
    try:
        model, pandas = getattr(importlib.import_module(module), name), importlib.import_module("pandas")
    except ImportError:
        raise SystemExit("dpmm is missing: see the first lines of this file.") from None
    with given.people.open(newline="") as file:
        header, *rows = csv.reader(file)
    people = np.array(rows, dtype=np.int64)
    domain = dict(zip(header, SIZES, strict=True))
    began = time.perf_counter()
    random = np.random.RandomState(given.seed)
    less = {"max_model_size": 2, "n_iters": 100} if given.model == "aim" else {}  # its own, 80 and 1,000, take hours
    made = model(epsilon=1.0, delta=1e-6, domain=dict(domain), random_state=random, n_jobs=1, **less)
    made.set_domain(dict(domain))
    measure = made.generator._fit

    def fit(*args: Any, **settings: Any) -> Any:
        found = measure(*args, **settings)
        made.generator.n_iters = max(1000, made.generator.n_iters)  # for the last estimate, of everything measured
        return found

    made.generator._fit = fit
    made.fit(pandas.DataFrame(people, columns=header))
    table = made.generate(n_records=len(people))[header].to_numpy().astype(np.int64)
    off = distances(people, table)
    seconds = time.perf_counter() - began
    print(f"{given.model}: mean {np.mean(off):.4f}, largest {max(off):.4f}, {seconds:.0f} s")


if __name__ == "__main__":
    main()
