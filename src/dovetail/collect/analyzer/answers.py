"""Answers to subscribers about one campaign, as documents ready for JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dovetail.account.compose import Composition
from dovetail.collect.analyzer.sentences import GuaranteeSentence, doubt, guarantee_sentences, token_sentence
from dovetail.collect.analyzer.tallies import (
    CampaignRandomizer,
    add_tallies,
    estimator_tally,
    expand_tally,
    marginal_tally,
    tallies_by_group,
    tally_of_question,
    united_tally,
)
from dovetail.collect.campaign.guarantees import (
    WEIGHTED,
    BatchGuarantee,
    CampaignGuarantees,
    ClassGuarantee,
    ReleasedBatch,
    batch_guarantee,
    campaign_guarantees,
)
from dovetail.collect.campaign.issued_counts import IssuedCounts
from dovetail.collect.campaign.terms import (
    count_messages,
    fit,
    noise_of_campaign,
    people_dummies,
    question_of,
    readable_people,
)
from dovetail.collect.http import Refusal
from dovetail.collect.store.interfaces import AnalyzerStore, BatchRecord, GroupTally
from dovetail.core.display import mute
from dovetail.core.errors import ConfigError, DataError, UnsupportedError
from dovetail.core.estimate import Estimate, Tally
from dovetail.core.extras import pl
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.core.question import Question
from dovetail.core.stages import NumericRandomizer, Shuffler
from dovetail.estimate.frequency import project_shares
from dovetail.estimate.grouped import Mixing
from dovetail.estimate.mean import MOST_STEPS, ClampedGrid, QuantileEstimate, estimate_quantile
from dovetail.estimate.robust_mean import BestMean, best_mean, estimate_median
from dovetail.job.evaluate import FEWEST, LEVEL, of_everybody, shares_of
from dovetail.job.fleet import FleetRound, TimeWindow, time_window
from dovetail.job.together import RELEASE
from dovetail.randomize.sampling.open_reports import decode_reports, from_device
from dovetail.report.document import IntervalEstimates, central_document, to_jsonable
from dovetail.table.reader import read_table
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.joint import Drawn
from dovetail_protocol.terminal_text import printable

# From tallies to estimates, by the package's own estimators: everybody, per public group, per round, and windows.


SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the quantiles that are listed
EVERYBODY = ""


def tally_of(noise: Noise, form: CampaignRandomizer, counted: GroupTally, *, blanks: bool) -> Tally:
    """A tally as the noise takes it: reports have this `form`, and the last symbol is none where there are blanks."""
    if isinstance(form, NumericRandomizer):
        return noise.tally(expand_tally(counted))
    found = estimator_tally(form, counted)
    return Tally(found.counts[:-1], int(found.counts[:-1].sum())) if blanks else found


@dataclass(frozen=True)
class RoundEstimates:
    """Estimates of one round from its counted batches.

    Parameters
    ----------
    t : int
        The round; where several were merged, the last of them.
    rounds : tuple of int
        All rounds whose reports are in it.
    question, noise : what is asked, and what hides the answers
    form : the analyst's randomizer, whose reports are counted
    blanks : whether its last symbol says nothing
    tallies : tuple of GroupTally
        One for each public group.
    minimum : int
        Valid reports that an estimate must rest on: the campaign's, which the shuffler could not check for validity.
    people : People, optional
        Who they are, where others hide their answers or they are of several classes; else whoever sent a report.
    placed : dict
        Estimates of public groups that come from places in a released order, not from tallies; and valid reports.
    asked : dict, optional
        Valid reports of each public group, where a person draws her question: the tallies are of those who drew it.
    """

    t: int
    rounds: tuple[int, ...]
    question: Question
    noise: Noise
    form: CampaignRandomizer
    blanks: bool
    tallies: tuple[GroupTally, ...]
    minimum: int
    people: People | None = None
    placed: dict[str, tuple[Estimate, int]] = field(default_factory=dict)
    asked: Mapping[str, int] | None = None

    @property
    def n(self) -> int:
        """Valid reports of devices, to this question."""
        return sum(part.n for part in self.tallies) if self.people is None else self.people.n

    @property
    def valid(self) -> int:
        """Valid reports of devices, to whichever question."""
        return self.n if self.asked is None else sum(self.asked.values())

    @property
    def withheld(self) -> bool:
        """True if nothing is said, because too few reports are valid."""
        return self.valid < self.minimum

    @cached_property
    def by_group(self) -> dict[str, Estimate]:
        """Everybody's estimate under "", and one for each public group that may be told apart.

        Nothing of a batch that is withheld, and of public groups only those that `separable` names.
        """
        return {name: found for name, found in self._found.items() if isinstance(found, Estimate)}

    @property
    def refused(self) -> list[str]:
        """Why something is not told that these reports could be about, or nothing is known of it."""
        hidden = [self.beside["hidden"]] if "hidden" in self.beside else []
        return [*hidden, *(found for found in self._found.values() if isinstance(found, str))]

    @cached_property
    def _found(self) -> dict[str, Estimate | str]:
        if self.withheld or not self.valid:
            return {}
        everybody = add_tallies(self.tallies)
        if self.n < FEWEST and self.asked is not None:
            return {EVERYBODY: DREW_IT.format(n=self.valid, m=self.n)}
        if self.people is not None:
            return {EVERYBODY: self._learned(everybody, self.people)}
        parts = {name: part for name, part in tallies_by_group(self.tallies).items() if part.n}
        sizes = self.asked or {name: part.n for name, part in parts.items()}
        told = separable(sizes, minimum=self.minimum)
        enough = 1 if self.asked is None else FEWEST
        shown = {name: part for name, part in parts.items() if name in told and part.n >= enough}
        shown = {EVERYBODY: everybody} | shown
        counted = {name: self._learned(part, People(part.n), sizes.get(name)) for name, part in shown.items()}
        placed = separable({name: n for name, (_, n) in self.placed.items()}, minimum=self.minimum)
        return counted | {name: each for name, (each, _) in self.placed.items() if name in placed}

    def _learned(self, counted: GroupTally, people: People, of: int | None = None) -> Estimate | str:
        """The estimate of these people; where they have drawn the question, of so many or of all who were asked."""
        try:
            found = self.question.learned(self.noise, self._tally(counted), people)
        except (DataError, UnsupportedError) as error:
            return str(error)
        return found if self.asked is None else of_everybody(found, of or self.valid)

    @cached_property
    def curve(self) -> dict[str, Any] | Missing:
        """The curve behind everybody's numbers."""
        if EVERYBODY not in self.by_group:
            return Missing("nothing is told of these reports")
        people = self.people or People(self.n)
        return self.question.curve(self.noise, self._tally(add_tallies(self.tallies)), people)

    @property
    def next_settings(self) -> dict[str, Any]:
        """Settings of the question in a campaign that asks on from here; none where it is asked once."""
        everybody = self.by_group.get(EVERYBODY)
        if everybody is None:
            return {}
        low, high = map(np.atleast_1d, everybody.interval(LEVEL))
        found = self.question.after(low, high, self.n, None)  # the next campaign may have other people
        return {} if isinstance(found, Missing) else {name: value for name, value in found.items() if value != ""}

    @cached_property
    def beside(self) -> Mapping[str, Any]:
        """Further numbers of everybody together, beside the estimates."""
        everybody = self.by_group.get(EVERYBODY)
        return {} if everybody is None else self.question.beside(self.noise, everybody, None)

    def _tally(self, counted: GroupTally) -> Tally:
        return tally_of(self.noise, self.form, counted, blanks=self.blanks)

    @cached_property
    def numbers(self) -> NumericSummary | None:
        """More about a number than its mean; None for categories, without reports, and where they tell no more."""
        if not isinstance(self.form, NumericRandomizer) or self.withheld or not self.form.memoryless:
            return None
        if self.asked is not None:  # they would be of those alone who drew the question
            return None
        return NumericSummary.of(self.form, add_tallies(self.tallies))


DREW_IT = "{m:,} of {n:,} people drew this question: too few to estimate anything"


def separable(sizes: Mapping[str, int], *, minimum: int) -> set[str]:
    """The groups (valid reports by name) of which an estimate may stand beside everybody's.

    Each has `minimum` reports, and so have those that are left out, taken together, or there are none of them: they
    are everybody's less the others', which anybody can compute.

    >>> sorted(separable({"a": 40, "b": 30, "c": 3}, minimum=10))
    ['a']
    >>> sorted(separable({"a": 40, "b": 30, "c": 7, "d": 5}, minimum=10))
    ['a', 'b']
    """
    told = sorted((name for name, n in sizes.items() if n >= minimum), key=lambda name: (sizes[name], name))
    rest = sum(n for n in sizes.values() if n < minimum)
    return set(told[1:] if 0 < rest < minimum else told)


@dataclass(frozen=True)
class NumericSummary:
    """Median, quantiles, and which estimate of the mean promises the smaller error."""

    median: Estimate
    best: BestMean
    quantiles: tuple[tuple[float, QuantileEstimate], ...]  # (share, quantile); empty where the grid is too fine

    @classmethod
    def of(cls, randomizer: NumericRandomizer, counted: GroupTally) -> NumericSummary:
        """From the tally of everybody."""
        reports = expand_tally(counted)
        shares = SHARES if ClampedGrid.of(randomizer).steps <= MOST_STEPS else ()
        quantiles = tuple((share, estimate_quantile(randomizer, reports, share=share)) for share in shares)
        return cls(estimate_median(randomizer, reports), best_mean(randomizer, reports), quantiles)


@dataclass(frozen=True)
class WindowEstimates:
    """Win(t, w): one mean of estimates for everybody and for each public group; rounds without one are named."""

    t: int
    width: int
    by_group: dict[str, TimeWindow]


def window_estimates(rounds: Sequence[RoundEstimates], t: int, *, width: int) -> WindowEstimates:
    """The mean of the estimates of rounds t - width + 1 .. t, as in RASE's Algorithm 3; DataError if there is none.

    Randomization of different rounds is independent given the values, so variances add. Rounds that were merged into
    a later one have no estimate of their own and are named as missing.
    """
    names = {name: None for each in rounds if t - width < each.t <= t for name in each.by_group}
    if not names:
        raise DataError(f"no round from {max(1, t - width + 1):,} to {t:,} has an estimate.")
    return WindowEstimates(t, width, {name: _window(rounds, name, t, width) for name in names})


def _window(rounds: Iterable[RoundEstimates], name: str, t: int, width: int) -> TimeWindow:
    kept = (FleetRound(each.t, each.by_group.get(name), absent=0, held_back=0, simulated=False) for each in rounds)
    return time_window(kept, t, width=width)


# Estimates per public group where reports are released at public roster slots, in an order-private order.


Labels = NDArray[np.int64]  # (n,)
ReportsBySlot = Iterable[tuple[int, bytes]]  # roster slot, and the valid report that lies there, empty for a bad one


@mute
@dataclass(frozen=True)
class RosterSlotEstimator:
    """Public facts about roster slots.

    Parameters
    ----------
    names : tuple of str
        Public groups: the labels in the column that the campaign's groups are made of.
    places : int array (slots,)
        The group of each slot.
    shuffler : Shuffler
        Of all slots; it is restricted to those that are present.
    """

    names: tuple[str, ...]
    places: Labels
    shuffler: Shuffler

    @classmethod
    def load(cls, campaign: Campaign, folder: Path) -> Self | None:
        """Of an order-private campaign, None for others; groups of points have no names, and no estimates."""
        rule, shuffler = campaign.shuffle, fit(campaign, folder)
        if shuffler is None:
            return None
        if "labels" not in rule.groups:
            return cls((), np.zeros(shuffler.n, dtype=np.int64), shuffler)
        column = read_table(str(folder / str(rule.public)))[rule.groups["labels"]].cast(pl.String)
        names = column.unique().sort()
        places = column.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
        return cls(tuple(names), places, shuffler)

    def estimates(
        self, campaign: Campaign, placed: ReportsBySlot, own: Callable[[bytes], bytes] = bytes
    ) -> dict[str, tuple[Estimate, int]]:
        """One estimate for each group that is present, and its valid reports; widened by what may have moved into it.

        A share 1 - M_aa of the reports at a group's places came from elsewhere; at worst all of them are valid, and
        every bad one was the group's own. Nothing is said where a group has bad reports only. Of a report counts its
        `own` answer, if it has one: who draws a question does not depend on where a report lies.
        """
        pairs = list(placed)
        slots = np.array([slot for slot, _ in pairs], dtype=np.int64)
        if not self.names or slots.max(initial=-1) >= self.places.size:
            return {}  # signed by a shuffler that has another table
        groups, here = np.unique(self.places[slots], return_inverse=True)
        labels = here[[bool(report) for _, report in pairs]]
        valid = np.bincount(labels, minlength=groups.size)
        answers = [own(report) for _, report in pairs]
        labels = here[[bool(answer) for answer in answers]]
        if not groups.size or not np.bincount(labels, minlength=groups.size).all():
            return {}
        encoded = np.frombuffer(b"".join(answers), dtype=np.uint8)
        reports, _ = decode_reports(campaign.mechanism, encoded.reshape(-1, campaign.mechanism.report_bytes))
        moved = (1.0 - np.diag(self._present(slots).mixing(here))) * np.bincount(here) / valid
        question = question_of(campaign)
        noise = noise_of_campaign(campaign, question)
        tally = noise.tallies(reports, labels, groups.size)
        mixing = _mixing(np.clip(moved, 0.0, 1.0))
        try:
            found = question.within(noise, tally, mixing, People(labels.size))
        except UnsupportedError:  # this order moves reports between groups in a way that cannot be undone
            return {}
        return {
            self.names[group]: (of_everybody(found.group(row), int(valid[row])), int(valid[row]))
            for row, group in enumerate(groups)
        }

    def mixed(self, placed: ReportsBySlot) -> tuple[int | None, float | None]:
        """Valid reports in the smallest set of slots that hide each other as in a uniform mix, and the groups' alpha.

        None for either where the order has none, or was signed by a shuffler that has another table.
        """
        pairs = list(placed)
        slots = np.array([slot for slot, _ in pairs], dtype=np.int64)
        valid = np.array([bool(report) for _, report in pairs], dtype=np.bool_)
        if slots.max(initial=-1) >= self.places.size or not valid.any():
            return None, None
        present = self._present(slots)
        blocks = present.exchangeable_blocks()
        block = None if blocks is None else int(np.unique(blocks[valid], return_counts=True)[1].min())
        if block == 1 and present.uniform_blocks() is None:
            block = None  # an order in which somebody cannot be exchanged
        return block, present.facts().get("own_alpha")

    def _present(self, slots: Labels) -> Shuffler:
        """The shuffler of the slots that have sent something, as the release used it."""
        present = np.zeros(self.places.size, dtype=np.bool_)
        present[slots] = True
        return self.shuffler if present.all() else self.shuffler.restrict(present)


def _mixing(moved: NDArray[np.float64]) -> Mixing | None:
    """A mixing with these shares (g,) from elsewhere; None where nothing moves between groups."""
    if (moved < 1e-12).all():
        return None
    mixing = np.diag(1.0 - moved)
    mixing[np.arange(moved.size), np.roll(np.arange(moved.size), 1)] += moved
    return mixing


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
    issued : path, optional
        Folder of the issuer's signed counts, where devices show tokens.
    place : int, optional
        Which of several questions this is about, of a campaign that asks them together; None for all of it.
    lists : sequence of int
        How many answers each question has, where reports are combinations of answers.
    whole : Campaign, optional
        That campaign.
    """

    def __init__(
        self,
        campaign: Campaign,
        store: AnalyzerStore,
        slots: RosterSlotEstimator | None = None,
        issued: Path | None = None,
        place: int | None = None,
        lists: Sequence[int] = (),
        whole: Campaign | None = None,
    ) -> None:
        self.campaign, self._store, self._slots, self._issued = campaign, store, slots, issued
        self._place, self._lists, self._whole = place, tuple(lists), whole or campaign
        self._rounds: dict[str, RoundEstimates] = {}
        self._mixed: dict[str, tuple[int | None, float | None]] = {}
        self._followers: dict[str, int | None] = {}

    @cached_property
    def questions(self) -> tuple[CampaignAnswers, ...]:
        """The answers to each question by itself; these where there is one."""
        asked = self.campaign.questions
        if len(asked) == 1:
            return (self,)
        lists = [getattr(one.mechanism, "k", 0) for one in asked if one.combinations]
        return tuple(
            CampaignAnswers(one, self._store, self._slots, place=place, lists=lists, whole=self.campaign)
            for place, one in enumerate(asked)
        )

    @property
    def name(self) -> str:
        """Name of one of several questions: its first value."""
        asked = self.campaign.asked
        return asked.values[0].name if asked is not None else self.campaign.id

    def batches(self) -> list[BatchRecord]:
        """Counted batches, by the round that they closed with."""
        return sorted(self._store.batches(self.campaign.id), key=lambda batch: batch.rounds[-1])

    def rounds(self) -> list[RoundEstimates]:
        """Estimates by round, one for each batch; of several questions those of the first, on the same batch."""
        if self.questions != (self,):
            return self.questions[0].rounds()
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

    def round(self, t: int) -> RoundEstimates:
        """The round that ends with t, withheld or not."""
        return next(each for each in self.rounds() if each.t == t)

    def _each(self, tell: Callable[[CampaignAnswers], Document]) -> Document:
        """Document of several questions, one by one; warnings, which are about the reports, once."""
        told = [{"name": one.name, **tell(one)} for one in self.questions]
        return {"questions": told, "warnings": list(dict.fromkeys(w for one in told for w in one["warnings"]))}

    def window(self, t: int, *, width: int) -> Document:
        """Win(t, w) for everybody and for each public group; see `estimates.window`."""
        if self.questions != (self,):
            return {"t": t, "width": width, **self._each(lambda one: one.window(t, width=width))}
        if self.campaign.memoized and width > 1:
            raise Refusal(
                "not_found",
                f"{self.campaign.id} has one noise in all rounds: means over them say no more.",
            )
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
            "measure": self._question.measure,
            "groups": [
                {**self._shares(name, each.estimate), "missing": list(each.missing)}
                for name, each in answer.by_group.items()
            ],
            "warnings": self._warnings(t, width=width),
            **self._weighted(),
        }

    def guarantees(self) -> CampaignGuarantees:
        """Guarantee of all counted batches."""
        return campaign_guarantees(self.campaign, self.released_batches())

    def released_batches(self) -> list[ReleasedBatch]:
        """The batches in the numbers that guarantees depend on, in order of their rounds."""
        return [self._released(batch) for batch in self.batches()]

    def document(self, each: RoundEstimates, *, detail: bool = False) -> Document:
        """The estimates of one round; `detail` adds what is known about a number besides its mean.

        Of several questions each has a document of its own under `questions`, with its `name`.
        """
        if self.questions != (self,):
            told = self._each(lambda one: one.document(one.round(each.t), detail=detail))
            return {"round": each.t, "rounds": list(each.rounds), "n": each.valid, "withheld": each.withheld, **told}
        found = {
            "round": each.t,
            "rounds": list(each.rounds),
            "n": each.n,
            "withheld": each.withheld,  # then no group is listed
            "measure": each.question.measure,
            "level": LEVEL,
            "groups": [self._shares(name, estimate) for name, estimate in each.by_group.items()],
            "warnings": [*self._warnings(each.t), *each.refused],
            **to_jsonable(each.beside),
        }
        found |= self._weighted()
        if detail and each.numbers is not None:
            found |= _numeric_document(each.numbers)
        if detail and not isinstance(each.curve, Missing):
            found["curve"] = to_jsonable(each.curve)
        if detail and (then := each.next_settings):
            found["next"] = then
        return found

    def frequencies(self, t: int | None = None) -> Document:
        """Shares of the symbols in round t, or the latest; `projected` are the nearest that sum to 1."""
        if self.questions != (self,):
            raise Refusal("not_found", f"{self.campaign.id} asks several questions: see their estimates.")
        each = self.latest() if t is None else self.at(t)
        asked = each.question
        if not asked.learns_shares or asked.symbols > 1:
            number = asked.measure == "mean" and not asked.of_arrays
            what = "a number: it has means, not frequencies" if number else asked.label
            raise Refusal("not_found", f"{self.campaign.id} asks for {what}.")
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
            **({"memoized": True} if campaign.memoized else {}),
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
            "words": [line._asdict() for line in self.sentences(found)],
        }

    def sentences(self, found: CampaignGuarantees) -> list[GuaranteeSentence]:
        """The guarantee in words, and how many tokens were issued beside how many reports there are."""
        said = guarantee_sentences(self.campaign, found)
        return said if self.campaign.tokens is None else [*said, self._tokens()]

    def _tokens(self) -> GuaranteeSentence:
        reports = {batch.rounds[-1]: batch.count for batch in self.batches()}
        if self._issued is None:
            return token_sentence(self.campaign, reports, None)
        try:
            told = IssuedCounts.load(self._issued / f"{self.campaign.id}.json", self.campaign)
        except ConfigError:
            return token_sentence(self.campaign, reports, None, why="its signed counts are not there, or do not hold")
        return token_sentence(self.campaign, reports, told.counts)

    def requirement(self) -> Document:
        """The precision that the analyzer asks of devices: Algorithm 3's broadcast."""
        if self.campaign.precision is None:
            raise Refusal("not_found", f"{self.campaign.id} asks for no precision.")
        beta, rho = self.campaign.precision
        return {"campaign": self.campaign.id, "beta": beta, "rho": rho}

    @property
    def labels(self) -> list[str]:
        """Names of the components of an estimate."""
        return self._question.labels

    def notes(self, each: RoundEstimates) -> tuple[str, ...]:
        """The assumptions under which the numbers of a round mean what they say."""
        return self._question.notes(each.beside, n=each.n, mode=RELEASE)

    @cached_property
    def _question(self) -> Question:
        return question_of(self.campaign)

    @cached_property
    def _noise(self) -> Noise:
        return noise_of_campaign(self.campaign, self._question)

    def _estimates(self, batch: BatchRecord) -> RoundEstimates:
        if batch.id not in self._rounds:
            form: Any = from_device(self.campaign.mechanism)
            tallies, asked = tuple(self._store.tallies(self.campaign.id, batch.id)), None
            own: Callable[[bytes], bytes] = bytes
            people, noise = self._people(batch), self._noise
            if self._place is not None and people is not None and self._whole.draws:
                together: Any = self._whole.asked
                first, size = together.firsts[self._place], together.each[self._place].size
                tallies = tuple(united_tally(each, first, size) for each in tallies)
                noise = noise_of_campaign(self.campaign, self._question, senders=people.n)
                asked, people = {EVERYBODY: people.n}, self._of_those_who_drew(batch, people)
            elif self._lists:
                tallies = tuple(marginal_tally(each, self._lists, self._place or 0) for each in tallies)
            elif self._place is not None:
                together = self._whole.mechanism
                own = partial(together.own, place=self._place)
                if drawn := isinstance(together, Drawn):
                    asked = {name: each.n for name, each in tallies_by_group(tallies).items()}
                tallies = tuple(tally_of_question(each, self._place, drawn=drawn) for each in tallies)
            placed = dict[str, tuple[Estimate, int]]()
            if self._slots is not None:
                placed = self._slots.estimates(self.campaign, self._store.reports_by_slot(batch.id), own)
            self._rounds[batch.id] = RoundEstimates(
                batch.rounds[-1], batch.rounds, self._question, noise, form, self.campaign.open, tallies,
                self._whole.batch.minimum, people, placed, asked,
            )  # fmt: skip
        return self._rounds[batch.id]

    def _released(self, batch: BatchRecord) -> ReleasedBatch:
        if self._slots is not None and self._place is None and batch.id not in self._mixed:
            self._mixed[batch.id] = self._slots.mixed(self._store.reports_by_slot(batch.id))
        block, alpha = self._mixed.get(batch.id, (None, None))
        return ReleasedBatch(
            batch.rounds[-1], batch.count, batch.n, batch.smallest, block, alpha, self._most_followers(batch),
            batch.classes,
        )  # fmt: skip

    def _people(self, batch: BatchRecord) -> People | None:
        """The people behind a batch, where its reports do not say it by their number.

        A database that was rolled back has forgotten how many are of each class: then anybody may have been of any.
        """
        campaign, promise = self.campaign, self.campaign.promise
        if campaign.classes:
            sizes = batch.classes or (batch.count,) * len(campaign.classes)
            named = zip((each.name for each in campaign.classes), sizes, strict=True)
            n = sum(part.n for part in self._store.tallies(campaign.id, batch.id))
            return People(n, counted=dict(named))
        if promise.trust == "local":
            return None
        # as few as the unreadable entries can be of: a device that fails with all of its own is one person
        n = max(1, readable_people(campaign, batch.count, sum(batch.rejected.values()), each=campaign.entries))
        honest = n if promise.assumed_honest is None else promise.assumed_honest
        return People(n, honest=max(1, min(honest, n - promise.assumed_dishonest)))

    def _of_those_who_drew(self, batch: BatchRecord, people: People) -> People:
        """Those of these people who drew the question, as the shuffler has counted them.

        Who sent entries that cannot be read may have drawn any: they are taken to have drawn as all did.
        """
        drew = batch.classes[self._place or 0] if batch.classes else 0
        m = round(drew * people.n / max(1, batch.count))
        return People(m, honest=max(1, m - (people.n - people.trusted)), drawn=True)

    def _weighted(self) -> Document:
        """Say what shares mean where people have different epsilons; nothing elsewhere."""
        return {"weighted": WEIGHTED} if self.campaign.classes else {}

    def _sizes(self, sizes: tuple[int, ...]) -> Document:
        """Say how many people are of each class, or drew each question, by its name; nothing where there are none."""
        key = "drew" if self.campaign.draws else "classes"
        named = zip((each.name for each in self.campaign.classes or self.questions), sizes, strict=True)
        return {key: dict(named)} if sizes else {}

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
        sent = people_dummies(self._whole)
        if sent is None:
            return None
        if batch.id not in self._followers:
            tallies = self._store.tallies(self.campaign.id, batch.id)
            messages = sum(count_messages(sent, each.counts) for each in tallies)
            found = sent.most_followers(messages, batch.n, symbols=self._whole.symbols)
            self._followers[batch.id] = found if found < batch.n else None
        return self._followers[batch.id]

    def _warnings(self, last: int, *, width: int = 1) -> list[str]:
        """The warnings about so many rounds up to the last one."""
        rounds = range(last - width + 1, last + 1)
        batches = [self._released(batch) for batch in self.batches() if batch.rounds[-1] in rounds]
        return [said for said in map(doubt, batches) if said]

    def _shares(self, name: str, estimate: Estimate) -> Document:
        span = None if self._question.measure == "mean" else self._question.bounds
        shares: IntervalEstimates = shares_of(estimate, self.labels, None, span=span)
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


# Estimates as a table for other programs: one row for each round, group and component, as CSV or Parquet.


def schema() -> dict[str, Any]:
    """The columns of the table with their types."""
    number = pl.Float64
    return {
        "round": pl.Int64, "group": pl.String, "label": pl.String, "n": pl.Int64, "value": number,
        "standard_error": number, "population_error": number, "low": number, "high": number, "bias_bound": number,
    }  # fmt: skip


_FORMULA = re.compile(r"\s*[=+\-@\t\r\n＝＋－＠]")  # also in full width
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def table(answers: CampaignAnswers) -> pl.DataFrame:
    """All estimates of a campaign, by round; the interval has the level of the documents."""
    rows = [
        (each.t, shares.get("group"), named + label, shares["n"], *map(float, numbers), float(shares["bias_bound"]))
        for each in answers.rounds()
        for one in answers.questions
        for named in [f"{one.name}: " if len(answers.questions) > 1 else ""]
        for shares in one.document(one.round(each.t))["groups"]
        for label, numbers in _components(shares)
    ]
    return pl.DataFrame(rows, schema=schema(), orient="row")


def _components(shares: Document) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Label, value, both errors and both ends of each component of an estimate."""
    columns = (shares[name] for name in ("labels", "value", "standard_error", "population_error", "interval"))
    for label, value, error, population, (low, high) in zip(*columns, strict=True):
        yield label, (value, error, population, low, high)


def as_csv(frame: pl.DataFrame) -> bytes:
    """The table as CSV with a header line.

    A text that a spreadsheet would run as a formula gets an apostrophe in front, and characters that a terminal would
    obey are written out; numbers stay as they are, and so do texts that are plain numbers.
    """
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    return frame.with_columns(pl.col(texts).map_elements(_tame, return_dtype=pl.String)).write_csv().encode()


def _tame(text: str) -> str:
    shown = printable(text)
    runs = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{shown}" if runs else shown


def as_parquet(frame: pl.DataFrame) -> bytes:
    """The table as Parquet."""
    target = BytesIO()
    frame.write_parquet(target)
    return target.getvalue()
