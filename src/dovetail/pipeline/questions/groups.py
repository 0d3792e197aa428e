"""Several questions inside groups of a public column: which shuffles of several questions have a proof."""

from __future__ import annotations

import re
from typing import Any

from dovetail.core.checks import nearest
from dovetail.core.registries import SHUFFLERS
from dovetail.pipeline.config.sections import EstimateSection, ShuffleSection
from dovetail.pipeline.files.report_columns import PREFIX
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

KNOWN = (Uniform.name, WithinGroups.name)
USE = f'use "{Uniform.name}", or "{WithinGroups.name}" with groups = {{ labels = COLUMN }}'


def other_shuffler(shuffle: object) -> str | None:
    """A line for a shuffle for which nothing is proven of several answers of a person together."""
    name = shuffle.get("shuffler", Uniform.name) if isinstance(shuffle, dict) else Uniform.name
    if name in KNOWN or name not in SHUFFLERS:
        return None
    return (
        f'[shuffle] shuffler "{name}" does not go with [[questions]]: what its order tells about several answers of '
        f"a person together is not proven; {USE}."
    )


def refuse_other_groups(asked: ShuffleSection) -> None:
    """ValueError for groups that may overlap, and for those that nobody is shuffled in."""
    if asked.compare:
        raise ValueError("[shuffle] compare does not go with [[questions]]; remove it")
    apart = asked.groups is not None and (asked.groups.labels is None or asked.groups.radius is not None)
    if apart or (asked.groups is None) != (asked.shuffler == Uniform.name):
        raise ValueError(f"[shuffle] groups of [[questions]] are those of one public column: {USE}")


def refuse_other_estimates(asked: EstimateSection) -> None:
    """ValueError for what is asked of one question only."""
    for key in sorted(asked.model_fields_set - {"by", "min_group_size"}):
        raise ValueError(f"[estimate] {key} does not go with [[questions]]; remove it")


def wrong_public(
    shuffle: ShuffleSection, estimate: EstimateSection, public: list[str], columns: list[Any], name: str
) -> list[str]:
    """A line for each public column that nothing is done with, or that is missing."""
    if shuffle.groups is None:
        unused = [("[data] public", bool(public)), ("[estimate] by", bool(estimate.by))]
        return [
            f"{name}: {place} does not go with [[questions]] that everybody is shuffled for: a uniform shuffle "
            f'releases no public column; use [shuffle] shuffler = "{WithinGroups.name}".'
            for place, given in unused
            if given
        ]
    label = str(shuffle.groups.labels)
    kept = [re.compile(rf"{re.escape(str(asked))}\.{PREFIX}(_\d+)?") for asked in columns]
    reports = [one for one in public if any(pattern.fullmatch(one) for pattern in kept)]
    found = [f"{name}: public column {one!r} has a name that the reports need; rename it." for one in reports]
    if label not in public:
        found.append(
            f"{name}: [shuffle] groups: column {label!r} is not listed in [data] public{nearest(label, public)}."
        )
    found += [
        f"{name}: [estimate] by: column {one!r} is not that of the groups, {label!r}: reports are mixed inside those."
        for one in estimate.by
        if one != label
    ]
    return found


def honest_in(batch: int, n: int, honest: int | None) -> int | None:
    """The honest people of a group, if all the others sit in it."""
    return None if honest is None or honest == n else max(1, batch - (n - honest))
