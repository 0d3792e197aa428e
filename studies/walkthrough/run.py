r"""Algorithm 1 on eight people, step by step: the example of appendix A.10 and figure 6.

People are numbered 1..8, as in the paper. Three groups are named in its text: those of people 4, 5 and 8.

>>> groups = Groups.from_lists([[person - 1 for person in group] for group in NAMED.values()], 8)

Step 1, the reference order, found by breadth-first search from person 5, who has the largest group. Public data only.

>>> order = np.array(REFERENCE) - 1

Step 2, how far apart the members of each group stand. The positions of group 4 are 1, 5 and 8: width 7.

>>> table = spread(order)
>>> table["positions"].to_list()
['1 5 8', '1 2 3 4 5', '1 3 4']
>>> table["width"].to_list(), table["sensitivity"].to_list()
([7, 4, 3], [13, 10, 5])

Step 3, the sensitivity. The paper's w (w + 1) / 2 is 28; the exact value is 13, so theta is more than twice as large
for the same promise.

>>> shuffler = Mallows.single(groups, alpha=1.0, reference=order)
>>> shuffler.summary()["paper_sensitivity"], shuffler.sensitivity
(28, 13)
>>> round(1.0 / 28, 4), round(shuffler.theta, 4)
(0.0357, 0.0769)

Step 4, a sample around the reference order. The paper's has kappa = (3 2 1 5 4 6 8 7), five inversions.

>>> kappa = inverse(order)[np.array(SAMPLE) - 1]
>>> (kappa + 1).tolist(), inversions(kappa)
([3, 2, 1, 5, 4, 6, 8, 7], 5)

Step 5, the release: the place of person s(k) receives the report of person shat(k). "What was 5 in the reference is
3 in the sample": place 5 holds the report of person 3.

>>> flow = release(order, kappa)
>>> (flow + 1).tolist()
[1, 2, 5, 8, 3, 7, 6, 4]
>>> int(flow[4]) + 1
3

Step 6, what is promised. Reordering the reports of group 4 changes the likelihood of no release by more than e^alpha,
and some release by just that. Groups that were not asked for have a finite alpha as well.

>>> round(exact_alpha(shuffler, groups), 12), shuffler.guarantee.alpha
(1.0, 1.0)
>>> round(exact_alpha(shuffler, Groups.from_lists([[4, 6]], 8)), 2)
1.0

Line 8 of the algorithm read literally, sigma* = s^-1 shat, gives kappa itself, which is not what the paper prints.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from studies.record import command, picture, record

from dovetail.account.order_privacy import exact_alpha
from dovetail.core.entropy import Permutation
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.fitting.sensitivity import kendall, published_width_bound
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.sampling.mallows import inversions
from dovetail.shuffle.sampling.permutations import inverse

NAMED = {4: (4, 5, 7), 5: (5, 2, 3, 8, 4), 8: (8, 3, 5)}
REFERENCE = (5, 2, 3, 8, 4, 1, 6, 7)
SAMPLE = (3, 2, 5, 4, 8, 1, 7, 6)
__all__ = ["Groups", "Mallows", "exact_alpha", "inverse", "inversions", "main", "release", "spread"]


def spread(order: Permutation) -> pl.DataFrame:
    """Positions, width and sensitivities of the named groups along the reference order."""
    places = {owner: np.sort(inverse(order)[np.array(group) - 1]) for owner, group in NAMED.items()}
    width = {owner: int(p[-1] - p[0]) for owner, p in places.items()}
    return pl.DataFrame(
        {
            "owner": list(places),
            "positions": [" ".join(str(p + 1) for p in place) for place in places.values()],
            "width": list(width.values()),
            "paper_sensitivity": [published_width_bound(w) for w in width.values()],
            "sensitivity": [kendall(p) for p in places.values()],
        }
    )


def release(order: Permutation, kappa: Permutation) -> Permutation:
    """Whose report each place receives: flow[order[k]] = order[kappa[k]]."""
    flow = np.empty_like(order)
    flow[order] = order[kappa]
    return flow


def main(full: bool, out: Path) -> pl.DataFrame:
    """Write groups.csv, release.csv and release.png; there is one size."""
    order, sample = np.array(REFERENCE) - 1, np.array(SAMPLE) - 1
    table = spread(order)
    table.write_csv(out / "groups.csv")
    flow = release(order, inverse(order)[sample])
    steps = pl.DataFrame(
        {"place": np.arange(1, 9), "reference": order + 1, "sample": sample + 1, "report_released": flow + 1}
    )
    steps.write_csv(out / "release.csv")

    def draw(pyplot: Any) -> Any:
        figure, axis = pyplot.subplots(figsize=(8, 2.5))
        for k, (home, sender) in enumerate(zip(order, sample, strict=True)):
            axis.plot([int(np.flatnonzero(order == sender)[0]) + 1, k + 1], [1, 0], color="0.4")
            axis.text(k + 1, 1.08, f"y{home + 1}", ha="center")
            axis.text(k + 1, -0.2, f"{home + 1}", ha="center")
        axis.set_title("reports in reference order (top); people at whose place they are released (bottom)", pad=18)
        axis.axis("off")
        return figure

    picture(out / "release.png", draw)
    record(out, seed=0, full=full)
    return table


def verdict(table: pl.DataFrame) -> dict[str, bool]:
    """What the appendix prints, seen in this table."""
    return {
        "the widths are the printed ones": table["width"].to_list() == [7, 4, 3],
        "the exact sensitivities are never above the printed ones": bool(
            (table["sensitivity"] <= table["paper_sensitivity"]).all()
        ),
    }


if __name__ == "__main__":
    command(main, "Algorithm 1 on the eight people of appendix A.10.")
