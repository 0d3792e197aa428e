"""The audit: sees every message and every batch, holds every key, and says whether something was lost or doubled.

It exists in simulations and tests only: nobody in a real collection holds both keys.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256

from dovetail.collect.batch import Header, entry_bytes
from dovetail.collect.shuffler.batches import inner_of
from dovetail.collect.shuffler.link_key_store import LinkKeyStore
from dovetail.collect.store.interfaces import AnalyzerStore, SealedReport, ShufflerStore
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.exact_thresholds import as_written
from dovetail_protocol.keys import Opener, OpeningKey
from dovetail_protocol.messages import Envelope, open_envelope, read_head, split

_GONE = ("merged", "released", "delivered", "dropped")  # rounds that hold no reports


@dataclass(frozen=True)
class AuditResult:
    """Fate of all reports, counted. The last six must be 0, whatever happened; see `sound`.

    Parameters
    ----------
    drawn, acknowledged, stored : int
        Reports that were sent, that were acknowledged to their senders, and that the shuffler's store knows.
    batched, waiting, dropped : int
        Of the stored ones: those in a batch, those in a round that has none yet, and those that the campaign's rules
        left out, as the store counts them (rounds that were dropped, and reports of merged rounds that gave way).
        Where reports are in a batch by chance, also those that its header counts as sent and that are not in it.
    lost : int
        Acknowledged reports that the store does not know, and by how many the stored ones differ from those that are
        batched, waiting and dropped: exactly, in both directions.
    doubled : int
        Places in batches and waiting rounds beyond one for each report that was sent.
    second : int
        Reports beyond one for each device and round, or messages beyond one for each of them and each version of the
        campaign: a report drawn, or sealed, a second time.
    crowded : int
        Reports beyond one for each device and batch.
    changed : int
        Batches that were sent again with other bytes, or hold other numbers of reports, dummies and people of a class
        than they state.
    overspent : int
        Devices that have sent more reports than their budget pays for.
    """

    drawn: int
    acknowledged: int
    stored: int
    batched: int
    waiting: int
    dropped: int
    lost: int
    doubled: int
    second: int
    crowded: int
    changed: int
    overspent: int

    @property
    def sound(self) -> bool:
        """True if nothing was lost, and nothing sent or counted twice."""
        return not any((self.lost, self.doubled, self.second, self.crowded, self.changed, self.overspent))


@dataclass
class DeliveryAudit:
    """Everything that is sent and handed over; a report is known by its id, under whatever version it is sealed."""

    campaign: Campaign
    key: OpeningKey = field(repr=False)  # the shuffler's
    _versions: dict[bytes, tuple[Campaign, Opener]] = field(default_factory=dict, repr=False)  # by digest
    _envelopes: dict[bytes, Envelope] = field(default_factory=dict, repr=False)  # by message
    _people: dict[bytes, bytes] = field(default_factory=dict, repr=False)  # who sent a report, by its id
    _by_inner: dict[bytes, Envelope] = field(default_factory=dict, repr=False)
    _acknowledged: set[bytes] = field(default_factory=set, repr=False)  # report ids
    _batches: dict[str, tuple[Header, bytes]] = field(default_factory=dict, repr=False)  # with its body, by id
    _changed: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        self.follow(self.campaign, self.key)

    def follow(self, campaign: Campaign, key: OpeningKey) -> None:
        """Another version of the campaign, and the shuffler's key for it."""
        self._versions[campaign.digest] = (campaign, key.opener())

    # what it sees

    def record_sent(self, wire: bytes, person: bytes | None = None) -> None:
        """A message leaves a device; `person` says whose it is, where the key in it is for one round alone."""
        if wire not in self._envelopes:
            campaign, opener = self._versions[read_head(wire).digest]
            self._envelopes[wire] = envelope = open_envelope(campaign, wire, opener)
            self._people[envelope.report_id] = person or envelope.device.public
            self._by_inner |= dict.fromkeys(split(envelope.inner, campaign.entries), envelope)

    def record_acknowledged(self, wire: bytes) -> None:
        """Somebody is told that it has arrived."""
        self._acknowledged.add(self._envelopes[wire].report_id)

    def record_batch(self, head: bytes, body: bytes) -> None:
        """A batch leaves the shuffler, perhaps again."""
        campaign, _ = self._versions[bytes.fromhex(Header.peek(head).digest)]
        header = Header.read(head, campaign.shuffler_signing)
        if self._batches.setdefault(header.batch, (header, body)) != (header, body):
            self._changed.add(header.batch)

    # what it says

    @property
    def messages(self) -> list[bytes]:
        """Every message that was ever sent, in the order in which they were first."""
        return list(self._envelopes)

    def person(self, envelope: Envelope) -> bytes:
        """Who has sent a report: the key of the device, or what was said of it."""
        return self._people[envelope.report_id]

    def members(self) -> Iterator[tuple[Header, list[Envelope]]]:
        """Each batch that was handed over with the envelopes of its reports: who is in it.

        Where reports are in it by chance, nobody knows who was left out: then the latest acknowledged one that each
        person sent in its rounds, which is whom it is about unless a late report was taken into the next round.
        """
        for header, body in self._batches.values():
            if self._by_chance:
                sent = [one for one in self._envelopes.values() if one.report_id in self._acknowledged]
                own = sorted((one for one in sent if one.round in header.rounds), key=lambda one: one.round)
                yield header, list({self.person(one): one for one in own}.values())
                continue
            known = [self._by_inner[inner] for inner in self._entries(body) if inner in self._by_inner]
            yield header, list({envelope.report_id: envelope for envelope in known}.values())

    def count_miscounted(self, counted: AnalyzerStore) -> int:
        """Batches that the analyzer has not counted as they are: once, whole, and with every report valid."""
        known = {batch.id: batch for batch in counted.batches(self.campaign.id)}
        wrong = len(known.keys() - self._batches.keys())
        for id, batch in known.items():
            if id in self._batches:
                header, body = self._batches[id]
                entries, n = len(self._entries(body)), header.devices
                valid = sum(part.n for part in counted.tallies(self.campaign.id, id))
                found = (batch.count, batch.n, valid, batch.rounds, batch.rejected)
                wrong += found != (n, n, entries, header.rounds, {})
        return wrong

    def count_uncounted(self, counted: AnalyzerStore) -> int:
        """Batches that were handed over and are not counted, yet."""
        return len(self._batches.keys() - {batch.id for batch in counted.batches(self.campaign.id)})

    def verdict(self, store: ShufflerStore, link_keys: LinkKeyStore) -> AuditResult:
        """Count the fates of all reports so far, by what the shuffler has stored and handed over.

        Within the retention period: a store that has forgotten which reports came cannot be asked any more.
        """
        every = self._leaving(store) | {id: self._entries(body) for id, (_, body) in self._batches.items()}
        batches = {id: self._without_dummies(entries) for id, entries in every.items()}
        batched = self._places(inner for entries in batches.values() for inner in entries)
        waiting = self._places(self._waiting(store, link_keys))
        reports = {envelope.report_id: envelope for envelope in self._envelopes.values()}
        stored, dropped = self._stored_reports(store, reports), self._count_dropped(store)
        dropped += self._left_out(store, batches)
        places = batched + waiting
        accounted = len(places.keys() & stored) + dropped
        devices = [
            {self.person(self._by_inner[inner]) for inner in e if inner in self._by_inner} for e in batches.values()
        ]
        return AuditResult(
            drawn=len(reports),
            acknowledged=len(self._acknowledged),
            stored=len(stored),
            batched=len(batched),
            waiting=len(waiting),
            dropped=dropped,
            lost=len(self._acknowledged - stored) + abs(len(stored) - accounted),
            doubled=places.total() - len(places.keys() & reports.keys()),
            second=self._count_second(reports),
            crowded=sum(self._sent(e) - len(d) for e, d in zip(batches.values(), devices, strict=True)),
            changed=len(self._changed) + self._count_misstated(),
            overspent=self._count_overspent(reports.values()),
        )

    def _places(self, inners: Iterable[bytes]) -> Counter[bytes]:
        """At how many places each report is; one of two entries is at one of which `_count_misstated` sees both."""
        each = self.campaign.entries
        found = Counter(map(self._report, inners))
        return Counter({report: -(-count // each) for report, count in found.items()})

    def _report(self, inner: bytes) -> bytes:
        """The id of the report in an inner envelope, or the envelope itself if nobody has sent it."""
        return self._by_inner[inner].report_id if inner in self._by_inner else inner

    def _sent(self, entries: list[bytes]) -> int:
        """How many reports these entries of devices are of; where they are in a batch by chance, perhaps in part."""
        return len(set(map(self._report, entries))) if self._by_chance else len(entries) // self.campaign.entries

    def _without_dummies(self, entries: list[bytes]) -> list[bytes]:
        """The entries that devices have sent, where the campaign has dummies: others nobody has sent."""
        return [inner for inner in entries if inner in self._by_inner] if self.campaign.dummies else entries

    def _count_misstated(self) -> int:
        """Batches whose header states other numbers than there are."""
        wrong = 0
        for header, body in self._batches.values():
            entries, each = self._entries(body), self.campaign.entries
            of_devices = self._without_dummies(entries)
            wrong += header.count != len(entries)
            wrong += not self._by_chance and each * header.devices != len(of_devices)
            wrong += len(set(entries)) != len(entries)
            wrong += not self._by_chance and set(Counter(map(self._report, of_devices)).values()) > {each}
            wrong += not self._by_chance and header.classes not in (None, self._count_classes(of_devices))
        return wrong

    @property
    def _by_chance(self) -> bool:
        """True if reports are in a batch by chance."""
        return self.campaign.dummies is not None and self.campaign.dummies.by_chance is not None

    def _left_out(self, store: ShufflerStore, batches: Mapping[str, list[bytes]]) -> int:
        """Reports that are in none of these batches, without their dummies, as the coins of the shuffler fell."""
        if not self._by_chance:
            return 0
        devices = {batch.id: batch.count for batch in store.outgoing()}
        devices |= {id: header.devices for id, (header, _) in self._batches.items()}
        return sum(devices[id] - self._sent(entries) for id, entries in batches.items())

    def _count_classes(self, entries: list[bytes]) -> tuple[int, ...]:
        """How many of the reports with these entries are of each class, or answer each question."""
        reports = {self._report(inner): self._by_inner[inner].place for inner in entries if inner in self._by_inner}
        found = Counter(reports.values())
        return tuple(found[place] for place in range(self.campaign.kinds))

    def _count_overspent(self, reports: Iterable[Envelope]) -> int:
        """Devices that have paid more than their budget, in whatever classes."""
        prices = [as_written(self.campaign.of_class(at).charged) for at in range(max(1, self.campaign.kinds))]
        spent = defaultdict[bytes, Fraction](Fraction)
        for envelope in reports:
            person, price = self.person(envelope), prices[envelope.place]
            spent[person] = price if self.campaign.memoized else spent[person] + price
        return sum(nats > as_written(self.campaign.promise.device_budget) for nats in spent.values())

    def _count_second(self, reports: Mapping[bytes, Envelope]) -> int:
        drawn = {(self.person(envelope), envelope.round) for envelope in reports.values()}
        sealed = {
            (read_head(wire).digest, self.person(envelope), envelope.round)
            for wire, envelope in self._envelopes.items()
        }
        return max(len(reports) - len(drawn), len(self._envelopes) - len(sealed))

    def _entries(self, body: bytes) -> list[bytes]:
        """The inner envelopes of a batch."""
        size, skip = entry_bytes(self.campaign), 4 * self.campaign.order_private
        return [body[start + skip : start + size] for start in range(0, len(body), size)]

    def _leaving(self, store: ShufflerStore) -> dict[str, list[bytes]]:
        """The batches that are built and not counted yet."""
        ready = [batch.id for batch in store.outgoing() if batch.state == "waiting"]
        return {id: self._entries(b"".join(store.parts(id))) for id in ready}

    def _waiting(self, store: ShufflerStore, link_keys: LinkKeyStore) -> Iterator[bytes]:
        """The reports of rounds that have no batch yet."""
        id = self.campaign.id
        for round in store.rounds(id):
            key = None if round.state in _GONE else link_keys.key(id, round.number)
            if key is not None:
                tags = store.tags(id, [round.number])
                for sealed, (_, tag) in zip(store.fetch(id, tags), tags, strict=True):
                    yield from split(inner_of(self.campaign, key.open(sealed, tag)), self.campaign.entries)

    def _stored_reports(self, store: ShufflerStore, reports: Iterable[bytes]) -> set[bytes]:
        """The reports that the store knows: asked as retries that count nowhere, which change nothing."""
        ids = list(reports)
        asked = [SealedReport(self.campaign.id, 0, bytes(32), sha256(id).digest(), b"") for id in ids]
        return {id for id, outcome in zip(ids, store.accept(asked), strict=True) if outcome == "duplicate"}

    def _count_dropped(self, store: ShufflerStore) -> int:
        """Reports that the campaign's rules left out, by the store's own count; a merged round hands its count on."""
        rounds = [round for round in store.rounds(self.campaign.id) if round.state != "merged"]
        return sum(round.superseded + (round.count if round.state == "dropped" else 0) for round in rounds)
