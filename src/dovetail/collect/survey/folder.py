"""A survey is a folder: keys, a signed campaign for each question, configurations, and what `survey.toml` says."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Self

import tomlkit

from dovetail.collect.campaign.roster import Roster
from dovetail.collect.campaign.terms import asked_of
from dovetail.collect.files import load_campaign, make_round_keys, save_keys, save_secret
from dovetail.core.checks import nearest, positive, refuse, whole
from dovetail.core.display import upward
from dovetail.core.errors import ConfigError, OutputError
from dovetail.question.shares import Shares
from dovetail_protocol.asked import JOINT
from dovetail_protocol.budget import DEVICE_TOTAL, QUESTION_TOTAL, cost, decimal_at_least
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.endpoint import place_of
from dovetail_protocol.joint import MOST_PARTS, Drawn
from dovetail_protocol.keys import RoleKeys, SealingKey, SigningKey
from dovetail_protocol.mechanisms.krr import KRR
from dovetail_protocol.messages import longest_request
from dovetail_protocol.ohttp import MOST_PAD, GatewayKey

NAME = "survey.toml"
MOST_ANSWERS = 20  # of a question on one page
LANGUAGES = ("de", "en")

Access = Literal["open", "invitations", "tokens"]
Operators = Literal["one", "two"]


@dataclass(frozen=True)
class Places:
    """Where page, servers and issuer are reached; each listens on the port of its address."""

    page: str = "http://127.0.0.1:8400"
    shuffler: str = "http://127.0.0.1:8401"
    analyzer: str = "http://127.0.0.1:8402"
    issuer: str = "http://127.0.0.1:8404"  # of tokens
    relay: str | None = None  # of somebody else, where pages send instead, so that the shuffler sees no address

    def __post_init__(self) -> None:
        held = {name: place for name, place in vars(self).items() if place is not None}
        for name, place in held.items():
            place_of(name, place, ("http", "https"))
        if len(set(held.values())) < len(held):
            raise ConfigError(
                "page, shuffler, analyzer, issuer and relay need addresses of their own: who serves one must not "
                "serve another."
            )


@dataclass(frozen=True)
class NewSurvey:
    """The settings of a survey: what it asks, of whom and for how long.

    Parameters
    ----------
    questions : pairs of a question and its answers, 2 to 20 different texts each
    epsilon : float, nats, of each answer
    minimum : int, answers before anything is shown
    days : float, how long answers are taken
    access : "tokens" where an invitation buys a token for each question, so that the shuffler has no list of people
    analyzer : public key of another operator's analyzer; without one this operator runs everything
    together : whether the answers of a person are one report of one campaign, and not one for each question
    """

    title: str
    questions: tuple[tuple[str, tuple[str, ...]], ...]
    epsilon: float
    minimum: int
    days: float
    access: Access = "invitations"
    language: str = "en"
    places: Places = field(default_factory=Places)
    analyzer: SealingKey | None = None
    close_at: int | None = None
    together: bool = False

    def __post_init__(self) -> None:
        if not self.title.strip() or not self.questions:
            raise ConfigError("a survey needs a title and at least one question with its answers.")
        for question, answers in self.questions:
            if not question.strip() or not 2 <= len(set(answers)) == len(answers) <= MOST_ANSWERS or not all(answers):
                raise ConfigError(f"a question needs words, and 2 to {MOST_ANSWERS} different answers: {question!r}.")
        positive("epsilon", self.epsilon)
        positive("days", self.days)
        whole("minimum", self.minimum, least=2)
        if self.language not in LANGUAGES:
            wanted = f"one of {', '.join(LANGUAGES)}"
            raise refuse("language", wanted, self.language, hint=nearest(self.language, LANGUAGES))
        together = cost(len(self.questions), self.epsilon)
        if self.together and not 2 <= len(self.questions) <= MOST_PARTS:
            raise ConfigError(
                f"one report has the answers to 2 to {MOST_PARTS} questions, not {len(self.questions)}."
            )
        if (together if self.together else self.epsilon) > QUESTION_TOTAL or together > DEVICE_TOTAL:
            raise ConfigError(
                f"{len(self.questions)} answers of epsilon {self.epsilon:g} cost {upward(float(together))}: a device "
                f"gives at most {QUESTION_TOTAL:g} for one question or report and {DEVICE_TOTAL:g} in all."
            )

    def write(self, folder: Path, *, start: datetime) -> None:
        """Make the folder; an existing one is refused, because keys are not replaced."""
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise OutputError(f"{folder} exists; name a new folder.") from None
        except OSError as error:
            raise OutputError(f"{folder}: cannot be written ({error.strerror}).") from None
        owner, shuffler = RoleKeys.generate("owner"), RoleKeys.generate("shuffler")
        analyzer = None if self.analyzer else RoleKeys.generate("analyzer")
        assert owner.signing and shuffler.opening and shuffler.signing
        opening = analyzer.opening.sealing_key() if analyzer and analyzer.opening else self.analyzer
        keys = {
            "owner": str(owner.signing.verifying_key()),
            "analyzer": str(opening),
            "shuffler": str(shuffler.opening.sealing_key()),
            "shuffler_signing": str(shuffler.signing.verifying_key()),
        }
        for held in (owner, shuffler, *([analyzer] if analyzer else [])):
            save_keys(held, folder / f"{held.role}.key")
        terms = self._terms()
        names = [f"question-{number}.toml" for number in range(1, len(terms) + 1)]
        tokens, route = self._tokens(folder, len(terms)), self._route(folder)
        for number, (name, asked) in enumerate(zip(names, terms, strict=True)):
            document = self._campaign(f"question-{number + 1}", asked, keys, start) | tokens[number] | route
            (folder / name).write_bytes(_signed(document, owner.signing))
        token = secrets.token_urlsafe()
        save_secret(token + "\n", folder / "token")
        (folder / "tokens").write_text(f"{sha256(token.encode()).hexdigest()} owner\n")
        if self.access == "invitations":
            Roster([]).save(folder / "roster.csv")
        shared = {"schema_version": 1, "campaigns": names, "owner": keys["owner"]}
        documents = {"shuffler": self._shuffler(), "analyzer": self._analyzer()}
        if self.access == "tokens":
            documents["issuer"] = self._issuer()
        for role, document in documents.items():
            (folder / f"{role}.toml").write_text(tomlkit.dumps(shared | document))
        (folder / NAME).write_text(tomlkit.dumps(self._survey(names, one=analyzer is not None)))

    def _terms(self) -> list[dict[str, Any]]:
        """What each campaign asks, and how answers are randomized."""
        parts = [{"name": KRR.name, "k": len(answers), "epsilon": self.epsilon} for _, answers in self.questions]
        if not self.together:
            return [
                {"question": question, "randomizer": {**part, "categories": list(answers)}}
                for (question, answers), part in zip(self.questions, parts, strict=True)
            ]
        each = [
            asked_of(Shares(answers), private=question, settings={}, k=len(answers)).stated()
            for question, answers in self.questions
        ]
        randomizer = {"name": JOINT, "parts": parts}
        return [{"question": self.title, "asks": {"question": JOINT, "each": each}, "randomizer": randomizer}]

    def _tokens(self, folder: Path, campaigns: int) -> list[dict[str, Any]]:
        """`[tokens]` of each campaign, if there is one: the issuer's keys are made, one for each campaign."""
        if self.access != "tokens":
            return [{} for _ in range(campaigns)]
        made = RoleKeys.generate("issuer")
        assert made.signing
        save_keys(made, folder / "issuer.key")
        name = str(place_of("issuer", self.places.issuer, ("http", "https")).hostname)
        named = {"issuer": name, "url": self.places.issuer, "signing": str(made.signing.verifying_key())}
        keys = make_round_keys(folder / "issuer-keys", campaigns)
        return [{"tokens": {**named, "keys": [str(key)]}} for key in keys]

    def _route(self, folder: Path) -> dict[str, Any]:
        """Where pages send: to the shuffler, or by the relay to its gateway, whose key is made."""
        if self.places.relay is None:
            return {"endpoints": {"http": self.places.shuffler}}
        gateway = RoleKeys.generate("gateway")
        assert gateway.opening
        save_keys(gateway, folder / "gateway.key")
        return {"ohttp": {"relay": self.places.relay, "keys": [str(GatewayKey.of(gateway.opening))], "pad": MOST_PAD}}

    def _campaign(self, id: str, terms: dict[str, Any], keys: dict[str, str], start: datetime) -> dict[str, Any]:
        batch = {"minimum": self.minimum} | ({} if self.close_at is None else {"close_at": self.close_at})
        period = timedelta(days=self.days).total_seconds()
        return {
            "schema_version": 1,
            "id": f"{id}-{secrets.token_hex(4)}",
            **terms,
            "rounds": {"schedule": "period", "start": start, "period_seconds": period, "count": 1},
            "batch": batch,
            "shuffle": {"shuffler": "uniform"},
            "promise": {
                "delta": 1e-6,
                "device_budget": decimal_at_least(cost(len(self.questions) if self.together else 1, self.epsilon)),
                "authentication": {"open": "none", "tokens": "token"}.get(self.access, "roster"),
                **({} if self.analyzer else {"assumed_honest": 1}),  # who runs both servers sees through the shuffle
            },
            "keys": keys,
        }

    def _shuffler(self) -> dict[str, Any]:
        places = {"listen": listen(self.places.shuffler), "analyzer": self.places.analyzer}
        files: dict[str, Any] = {"keys": "shuffler.key", "vault": "vault"}
        files |= {} if self.places.relay is None else {"gateway": ["gateway.key"]}
        return files | places | ({"roster": "roster.csv"} if self.access == "invitations" else {})

    def _issuer(self) -> dict[str, Any]:
        files = {"keys": "issuer.key", "round_keys": "issuer-keys", "invitations": "."}
        return files | {"listen": listen(self.places.issuer)}

    def _analyzer(self) -> dict[str, Any]:
        return {
            "keys": "analyzer.key",
            "tokens": "tokens",
            "public_page": True,
            "listen": listen(self.places.analyzer),
        }

    def _survey(self, names: Sequence[str], *, one: bool) -> dict[str, Any]:
        return {
            "schema_version": 1,
            "title": self.title,
            "language": self.language,
            "access": self.access,
            "operators": "one" if one else "two",
            "page": self.places.page,
            "analyzer": self.places.analyzer,
            "campaigns": list(names),
        }


@dataclass(frozen=True)
class Survey:
    """A survey as its folder says it; campaigns are verified."""

    folder: Path
    title: str
    language: str
    access: Access
    operators: Operators
    page: str
    analyzer: str
    campaigns: tuple[Campaign, ...]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The survey of a folder."""
        path = folder / NAME
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"{path}: no such file; `dovetail survey new` makes the folder.") from None
        except (OSError, ValueError):
            raise ConfigError(f"{path} cannot be read as TOML.") from None
        try:
            texts = {
                name: str(found[name]) for name in ("title", "language", "access", "operators", "page", "analyzer")
            }
            names = [str(name) for name in found["campaigns"]]
        except (KeyError, TypeError):
            raise ConfigError(
                f"{path} must have title, language, access, operators, page, analyzer and campaigns."
            ) from None
        for name, known in (
            ("language", LANGUAGES),
            ("access", ("open", "invitations", "tokens")),
            ("operators", ("one", "two")),
        ):
            if texts[name] not in known:
                raise ConfigError(f"{path}: `{name}` must be one of {', '.join(known)}, got {texts[name]!r}.")
        campaigns = tuple(load_campaign(folder / name) for name in names)
        for each in campaigns:
            sent = "http" in each.endpoints or each.ohttp is not None
            if isinstance(each.mechanism, Drawn) or each.draws:
                raise ConfigError(f"{path}: a page sends all answers of a person; {each.id} draws one of them.")
            if not sent or not all(one.mechanism.name == KRR.name and answers_of(one) for one in each.questions):
                raise ConfigError(
                    f"{path}: a page asks questions with named answers, by krr and over http; {each.id} does not."
                )
            if (each.tokens is not None) != (texts["access"] == "tokens"):
                raise ConfigError(
                    f'{path}: `access` is "tokens" where the campaigns have [tokens], and nowhere else.'
                )
        return cls(folder, campaigns=campaigns, **texts)  # type: ignore[arg-type]


def answers_of(question: Campaign) -> tuple[str, ...]:
    """The named answers to the one question of a campaign; none where it has others."""
    if question.asked is None:
        return question.categories
    values = question.asked.values
    return values[0].categories if len(values) == 1 else ()


def sent_to(campaign: Campaign) -> str:
    """Where a page sends: the relay of the campaign, if there is one, and the shuffler otherwise."""
    return campaign.endpoints["http"] if campaign.ohttp is None else campaign.ohttp.relay


def _signed(document: dict[str, Any], owner: SigningKey) -> bytes:
    """The campaign file; by a relay every request is as long as the longest, and at most 63 bytes longer."""
    signed = sign(tomlkit.dumps(document).encode(), owner)
    if "ohttp" not in document:
        return signed
    longest = longest_request(Campaign.parse(signed))
    padded = document["ohttp"] | {"pad": -(-longest // 64) * 64}
    return sign(tomlkit.dumps(document | {"ohttp": padded}).encode(), owner)


def listen(url: str) -> str:
    """Where a server of this address listens on its own machine: behind a proxy on its port of the loopback."""
    place = place_of("url", url, ("http", "https"))
    port = place.port or (443 if place.scheme == "https" else 80)
    return f"127.0.0.1:{port}"
