"""The sentences of a stream's report: what is assumed over many rounds, and what each step promises."""

from __future__ import annotations

from typing import Any

from dovetail.core.guarantee import CentralDP
from dovetail.pipeline.config.run_config import RunConfig
from dovetail.pipeline.stream.fleet import Fleet
from dovetail.pipeline.stream.fleet_run import FleetRun
from dovetail.report.document import Evaluation, Missing
from dovetail.report.number_format import upward

POST_PROCESSING = "Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy, Proposition 2.1"


def assumptions(
    settings: RunConfig, run: FleetRun, detail: dict[str, Any], evaluation: Evaluation
) -> tuple[str, ...]:
    """What must be true for the numbers to mean what they say."""
    lines = [
        "Each device sends at most one report a round, and all use the same randomizer independently.",
        "The roster, the range, the grid and the groups are public knowledge, not read off the private column.",
        "Which devices have a value in which round is no secret: whether one reports depends on that and on how "
        "often it reported before, never on its value.",
        "A device's values are protected by its budget over all rounds; the order of the rows only hides which "
        "report of a round is whose. What stays the same for many rounds is learned a little better in each.",
    ]
    if run.fleet.spread is not None and run.fleet.most_reports < run.fleet.spread:
        lines.append(
            f"Each device answers in {run.fleet.most_reports:,} of every {run.fleet.spread:,} rounds. Which ones is "
            "read off its name: it is public, and nothing is claimed for it. Promises count the reports really sent."
        )
    if detail["spent_before"]:
        lines.append(
            f"Devices had spent up to ε = {upward(detail['spent_before'])} in earlier releases, by the private "
            "release ledger; the cap holds for all of them together, as far as that ledger remembers."
        )
    if isinstance(evaluation.central, CentralDP):
        lines.append(
            f"The shuffler keeps every order to itself, and {evaluation.central.honest_n:,} of the "
            f"{evaluation.central.n:,} devices follow the protocol, the others may sit in any batch; otherwise the "
            "local guarantee is all that remains."
        )
    if not isinstance(detail["alone"], Missing) and detail["alone"]:
        lines.append(
            f"{detail['alone']:,} of {detail['reports']:,} reports were the only ones of their group in their round: "
            "the order hides nothing about those."
        )
    if settings.mode == "release":
        lines.append("All rounds together are one release; a later one about the same devices adds its budget to it.")
    return tuple(lines)


def steps(evaluation: Evaluation, fleet: Fleet, detail: dict[str, Any]) -> tuple[dict[str, str], ...]:
    """The stages with their guarantees and theorems."""
    once, alpha = fleet.randomizer.guarantee, detail["alpha_of_a_round"]
    local, order = evaluation.local, evaluation.order.guarantee
    return (
        {
            "stage": "randomize",
            "what": f"In each round each device with budget left answers through {fleet.randomizer.name}, "
            "before anything is sent.",
            "guarantee": f"({upward(once.epsilon)}, {upward(once.delta)})-local differential privacy a round, "
            f"({upward(local.epsilon)}, {upward(local.delta)}) over all rounds",
            "theorem": local.source,
        },
        {
            "stage": "shuffle",
            "what": f"Each round's batch is reordered by {evaluation.shuffler}; the shuffler never looks at the "
            "reports.",
            "guarantee": "no order promise"
            if alpha == float("inf")
            else f"order privacy alpha = {upward(alpha)} a round, {upward(order.alpha)} over all",
            "theorem": "; ".join(
                [order.source] + ([evaluation.central.source] if isinstance(evaluation.central, CentralDP) else [])
            ),
        },
        {
            "stage": "estimate",
            "what": "The mean of each round is estimated and stored; a window is the mean of its rounds' estimates.",
            "guarantee": "post-processing: costs no privacy",
            "theorem": POST_PROCESSING,
        },
    )
