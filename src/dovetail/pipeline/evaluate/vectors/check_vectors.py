"""`dovetail check CONFIG.toml` of a mean of vectors: what `run` would refuse, and what shortening would do."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dovetail.core.entropy import system_entropy
from dovetail.core.errors import DovetailError
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.evaluate.vectors.arrays import read_vectors
from dovetail.pipeline.evaluate.vectors.section import VectorSection
from dovetail.pipeline.files.check.check_table import TableCheck
from dovetail.pipeline.files.check.declared import Declared
from dovetail.pipeline.files.check.problem import Problem, Status, column_called
from dovetail.pipeline.progress import Progress
from dovetail.randomize.vectors.shared.vector_randomizer import relative_lengths
from dovetail.report.number_format import percent

MANY = 0.5  # of all vectors: if more are shortened, the length is rather a wish than a bound


def check_vectors(config: RunConfig, asked: VectorSection, *, progress: Progress) -> TableCheck:
    """The arrays are read as `run` reads them."""
    data, problems, n = config.data, list[Problem](), 0
    where = column_called(data.private)
    progress("read the table", 0, 1)
    try:
        mechanism = asked.mechanism()
        vectors = read_vectors(data, asked.dimension, system_entropy()).vectors
        n = len(vectors)
        longer = int(np.count_nonzero(relative_lengths(vectors, asked.clip) > 1.0))
        told = f"{longer:,} of {n:,} vectors ({percent(longer / n)}) are longer than {asked.clip:g} and get shortened"
        remedy = "a larger `clip` shortens fewer and costs as much more noise; choose it without looking at a release"
        problems.append(Problem(told, where, remedy, Status.CONFIRM if longer > MANY * n else Status.NOTE))
        error = mechanism.error(n)
        if error > asked.clip:
            what = f"the noise, {error:.3g} in Euclidean length, is larger than every vector"
            problems.append(Problem(what, where, "allow a larger epsilon, or ask more people", Status.NOTE))
    except DovetailError as error:
        what, _, remedy = str(error).rstrip(".").partition("; ")
        problems.append(Problem(what, "run", remedy or "correct the table or the configuration", Status.STOPS))
    progress("read the table", 1, 1)
    declared = Declared(data.private, data.person, (), None, None, None, asked.epsilon)
    return TableCheck(Path(str(data.path)), n, {}, declared, tuple(problems), {}, (), None)
