"""What subscribers may ask about one campaign, answered as documents ready for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dovetail.account.compose import Composition
from dovetail.collect.analyzer.answers.estimates import (
    EVERYBODY,
    Classes,
    NumericSummary,
    RoundEstimates,
    window_estimates,
)
from dovetail.collect.analyzer.answers.guarantee_sentences import doubt, guarantee_sentences
from dovetail.collect.analyzer.answers.roster_slots import RosterSlotEstimator
from dovetail.collect.campaign.added_dummies import added_dummies
from dovetail.collect.campaign.class_guarantees import WEIGHTED, ClassGuarantee
from dovetail.collect.campaign.guarantees import (
    BatchGuarantee,
    CampaignGuarantees,
    ReleasedBatch,
    batch_guarantee,
    campaign_guarantees,
)
from dovetail.collect.campaign.people_dummies import count_messages, people_dummies
from dovetail.collect.http.problems import Refusal
from dovetail.collect.store.interfaces import AnalyzerStore, BatchRecord
from dovetail.core.errors import DataError
from dovetail.core.estimate import Estimate
from dovetail.core.guarantee import CentralDP
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.simplex import project_shares
from dovetail.pipeline.evaluate.estimates import LEVEL, shares_of
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.from_device import from_device
from dovetail.report.document import IntervalEstimates, Missing, central_document, to_jsonable
from dovetail_protocol.campaign import Campaign

Document = dict[str, Any]


class CampaignAnswers:
    """Everything that is known about one campaign: its counted batches never change, and are read once.

    Parameters
    ----------
    campaign : Campaign
        The newest version.
    store : AnalyzerStore
    slots : RosterSlotEstimator, optional
        What is public about roster slots, where reports are released at them.
    """

    def __init__(self, campaign: Campaign, store: AnalyzerStore, slots: RosterSlotEstimator | None = None) -> None:
        self.campaign, self._store, self._slots = campaign, store, slots
        self._rounds: dict[str, RoundEstimates] = {}
        self._mixed: dict[str, tuple[int | None, float | None]] = {}
        self._followers: dict[str, int | None] = {}

    def batches(self) -> list[BatchRecord]:
        """Counted batches, by the round that they closed with."""
        return sorted(self._store.batches(self.campaign.id), key=lambda batch: batch.rounds[-1])

    def rounds(self) -> list[RoundEstimates]:
        """Estimates by round, one for each batch."""
        return [self._estimates(batch) for batch in self.batches()]

    def latest(self) -> RoundEstimates:
        """The last round with an estimate; Refusal if there is none."""
        known = [each for each in self.rounds() if not each.withheld]
        if not known:
            raise Refusal("not_found", f"{self.campaign.id} has no estimate yet.")
        return known[-1]

    def at(self, t: int) -> RoundEstimates:
        """The round t; Refusal if it has no estimate, with what became of it."""
        for each in self.rounds():
            if each.t == t and each.withheld:
                raise Refusal(
                    "not_found",
                    f"round {t} of {self.campaign.id} has fewer valid reports than the minimum of {each.minimum:,}: "
                    "its estimates are withheld.",
                )
            if each.t == t:
                return each
            if t in each.rounds and each.t != t:
                raise Refusal("not_found", f"round {t} was merged into the batch of round {each.t}.")
        raise Refusal("not_found", f"round {t} of {self.campaign.id} has no estimate.")

    def window(self, t: int, *, width: int) -> Document:
        """Win(t, w) for everybody and for each public group; see `estimates.window`."""
        known = self.rounds()
        if not known or t > known[-1].t:
            raise Refusal("not_found", f"round {t} of {self.campaign.id} has not been counted.")
        try:
            answer = window_estimates(known, t, width=width)
        except DataError as error:
            raise Refusal("not_found", str(error)) from None
        return {
            "t": t,
            "width": width,
            "groups": [
                {**self._shares(name, each.estimate), "missing": list(each.missing)}
                for name, each in answer.by_group.items()
            ],
            "warnings": self._warnings(t, width=width),
            **self._weighted(),
        }

    def guarantees(self) -> CampaignGuarantees:
        """What all counted batches promise."""
        return campaign_guarantees(self.campaign, self.released_batches())

    def released_batches(self) -> list[ReleasedBatch]:
        """The batches in the numbers that guarantees depend on, in order of their rounds."""
        return [self._released(batch) for batch in self.batches()]

    def document(self, each: RoundEstimates, *, detail: bool = False) -> Document:
        """The estimates of one round; `detail` adds what is known about a number besides its mean."""
        found = {
            "round": each.t,
            "rounds": list(each.rounds),
            "n": each.n,
            "withheld": each.withheld,  # then no group is listed
            "measure": "share" if isinstance(each.randomizer, FrequencyRandomizer) else "mean",
            "level": LEVEL,
            "groups": [self._shares(name, estimate) for name, estimate in each.by_group.items()],
            "warnings": self._warnings(each.t),
        }
        found |= self._weighted()
        if detail and each.numbers is not None:
            found |= _numeric_document(each.numbers)
        return found

    def frequencies(self, t: int | None = None) -> Document:
        """Shares of the symbols in round t, or the latest; `projected` are the nearest that sum to 1."""
        each = self.latest() if t is None else self.at(t)
        if not isinstance(each.randomizer, FrequencyRandomizer):
            raise Refusal("not_found", f"{self.campaign.id} asks for a number: it has means, not frequencies.")
        groups = []
        for name, estimate in each.by_group.items():
            found = self._shares(name, estimate)
            groups.append({**found, "projected": project_shares(estimate.value).tolist()})
        return {
            "round": each.t,
            "n": each.n,
            "level": LEVEL,
            "groups": groups,
            "warnings": self._warnings(each.t),
            **self._weighted(),
        }

    def status(self) -> Document:
        """Counted batches, and what was set aside, by kind."""
        batches = [
            {
                "rounds": list(batch.rounds),
                "round": batch.rounds[-1],
                "reports": batch.count,
                "n": batch.n,
                "rejected": dict(sorted(batch.rejected.items())),
                "short": batch.n < self.campaign.batch.minimum,
                "followers": self._most_followers(batch),
                **self._sizes(batch.classes),
            }
            for batch in self.batches()
        ]
        return {**self.heading(), "minimum": self.campaign.batch.minimum, "batches": batches}

    def heading(self) -> Document:
        """Which campaign this is."""
        campaign = self.campaign
        return {
            "campaign": campaign.id,
            "version": campaign.version,
            "question": campaign.question,
            "randomizer": campaign.mechanism.name,
            "epsilon": to_jsonable(campaign.mechanism.epsilon),
            "trust": campaign.promise.trust,
            "categories": list(campaign.categories),
            "groups": list(campaign.groups),
            **({"classes": {each.name: each.epsilon for each in campaign.classes}} if campaign.classes else {}),
        }

    def guarantee(self, t: int | None = None) -> Document:
        """Everything that is promised, or with `t` what is for the batch of that round."""
        if t is not None:
            for each in self.released_batches():
                if each.t == t:
                    promised = self._guarantee_document(batch_guarantee(self.campaign, each))
                    return {**promised, "warnings": self._warnings(t)}
            raise Refusal("not_found", f"round {t} of {self.campaign.id} has no batch.")
        found = self.guarantees()
        return {
            **self.heading(),
            "local": to_jsonable(found.local),
            "colluding": to_jsonable(found.local.epsilon),
            "authentication": self.campaign.promise.authentication,
            "rounds": found.rounds,
            "most_reports_of_a_device": found.most_reports,
            "local_of_all_rounds": to_jsonable(found.all_local),
            "device_budget": self.campaign.promise.device_budget,
            "weakest": found.weakest and self._guarantee_document(found.weakest),
            "latest": found.latest and self._guarantee_document(found.latest),
            "all_rounds": _composed_document(found.composed),
            **({"by_class": [_class_document(each) for each in found.classes]} if found.classes else {}),
            "verdict": found.verdict.document(),
            "alpha_of_a_batch": to_jsonable(found.alpha),
            "alpha_of_all_batches": to_jsonable(found.all_alpha),
            "short": [_without_classes(each) for each in found.short],
            "warnings": [doubt(each) for each in found.doubtful],
            "words": [line._asdict() for line in guarantee_sentences(self.campaign, found)],
        }

    def requirement(self) -> Document:
        """The precision that the analyzer asks of devices: Algorithm 3's broadcast."""
        if self.campaign.precision is None:
            raise Refusal("not_found", f"{self.campaign.id} asks for no precision.")
        beta, rho = self.campaign.precision
        return {"campaign": self.campaign.id, "beta": beta, "rho": rho}

    @property
    def labels(self) -> list[str]:
        """What the components of an estimate are called."""
        k = getattr(self.campaign.mechanism, "k", None)
        if k is None:
            return ["mean"]
        return list(self.campaign.categories) or [str(symbol) for symbol in range(k)]

    def _estimates(self, batch: BatchRecord) -> RoundEstimates:
        if batch.id not in self._rounds:
            randomizer: Any = from_device(self.campaign.mechanism)
            tallies = tuple(self._store.tallies(self.campaign.id, batch.id))
            placed = (
                {}
                if self._slots is None
                else self._slots.estimates(self.campaign, self._store.reports_by_slot(batch.id))
            )
            self._rounds[batch.id] = RoundEstimates(
                batch.rounds[-1], batch.rounds, randomizer, tallies, self.campaign.batch.minimum, placed,
                dummies=added_dummies(self.campaign) or people_dummies(self.campaign), people=batch.n,
                classes=self._classes(batch),
            )  # fmt: skip
        return self._rounds[batch.id]

    def _released(self, batch: BatchRecord) -> ReleasedBatch:
        if self._slots is not None and batch.id not in self._mixed:
            self._mixed[batch.id] = self._slots.mixed(self._store.reports_by_slot(batch.id))
        block, alpha = self._mixed.get(batch.id, (None, None))
        return ReleasedBatch(
            batch.rounds[-1], batch.count, batch.n, batch.smallest, block, alpha, self._most_followers(batch),
            batch.classes,
        )  # fmt: skip

    def _classes(self, batch: BatchRecord) -> Classes:
        """Who sent something by which randomizer; nothing where there are no classes.

        A database that was rolled back has forgotten it: then anybody may have been of any class.
        """
        sizes = batch.classes or (batch.count,) * len(self.campaign.classes)
        own = (from_device(self.campaign.of_class(place).mechanism) for place in range(len(sizes)))
        return tuple((n, one) for n, one in zip(sizes, own, strict=True) if isinstance(one, KRR))

    def _weighted(self) -> Document:
        """What shares mean where people have different epsilons; nothing elsewhere."""
        return {"weighted": WEIGHTED} if self.campaign.classes else {}

    def _sizes(self, sizes: tuple[int, ...]) -> Document:
        """People of each class by its name, for a document; nothing where there are no classes."""
        named = zip((each.name for each in self.campaign.classes), sizes, strict=bool(sizes))
        return {"classes": dict(named)} if sizes else {}

    def _guarantee_document(self, each: BatchGuarantee) -> Document:
        promised = to_jsonable(central_document(each.central))
        found = {**_without_classes(each.released), "honest": each.honest, "central": promised}
        if self.campaign.classes:
            names = [one.name for one in self.campaign.classes]
            central = (to_jsonable(central_document(one)) for one in each.by_class)
            found |= {**self._sizes(each.released.classes), "by_class": dict(zip(names, central, strict=True))}
        return found

    def _most_followers(self, batch: BatchRecord) -> int | None:
        """Where people send dummies: how many of the batch can have; None where it can be everybody."""
        sent = people_dummies(self.campaign)
        if sent is None:
            return None
        if batch.id not in self._followers:
            tallies = self._store.tallies(self.campaign.id, batch.id)
            messages = sum(count_messages(sent, each.counts) for each in tallies)
            found = sent.most_followers(messages, batch.n)
            self._followers[batch.id] = found if found < batch.n else None
        return self._followers[batch.id]

    def _warnings(self, last: int, *, width: int = 1) -> list[str]:
        """What is to be doubted about so many rounds up to the last one."""
        rounds = range(last - width + 1, last + 1)
        batches = [self._released(batch) for batch in self.batches() if batch.rounds[-1] in rounds]
        return [said for said in map(doubt, batches) if said]

    def _shares(self, name: str, estimate: Estimate) -> Document:
        shares: IntervalEstimates = shares_of(estimate, self.labels, None)
        return {"group": name if name != EVERYBODY else None, **to_jsonable(shares)}


def _numeric_document(found: NumericSummary) -> Document:
    low, high = found.median.interval(LEVEL)
    return {
        "median_of_reports": {  # as an estimate of the mean
            "value": float(found.median.value),
            "standard_error": float(found.median.standard_error),
            "bias_bound": float(found.median.bias_bound),
            "interval": [float(low), float(high)],
        },
        "best": {"name": found.best.name, "reason": found.best.reason},
        "quantiles": [{"share": share, **asdict(quantile)} for share, quantile in found.quantiles],
    }


def _without_classes(each: ReleasedBatch) -> Document:
    return {name: value for name, value in asdict(each).items() if name != "classes"}


def _class_document(each: ClassGuarantee) -> Document:
    return {
        "class": each.name,
        "local": each.local,
        "most_reports_of_a_device": each.most_reports,
        "local_of_all_rounds": each.all_local,
        "latest": each.latest and to_jsonable(central_document(each.latest)),
        "each_batch": each.every and to_jsonable(central_document(each.every)),
        "all_rounds": _composed_document(each.composed),
    }


def _composed_document(both: CentralDP | Composition | Missing) -> Any:
    if isinstance(both, Missing):
        return to_jsonable(both)
    if both.epsilon is None:
        return to_jsonable(Missing(getattr(both, "reason", "")))
    return {"epsilon": both.epsilon, "delta": both.delta, "method": both.method, "source": both.source}
