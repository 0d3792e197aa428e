"""`dovetail collect new` and `check`: a campaign, written and told in plain words."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tomlkit
import typer

from dovetail.account.compose import Composition
from dovetail.account.gaussian_dummies import Message
from dovetail.cli.collect.keys import read_public, read_token_keys, write
from dovetail.cli.options import as_whole, chosen, given, settings_group
from dovetail.cli.output import Facts, Force, Json, Paste, print_json, show, write_whole
from dovetail.cli.progress import progress_bar
from dovetail.collect.campaign.explain import CampaignExplanation, explain
from dovetail.collect.campaign.guarantees import ClassGuarantee
from dovetail.collect.campaign.roster import open_roster
from dovetail.collect.campaign.terms import (
    asked_of,
    draft_campaign,
    question_about,
    require_device_form,
    shuffle_section,
)
from dovetail.core.checks import privacy_budget, whole
from dovetail.core.errors import ConfigError, DovetailError, ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import NOISES
from dovetail.core.question import QUESTIONS, Question
from dovetail.core.stages import RANDOMIZERS
from dovetail.job.build import build_noise, build_question, open_answer, short_answer
from dovetail.job.questions import parse_questions
from dovetail.job.together import CAMPAIGN, RELEASE, choices_of
from dovetail.randomize.sampling.open_reports import randomizer_kind
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail.report.document import to_jsonable
from dovetail.table.data_section import read_toml
from dovetail_protocol.asked import JOINT, ONE, Asked, AskedTogether
from dovetail_protocol.budget import affordable, cost, decimal_at_least
from dovetail_protocol.campaign import SIGNED, Campaign
from dovetail_protocol.dummies import Unrandomized, delta_of_each
from dovetail_protocol.endpoint import place_of
from dovetail_protocol.joint import Drawn, Joint, Several
from dovetail_protocol.keys import VerifyingKey
from dovetail_protocol.mechanism import Mechanism, mechanism
from dovetail_protocol.mechanism import names as device_names
from dovetail_protocol.messages import longest_request
from dovetail_protocol.ohttp import MOST_PAD

# The options of `dovetail collect new`: one dataclass for each section of a campaign file, which it makes.


Section = dict[str, Any]

if TYPE_CHECKING:
    AskSettings = Any
    DeviceSettings = Any
else:  # of an extension only where devices can run it: what would be refused is not offered
    DeviceSettings = settings_group("DeviceSettings", (randomizer_kind(name) for name in device_names()))
    AskSettings = settings_group("AskSettings", QUESTIONS)


@dataclass(frozen=True)
class KeyOptions:
    """Files of public keys."""

    owner: Annotated[Path, typer.Option(help="Public keys of the owner (owner.key.pub).")]
    shuffler: Annotated[Path, typer.Option(help="Public keys of the shuffler (shuffler.key.pub).")]
    analyzer: Annotated[Path, typer.Option(help="Public keys of the analyzer (analyzer.key.pub).")]

    def section(self) -> Section:
        """`[keys]`."""
        public = read_public(self.owner, "owner") | read_public(self.analyzer, "analyzer")
        public |= read_public(self.shuffler, "shuffler")
        return {"suite": public["analyzer"].partition(":")[0], **public}


@dataclass(frozen=True)
class QuestionOptions:
    """Name and question; on a terminal, what is missing is asked for."""

    id: Annotated[str | None, typer.Option(help="Name of the campaign: letters, digits, - and _.")] = None
    question: Annotated[str | None, typer.Option(help="What people are asked, in one sentence.")] = None

    def section(self) -> Section:
        """The keys above all sections."""
        id = _prompt("id", self.id, "Name of the campaign")
        return {
            "schema_version": 1,
            "id": id,
            "version": 1,
            "question": _prompt("question", self.question, "What is asked"),
        }


NO_ANSWER = "no answer"
POINTS = 33  # of the grid to which a number is rounded where others make the noise


@dataclass(frozen=True)
class AskOptions:
    """Options of questions that learn more than shares of answers or the mean of a number."""

    ask: Annotated[
        str | None, typer.Option(help=f"What is learned: {', '.join(QUESTIONS.names())}; with the settings of a run.")
    ] = None
    private: Annotated[str, typer.Option(help="With --ask: name of the first value that a device takes.")] = "answer"
    missing: Annotated[
        str | None, typer.Option(help="With --ask nonresponse: what no answer is called. Default: no answer.")
    ] = None

    def made(
        self, settings: Any, randomizer: RandomizerOptions, *, trust: str, digits: int
    ) -> tuple[Question, Asked] | None:
        """The question, and `[asks]`; None without --ask."""
        own = chosen(settings)
        if self.ask is None:
            if own or digits:
                raise ParameterError(f"--{next(iter(own), 'digits').replace('_', '-')} goes with --ask.")
            return None
        names = split_names(randomizer.categories)
        column: dict[str, Any] = (
            {"categories": list(names)} if names else {"lower": randomizer.lower, "upper": randomizer.upper}
        )
        if QUESTIONS[self.ask].takes_gaps:
            column["missing"] = self.missing or NO_ANSWER
        elif self.missing is not None:
            raise ParameterError("--missing goes with --ask nonresponse.")
        needed = [one.name for one in QUESTIONS[self.ask].settings() if one.required and one.name not in own]
        if needed:
            raise ParameterError(f"--ask {self.ask} needs --{' and --'.join(needed).replace('_', '-')}.")
        question = question_about(self.ask, {"private": self.private, **given(column)}, own, name="--ask")
        k = question.domain.get("k")
        if digits and randomizer.grid is not None:
            raise ParameterError("--grid does not go with --digits: they are of a power of three of points.")
        if question.needs == "mean" and trust != "local":
            low, high = question.span or (0.0, 0.0)
            k = POINTS if randomizer.grid is None else round((high - low) / randomizer.grid) + 1
        return question, asked_of(question, private=self.private, settings=own, k=k, digits=digits)


@dataclass(frozen=True)
class SeveralOptions:
    """Several questions that each person answers in one message, or of which each device draws one."""

    questions: Annotated[
        Path | None,
        typer.Option(
            help='Instead of --ask: a file with [[questions]] as of dovetail run. ask = "joint": all are answered in '
            "one message, each with its share of the epsilon, or with --dummies or --trust users as they are; ask = "
            '"one": each device draws one, with the largest epsilon, or among dummies of the answers to all.'
        ),
    ] = None

    def made(self, *others: object, promise: Section, digits: int) -> tuple[AskedTogether, Several | None] | None:
        """What is asked, and the mechanism; None without --questions, which leaves nothing to other options.

        promise : [promise] of a run; without local noise there is no mechanism but that of symbols as they are.
        digits : ternary ones in which each number is sent, where it is.
        """
        if self.questions is None:
            return None
        if any(others):
            raise ParameterError(
                "--questions says what is asked, and how each answer is randomized: no --ask and --randomizer beside "
                "it, and no --epsilon but that of --trust users."
            )
        raw, name = read_toml(self.questions), str(self.questions)
        for key in raw:
            if key not in ("schema_version", "mode", "title", "ask", "data", "questions"):
                raise ConfigError(
                    f"{name}: `{key}` is not read for a campaign; say it with an option of this command."
                )
        if "questions" not in raw:
            raise ConfigError(f"{name}: [[questions]] are missing.")
        whole = {"schema_version": 1, "ask": JOINT, **raw, "mode": RELEASE, "promise": promise}
        found = parse_questions(whole, name=name)
        refusal = choices_of(found, engine=CAMPAIGN).refusal
        if refusal is not None:
            raise ConfigError(f"{name}: {refusal}.")
        each, parts = list[Asked](), list[Mechanism]()
        for one in found.questions:
            settings = one.settings
            question = build_question(settings, settings.data.categories)
            own = settings.question.settings_of(settings.question_kind) if settings.question.ask else {}
            if promise["trust"] != "local":
                short = found.head.ask == JOINT or settings.data.grid is not None
                answer: Any = short_answer(settings, question) if short else open_answer(question, points=POINTS)
                k = getattr(answer, "points", None) or answer.k
                each.append(asked_of(question, private=one.column, settings=own, k=k, digits=digits))
                continue
            randomizer = build_noise(settings, question, n=2).randomizer
            require_device_form(randomizer.name)
            each.append(asked_of(question, private=one.column, settings=own, k=question.domain.get("k")))
            parts.append(randomizer.device)
        if not parts and found.head.ask == ONE:
            return AskedTogether.united(tuple(each), found.weights), None
        if not parts:
            return AskedTogether.combined(tuple(each)), None
        if found.head.ask == ONE:
            return AskedTogether(tuple(each), ONE), Drawn(tuple(parts), found.weights)
        return AskedTogether(tuple(each)), Joint(tuple(parts))


@dataclass(frozen=True)
class RandomizerOptions:
    """The mechanism and its parameters."""

    randomizer: Annotated[
        str | None, typer.Option(help="Default krr with --categories or --k, laplace with --lower and --upper.")
    ] = None
    epsilon: Annotated[
        float, typer.Option(help="Local epsilon of one report, nats; with --trust users that of one batch.")
    ] = 1.0
    categories: Annotated[str | None, typer.Option(help="Possible answers, with commas between them.")] = None
    k: Annotated[float | None, typer.Option(help="Number of possible answers, where they have no names.")] = None
    lower: Annotated[float | None, typer.Option(help="For numbers: the smallest possible answer.")] = None
    upper: Annotated[float | None, typer.Option(help="For numbers: the largest possible answer.")] = None
    grid: Annotated[
        float | None, typer.Option(help="For numbers: width of a step; default 1/32 of the range for laplace.")
    ] = None

    classes: Annotated[
        str | None,
        typer.Option(
            help="People choose among public classes with epsilons of their own, such as careful=1,standard=4; they "
            "replace --epsilon."
        ),
    ] = None

    def by_class(self) -> dict[str, float]:
        """`[classes]`: epsilon by name."""
        parts = [] if self.classes is None else [part.partition("=") for part in self.classes.split(",")]
        try:
            found = {name.strip(): float(text) for name, _, text in parts}
        except ValueError:
            found = {}
        if len(found) < len(parts) or not all(0.0 < epsilon < inf for epsilon in found.values()):
            wanted = "different names with epsilons, such as careful=1,standard=4"
            raise ParameterError(f"`--classes` must be {wanted}, got {self.classes!r}.")
        return found

    @property
    def largest(self) -> float:
        """The epsilon that no report exceeds."""
        return max(self.by_class().values(), default=self.epsilon)

    def of_symbols(self, k: int, settings: Any, *, trust: str) -> Section:
        """`[randomizer]` of the symbols that [asks] makes; nothing is randomized where others make the noise."""
        if trust != "local":
            return {"name": Unrandomized.name, "k": k}
        made = mechanism(name := self.randomizer or "krr", k=k, epsilon=self.largest, **chosen(settings))
        return {"name": name, **made.stated()}

    def of_arrays(self, question: Question, settings: Any, *, trust: str) -> Section:
        """`[randomizer]` of arrays, with what the analyst's one works out where it is left out."""
        if trust != "local":
            why = NOISES[trust].unfit[question.needs]
            raise ParameterError(f"--trust {trust} does not go with {question.label}: {why}.")
        require_device_form(name := self.randomizer or "closest_direction")
        if name in RANDOMIZERS:
            raise ParameterError(f"--randomizer {name} does not go with {question.label}.")
        kind: Any = VECTOR_RANDOMIZERS[name]
        return {"name": name, **kind(**question.domain, epsilon=self.largest, **chosen(settings)).device.stated()}

    def section(self, settings: Any, *, open: bool) -> Section:
        """`[randomizer]`, with the settings that the mechanism declares; none where answers are sent as they are."""
        if open:
            return self._open()
        names, numeric = split_names(self.categories), self.lower is not None or self.upper is not None
        if not (names or self.k or numeric):
            raise ParameterError("what people can answer is missing: give --categories, --k, or --lower and --upper.")
        name = self.randomizer or ("laplace" if numeric else "krr")
        require_device_form(name)
        if randomizer_kind(name).question == "vector":
            raise ParameterError(f"--randomizer {name} goes with --ask vector.")
        if randomizer_kind(name).question == "mean":
            domain: Section = {"lower": self.lower, "upper": self.upper, "grid": self.grid}
        else:
            domain = {"k": len(names) if names else as_whole(self.k)}
        made = mechanism(name, **given(domain), epsilon=self.largest, **chosen(settings))
        return {"name": name, **made.stated(), **({"categories": names} if names else {})}

    def _open(self) -> Section:
        names = split_names(self.categories)
        if self.randomizer is not None or self.lower is not None or self.upper is not None or not (names or self.k):
            raise ParameterError(
                "answers of a list are sent as they are: give --categories or --k, and no --randomizer; "
                "for a number --ask number."
            )
        return {
            "name": Unrandomized.name,
            "k": len(names) if names else as_whole(self.k),
            **({"categories": names} if names else {}),
        }


@dataclass(frozen=True)
class GroupOptions:
    """Public groups."""

    groups: Annotated[str | None, typer.Option(help="Public groups that reports name, with commas.")] = None

    def section(self) -> Section:
        """`[groups]`."""
        return {"names": split_names(self.groups)} if self.groups else {}


@dataclass(frozen=True)
class RoundOptions:
    """When rounds begin and end."""

    count: Annotated[float, typer.Option(help="Number of rounds.")] = 24
    period: Annotated[float, typer.Option(help="Length of a round, seconds.")] = 3600.0
    start: Annotated[
        datetime | None, typer.Option(help="When the first round begins, UTC; default the next full minute.")
    ] = None
    grace: Annotated[float, typer.Option(help="For how long a round still takes its late reports, seconds.")] = 0.0
    manual: Annotated[bool, typer.Option("--manual", help="Rounds are closed by hand instead of by the clock.")] = (
        False
    )
    memoize: Annotated[
        bool,
        typer.Option(
            "--memoize",
            help="A device draws one report, pays for it once and sends it again in every round, for values that do "
            "not change.",
        ),
    ] = False

    def section(self) -> Section:
        """`[rounds]`."""
        schedule: Section = {"schedule": "manual"}
        if not self.manual:
            schedule = {"schedule": "period", "start": self._start(), "period_seconds": self.period}
        return {**schedule, "count": whole("--count", as_whole(self.count), least=1), "grace_seconds": self.grace}

    def _start(self) -> datetime:
        if self.start is None:
            return (datetime.now(UTC) + timedelta(minutes=1)).replace(second=0, microsecond=0)
        return self.start.replace(tzinfo=UTC) if self.start.tzinfo is None else self.start.astimezone(UTC)


@dataclass(frozen=True)
class BatchOptions:
    """When a batch leaves the shuffler."""

    minimum: Annotated[
        float,
        typer.Option(help="Reports of distinct devices that a batch, and valid ones that an estimate, must have."),
    ] = 1000
    small: Annotated[
        Literal["wait", "merge", "drop"], typer.Option(help="What happens to a round that has fewer.")
    ] = "wait"
    late: Annotated[Literal["refuse", "next"], typer.Option(help="What happens to reports after the end.")] = "refuse"
    close_at: Annotated[float | None, typer.Option(help="Close a round early, on so many reports.")] = None

    def section(self) -> Section:
        """`[batch]`."""
        minimum = whole("--minimum", as_whole(self.minimum), least=1)
        early = given({"close_at": as_whole(self.close_at)})
        return {"minimum": minimum, "small": self.small, "late": self.late, **early}


@dataclass(frozen=True)
class PromiseOptions:
    """Assumptions of the guarantee, and the budget of one device."""

    delta: Annotated[
        float | None, typer.Option(help="delta of the central guarantee; default 1e-6, or 0.01/minimum if smaller.")
    ] = None
    honest: Annotated[float | None, typer.Option(help="People assumed honest; default all.")] = None
    dishonest: Annotated[float, typer.Option(help="People assumed dishonest.")] = 0
    device_budget: Annotated[
        float | None, typer.Option(help="What a device spends at most, nats; default epsilon times the rounds.")
    ] = None
    dummies: Annotated[
        float | None,
        typer.Option(
            help="Trust the shuffler with the noise: it adds dummies, so that all rounds together keep this epsilon."
        ),
    ] = None
    sparse: Annotated[
        bool,
        typer.Option(
            "--sparse",
            help="With --dummies, for long lists: few dummies and no delta of a batch, but the shuffler keeps "
            "reports by chance, so that frequent answers are less exact; nothing is randomized.",
        ),
    ] = False
    digits: Annotated[
        bool,
        typer.Option(
            "--digits",
            help="With --dummies, of numbers of many people: a device sends each ternary digit by itself, and "
            "the mean is about as exact as behind central Gaussian noise.",
        ),
    ] = False
    trust: Annotated[
        Literal["local", "shuffler", "users"] | None,
        typer.Option(
            help="Whose noise hides people: their own, the shuffler's (--dummies), or dummies that other people send "
            "beside answers that are not randomized; default local, or shuffler with --dummies."
        ),
    ] = None
    open: Annotated[bool, typer.Option("--open", help="No roster: anybody may send; promises less.")] = False
    issuer: Annotated[
        str | None,
        typer.Option(help="Anonymous tokens instead of a roster: where devices ask for them, a URL (experimental)."),
    ] = None
    token_keys: Annotated[
        Path | None, typer.Option(help="With --issuer: the issuer's public keys, one a round (issuer-keys.pub).")
    ] = None

    issuer_key: Annotated[
        Path | None,
        typer.Option(help="With --issuer: its public key (issuer.key.pub), which signs how many tokens it gave."),
    ] = None

    def tokens_section(self) -> Section:
        """`[tokens]`."""
        if (self.issuer is None) != (self.token_keys is None) or (self.issuer is not None and self.open):
            raise ParameterError("--issuer and --token-keys go together, and not with --open.")
        if self.issuer is None or self.token_keys is None:
            return {}
        name = place_of("--issuer", self.issuer, ("http", "https")).hostname
        found: Section = {"issuer": str(name), "url": self.issuer, "keys": read_token_keys(self.token_keys)}
        if self.issuer_key is not None:
            found["signing"] = read_public(self.issuer_key, "issuer")["issuer"]
        return found

    def trusts(self) -> str:
        """Whose noise it is."""
        trust = self.trust or ("local" if self.dummies is None else "shuffler")
        if (trust == "shuffler") != (self.dummies is not None):
            raise ParameterError("--trust shuffler and --dummies go together: they say what all rounds keep.")
        kinds = [name for name, asked in (("--sparse", self.sparse), ("--digits", self.digits)) if asked]
        if kinds and trust != "shuffler":
            raise ParameterError(f"{kinds[0]} goes with --dummies: which dummies the shuffler adds.")
        if len(kinds) > 1:
            raise ParameterError("--sparse and --digits do not go together: they are different dummies.")
        return trust

    def of_run(self, epsilon: float) -> Section:
        """[promise] of a run with this noise; `epsilon` of a batch where people make it."""
        if (trust := self.trusts()) == "local":
            return {"trust": trust}
        made = {"trust": trust, "epsilon": epsilon if self.dummies is None else self.dummies}
        kind = "sparse" if self.sparse else "digits" if self.digits else None
        return made | given({"dummies": kind})

    def slack(self, minimum: int) -> float:
        """The delta of the promise."""
        return min(1e-6, 0.01 / minimum) if self.delta is None else self.delta

    def of_digits(self, *, rounds: int, minimum: int) -> Message | None:
        """The dummies of each digit, with --digits: as many as batches of the `minimum` need."""
        if not self.digits or self.dummies is None:
            return None
        from dovetail.plan.dummies import digit_dummies

        return digit_dummies(minimum, epsilon=self.dummies, delta=self.slack(minimum), rounds=rounds)

    def section(self, *, epsilon: float, rounds: int, minimum: int) -> Section:
        """`[promise]`; the defaults follow from `epsilon`, the number of `rounds` and the `minimum` of a batch."""
        trust, honest = self.trusts(), as_whole(self.honest)
        if trust == "users" and honest is None:
            honest = max(1, minimum - int(self.dishonest))
        every_round = decimal_at_least(cost(rounds, privacy_budget("--epsilon", epsilon)))
        return {
            "delta": self.slack(minimum),
            **given({"assumed_honest": honest}),
            "assumed_dishonest": as_whole(self.dishonest),
            "authentication": "token" if self.issuer else "none" if self.open else "roster",
            "device_budget": every_round if self.device_budget is None else self.device_budget,
            **({} if trust == "local" else {"trust": trust}),
        }

    def dummies_section(
        self,
        randomizer: Section,
        promise: Section,
        *,
        rounds: int,
        epsilon: float,
        symbols: int,
        digits: Message | None,
    ) -> Section:
        """`[dummies]`: of one batch, so that as many as a device takes part in keep the epsilon together.

        Of people: so that each batch keeps `epsilon`, and all of them their sum at the promise's delta.
        """
        if self.trusts() == "users":
            from dovetail.account.dummies import user_dummies_for

            batches = max(1, min(rounds, affordable(promise["device_budget"], epsilon)))
            delta = promise["delta"] / batches
            honest = promise["assumed_honest"]
            sent = user_dummies_for(k=randomizer["k"], epsilon=epsilon, delta=delta, honest=honest, symbols=symbols)
            return {"epsilon": epsilon, "delta": delta, "rate": sent.rate}
        if self.dummies is None:
            return {}
        open = randomizer["name"] == Unrandomized.name
        if randomizer["name"] != "krr" and not open:
            raise ParameterError(
                "--dummies go with the randomizer krr: give --categories or --k, or --ask number for a number."
            )
        from dovetail.account.dummies import dummies_epsilon, dummies_for_rounds, sparse_for_rounds
        from dovetail.shuffle.sampling.dummies import Dummies

        if digits is not None:
            one = dummies_epsilon(digits, promise["delta"]) * (1.0 + 1e-9)
            stated = {"epsilon": one, "delta": promise["delta"], "variance": str(digits.scale)}
            return {**stated, "reaches": list(digits.reaches)}
        if self.sparse:
            few = sparse_for_rounds(
                k=randomizer["k"], epsilon=self.dummies, delta=promise["delta"], rounds=rounds * symbols
            )
            return {"epsilon": few.epsilon, "kept": float(few.kept), "more": float(few.more)}
        most = rounds if open else min(rounds, affordable(promise["device_budget"], randomizer["epsilon"]))
        found = dummies_for_rounds(
            k=randomizer["k"], epsilon=self.dummies, delta=promise["delta"], rounds=max(1, most) * symbols
        )
        if isinstance(found, Dummies):
            return {"epsilon": found.epsilon, "delta": found.delta, "reach": found.reach}
        delta = delta_of_each(promise["delta"], symbols)
        one = dummies_epsilon(found.noise, delta) * (1.0 + 1e-9)
        stated = {"epsilon": one, "delta": delta, "reach": found.reach}
        return {**stated, "variance": str(found.noise.scale)}


@dataclass(frozen=True)
class EndpointOptions:
    """Where devices send."""

    http: Annotated[str | None, typer.Option(help="Where devices send over HTTP, a URL.")] = None
    mqtt: Annotated[str | None, typer.Option(help="Where devices send over MQTT, a URL.")] = None
    relay: Annotated[
        str | None,
        typer.Option(help="Where devices send, so that the shuffler sees no address: a relay's URL."),
    ] = None
    gateway: Annotated[
        Path | None, typer.Option(help="With --relay: public key of the shuffler's gateway (gateway.key.pub).")
    ] = None

    def section(self) -> Section:
        """`[endpoints]`."""
        return given({"http": self.http, "mqtt": self.mqtt})

    def ohttp_section(self) -> Section:
        """`[ohttp]`; `pad` is set when the rest of the file is known."""
        if (self.relay is None) != (self.gateway is None):
            raise ParameterError("--relay and --gateway go together: where devices send, and to whom they seal.")
        if self.relay is None or self.gateway is None:
            return {}
        return {"relay": self.relay, "keys": [read_public(self.gateway, "gateway")["gateway"]], "pad": MOST_PAD}


def split_names(text: str | None) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _prompt(option: str, found: str | None, question: str) -> str:
    if found is not None:
        return found
    if not sys.stdin.isatty():
        raise ParameterError(f"--{option} is missing ({question.lower()}).")
    return str(typer.prompt(question))


# `dovetail collect new`: write a campaign.


HEAD = (
    "A campaign: one file for all roles. Explain it with `dovetail collect check`, sign it with `sign`.",
    "Anybody who changes it later raises `version` and signs again; the id stays.",
)
COMMENTS = {
    "asks": "What is learned, of which values, and which symbols a device makes of them.",
    "randomizer": "How a device randomizes one answer; epsilon in nats.",
    "classes": "Who chooses which epsilon is public, and must not depend on the answer; reports do not say it.",
    "groups": "Public groups: a report names one of them in the clear for the analyzer.",
    "rounds": "Each device sends at most one report a round.",
    "memoize": "A device draws one report and sends it again in every round: values do not change.",
    "batch": "What leaves the shuffler: `minimum` signed reports at least; of fewer valid ones nothing is shown.",
    "shuffle": "Who sent which report is forgotten.",
    "dummies": "What the shuffler adds to each batch, of every answer; it and its secrecy are trusted.",
    "promise": "What the promise to people assumes, and what one device spends at most (nats).",
    "keys": "Public keys of the roles; secret ones never leave their machines.",
    "endpoints": "Where devices send.",
    "ohttp": "Devices send by this relay alone, sealed to the gateway; every request has `pad` bytes before sealing.",
    "tokens": "Who issues tokens, and where devices ask: one a person and round, by the key of that round.",
}
PAD = 64  # bytes: `pad` is a multiple

SPARSE = (
    "How likely a report is kept, and that an answer gets one dummy more; the shuffler and its secrecy are trusted."
)
OF_PEOPLE = {
    "randomizer": "Nothing is randomized: an answer is sent as it is, among dummies of other people.",
    "dummies": "The probability with which each device sends a dummy; epsilon and delta are of one batch.",
}


@dataclass(frozen=True)
class FileOptions:
    """Where the campaign goes."""

    out: Annotated[Path, typer.Option("--out", help="The campaign file to write.")] = Path("campaign.toml")
    force: Force = False
    as_json: Json = False


def _new(
    *,
    keys: KeyOptions,
    heading: QuestionOptions,
    randomizer: RandomizerOptions,
    settings: DeviceSettings,
    ask: AskOptions,
    ask_settings: AskSettings,
    several: SeveralOptions,
    groups: GroupOptions,
    rounds: RoundOptions,
    batch: BatchOptions,
    promise: PromiseOptions,
    endpoints: EndpointOptions,
    output: FileOptions,
) -> None:
    """Write a campaign with comments, to be read, changed by hand, explained with check and signed with sign.

    On a terminal it asks for what is needed and was not given. Order-private shuffles are added by hand: see
    docs/samples/collect/campaign.toml.

    Examples:
    dovetail collect new --id commute --question "How do you get to work?" --categories walk,bike,car
    --owner owner.key.pub --shuffler shuffler.key.pub --analyzer analyzer.key.pub --http http://127.0.0.1:8401
    """
    top, schedule, rule = heading.section(), rounds.section(), batch.section()
    trust = promise.trusts()
    digits = promise.of_digits(rounds=schedule["count"], minimum=rule["minimum"])
    together = several.made(
        ask != AskOptions(),
        chosen(ask_settings),
        replace(randomizer, epsilon=1.0 if trust == "users" else randomizer.epsilon) != RandomizerOptions(),
        chosen(settings),
        promise=promise.of_run(randomizer.epsilon),
        digits=0 if digits is None else len(digits.weights),
    )
    of_one = 0 if digits is None or together is not None else len(digits.weights)
    asks = ask.made(ask_settings, randomizer, trust=trust, digits=of_one)
    question: Question | None
    asked: Asked | AskedTogether | None
    question, asked = asks or (None, None)
    symbols, epsilon = 1 if question is None else question.symbols, randomizer.largest
    asked, taker = together or (asked, None)
    if taker is not None:
        mechanism, epsilon = {"name": taker.name, **taker.stated()}, taker.epsilon
    elif question is not None and question.of_arrays:
        mechanism = randomizer.of_arrays(question, settings, trust=trust)
    elif asked is None or not asked.symbols:
        mechanism = randomizer.section(settings, open=trust == "users" or promise.sparse)
    else:
        mechanism = randomizer.of_symbols(asked.size, settings, trust=trust)
    paid = 1 if rounds.memoize else schedule["count"]
    promised = promise.section(epsilon=epsilon, rounds=paid, minimum=rule["minimum"])
    dummies = promise.dummies_section(
        mechanism, promised, rounds=schedule["count"], epsilon=randomizer.epsilon, symbols=symbols, digits=digits
    )
    if trust == "shuffler" and mechanism["name"] == Unrandomized.name and promise.device_budget is None:
        promised["device_budget"] = decimal_at_least(cost(schedule["count"], symbols * dummies["epsilon"]))
    sections = {
        "asks": {} if asked is None else asked.stated(),
        "randomizer": mechanism,
        "classes": randomizer.by_class(),
        "groups": groups.section(),
        "rounds": schedule,
        "memoize": {"constant_values": True} if rounds.memoize else {},
        "batch": rule,
        "shuffle": {"shuffler": "uniform"},
        "dummies": dummies,
        "promise": promised,
        "keys": keys.section(),
        "endpoints": endpoints.section(),
        "ohttp": endpoints.ohttp_section(),
        "tokens": promise.tokens_section(),
    }
    comments = COMMENTS | (OF_PEOPLE if trust == "users" else {}) | ({"dummies": SPARSE} if promise.sparse else {})
    if mechanism["name"] == Unrandomized.name and trust == "shuffler":
        comments |= {"randomizer": "Nothing is randomized: an answer is sent as it is, among the shuffler's dummies."}
    body, made = _drafted(top, sections, comments)
    write_whole(output.out, lambda scratch: write(body, scratch), force=output.force)
    if output.as_json:
        print_json({"campaign": made.id, "file": str(output.out), "device_budget": made.promise.device_budget})
    else:
        typer.echo(
            f"{output.out}: explain it with `dovetail collect check`, then sign it with `dovetail collect sign`"
        )


def _drafted(top: Section, sections: dict[str, Section], comments: dict[str, str]) -> tuple[bytes, Campaign]:
    """The file and its campaign; `pad`, the length of every request, follows from the rest of the file."""
    made = draft_campaign(_annotate(top, sections, comments).encode())
    if made.ohttp is not None:
        sections["ohttp"]["pad"] = -(-longest_request(made) // PAD) * PAD
    body = _annotate(top, sections, comments).encode()
    return body, draft_campaign(body)


def _annotate(top: Section, sections: dict[str, Section], comments: dict[str, str]) -> str:
    """The file, with a comment above each section; empty sections are left out."""
    document = tomlkit.document()
    for line in HEAD:
        document.add(tomlkit.comment(line))
    for key, value in top.items():
        document.add(key, tomlkit.item(value))
    for name, section in sections.items():
        if section:
            document.add(tomlkit.nl())
            document.add(tomlkit.comment(comments[name]))
            document.add(name, tomlkit.item(section))
    return tomlkit.dumps(document)


# `dovetail collect check`: a campaign in plain words.


def _check(
    campaign: Annotated[Path, typer.Argument(help="The campaign file, signed or not yet.")],
    roster: Annotated[
        Path | None, typer.Option(help="The roster, to say what share of it in one hand breaks the promise.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Require the signature of this key, ed25519:...")] = None,
    as_json: Json = False,
) -> None:
    """Explain a campaign: what is asked, what it reveals at most, and who may read what. Status 2 if it is invalid.

    Examples:
    dovetail collect check campaign.toml;
    dovetail collect check campaign.toml --roster roster.csv --json
    """
    found, signed = read_campaign(campaign, owner)
    with progress_bar(hidden=as_json) as progress:
        progress("work out what the campaign promises", 0, 1)
        devices = None if roster is None else open_roster(roster)
        explained = explain(found, roster=devices, folder=campaign.parent)
    state = f"signed by {found.owner}" if signed else "not signed yet: no role takes it"
    facts = Facts(f"{campaign}: {state}", {line.name: line.words for line in explained.lines})
    warnings = (Paste(f"warning: {warning}.") for warning in explained.warnings)
    show(_document(explained, signed=signed), facts, *warnings, as_json=as_json)


def read_campaign(path: Path, owner: str | None) -> tuple[Campaign, bool]:
    """The campaign, and whether it is signed; a wrong signature is an error."""
    try:
        data = path.read_bytes()
        if owner is None and not data.rstrip().rpartition(b"\n")[2].startswith(SIGNED):
            return draft_campaign(data), False
        found = Campaign.parse(data, None if owner is None else VerifyingKey.parse("--owner", owner))
        shuffle_section(found)
        return found, True
    except OSError as error:
        if isinstance(error, DovetailError):
            raise
        raise ConfigError(f"{path}: no such campaign file.") from None
    except DovetailError as error:
        raise ConfigError(f"{path}: {error}") from None


def _document(found: CampaignExplanation, *, signed: bool) -> dict[str, Any]:
    campaign = found.campaign
    return {
        "campaign": campaign.id,
        "version": campaign.version,
        "digest": campaign.digest.hex(),
        "signed": signed,
        "owner": str(campaign.owner),
        "trust": campaign.promise.trust,
        "epsilon": to_jsonable(found.epsilon),
        "reports": found.reports,
        "all_epsilon": to_jsonable(found.all_epsilon),
        "central": _central(found.central),
        "together": _central(found.together),
        **({"by_class": [_class(each) for each in found.classes]} if found.classes else {}),
        "delta": campaign.promise.delta,
        "minimum": campaign.batch.minimum,
        "message_bytes": found.message_bytes,
        "words": {line.name: line.words for line in found.lines},
        "warnings": list(found.warnings),
    }


def _class(each: ClassGuarantee) -> dict[str, Any]:
    return {
        "class": each.name,
        "epsilon": each.local,
        "reports": each.most_reports,
        "all_epsilon": each.all_local,
        "central": _central(each.latest or Missing("no batch yet")),
        "together": _central(each.composed),
    }


def _central(found: CentralDP | Composition | Missing) -> Any:
    if isinstance(found, Missing) or found.epsilon is None:
        return {"value": None, "reason": getattr(found, "reason", "not stated")}
    return found.epsilon


VERBS = {"new": _new, "check": _check}
