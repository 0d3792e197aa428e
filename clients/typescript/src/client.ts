/** The device: takes a value, randomizes it once for a round, and sends that report until it has arrived. */

import { type Bytes, equal, raw, text } from "./bytes.js";
import { type AddOns, type Campaign, charged, descendsFrom, mechanismOf, parseCampaign, roundAt, roundEnds } from "./campaign.js";
import { privacyBudget, whole } from "./checks.js";
import { type Delivery, type DeliveryEvent, MOST_WAIT, advance, event } from "./delivery.js";
import { type DeliveryEffect, FINAL, LATER } from "./delivery_table.js";
import { DovetailError, config } from "./errors.js";
import { type Transport, httpTransport, obliviousTransport } from "./http.js";
import { type Signer, VerifyingKey, signerOf } from "./keys.js";
import { type Known, type Memory, type Report, type Store, charge, questionKey } from "./ledger.js";
import type { Report as Drawn } from "./mechanisms.js";
import { draw, drawn, sealMessage } from "./message.js";
import type { Pass, TokenReceipt } from "./tokens.js";
import { SystemEntropy, type Words } from "./words.js";

/** What became of the report of one round. */
export interface Receipt {
  readonly campaign: string;
  readonly round: number;
  /** "accepted" by the shuffler and nobody in between; "waiting", stored, and sent again by `flush`; "refused" for good. */
  readonly state: "accepted" | "waiting" | "refused";
  /** Kind of the last refusal, and what it means in words; empty if there was none. */
  readonly reason: string;
  readonly why: string;
  /** Seconds until `flush` sends it. */
  readonly wait: number;
  /** Whether this call drew the report; if not, one that was drawn before stands. */
  readonly drawn: boolean;
  /** What this call drew, for the person whose answer it is; it is kept nowhere once it has arrived. */
  readonly report?: readonly Drawn[];
}

export interface DeviceOptions extends AddOns {
  readonly store: Store;
  /** Default: the campaign's relay, or its `endpoints.http`. */
  readonly transport?: Transport;
  /** Seconds since 1970; default the platform's clock. */
  readonly now?: () => number;
  /** The device's own cap on the epsilon of one report, nats. */
  readonly maxEpsilon?: number;
  /** Public keys that may ask, and nobody else; naming an owner is consent. Default: those met before, or the first. */
  readonly owners?: readonly string[];
  /** What budgets are counted by; default the words of the campaign's question. */
  readonly question?: string;
  /** Whether consent to an owner is consent to whom that owner hands the campaign over. Default true. */
  readonly handOver?: boolean;
  /** Whose dummies alone may hide the answer, other people's or the shuffler's: then nothing is randomized. */
  readonly trust?: "users" | "shuffler";
  /** The class in which the device takes part; default the one it has joined, or else the one of the least epsilon. */
  readonly epsilonClass?: string;
}

/** Words, for tests alone: the published entry points never hand them on. */
export interface Drawing {
  readonly words: Words;
}

type Entry = Report & { readonly round: number };

/**
 * One person's device in one campaign.
 *
 * At most one report is ever drawn for a round: a second `submit`, also of another value, in another tab or after a
 * crash, sends the first report again or says what became of it. While a report waits, no other is drawn.
 */
export class Device {
  #campaign: Campaign;
  #place = 0;
  readonly #words: Words;
  readonly #now: () => number;
  readonly #transport: Transport;
  readonly #budget: number;

  private constructor(
    given: Campaign,
    private readonly options: DeviceOptions,
    readonly signer: Signer,
    drawing?: Drawing,
  ) {
    this.#campaign = given;
    this.#words = drawing?.words ?? new SystemEntropy();
    this.#now = options.now ?? (() => Date.now() / 1000);
    this.#budget = given.promise.deviceBudget;
    const url = given.endpoints.http;
    if (!options.transport && !url && !given.ohttp) throw config(`the campaign ${given.id} names no \`endpoints.http\`; give a transport.`);
    this.#transport = options.transport ?? (given.ohttp ? obliviousTransport(given.ohttp.relay) : httpTransport(url!));
  }

  static async open(signed: Bytes, options: DeviceOptions, drawing?: Drawing): Promise<Device> {
    const given = await parseCampaign(signed, undefined, options);
    const device = new Device(given, options, await signerOf(await options.store.key()), drawing);
    const place = await device.#classOf(given);
    const { epsilon } = mechanismOf(given, place);
    if (options.maxEpsilon !== undefined && epsilon > privacyBudget("maxEpsilon", options.maxEpsilon)) {
      throw config(`the campaign ${given.id} asks for reports of epsilon ${epsilon}, and this device gives at most ${options.maxEpsilon}.`);
    }
    const { trust } = given.promise;
    if (epsilon === Infinity && options.trust !== trust) {
      const whose = trust === "users" ? "other people" : "the shuffler";
      throw config(
        `the campaign ${given.id} promises nothing for a single report: answers are sent as they are, among dummies of ${whose}. Its user allows that with trust: "${trust}".`,
      );
    }
    const followed = await device.#adopt(given);
    if (followed.terms !== given.terms) {
      throw config(`version ${followed.version} of the campaign ${given.id} asks something else than version ${given.version}; use the file of the newer one.`);
    }
    device.#campaign = followed;
    device.#place = await device.#classOf(followed);
    device.#transport.trust(followed);
    return device;
  }

  /** The version of the campaign that the device follows now. */
  get campaign(): Campaign {
    return this.#campaign;
  }

  /** The public key by which a roster names this device. */
  get key(): string {
    return String(this.signer.key);
  }

  /** Draw the report of this value, or find the one that stands for the round, and send it once. */
  async submit(value: unknown, options: { readonly round?: number; readonly group?: string } = {}): Promise<Receipt> {
    return this.#alone(async () => {
      let campaign = await this.#current();
      const answer = this.#answer(value);
      const asks = await this.#asks();
      const number =
        options.round === undefined ? await this.#round(asks) : whole("round", options.round, 1, campaign.schedule.count);
      if (!(await this.#entries()).some((entry) => entry.round === number)) {
        if (options.round !== undefined) await this.#refuseOver(number, asks);
        await this.#sendEarlier(number);
        campaign = await this.#current(); // what was sent may have told of a newer version
        const refusal = (await this.#pass(number))?.refusal; // nothing is drawn that could never be sent
        if (refusal) throw new DovetailError("token", refusal);
      }
      const place = this.#place;
      let fresh: readonly Drawn[] | null = null;
      const round = await this.options.store.transact((memory) => {
        fresh = null;
        const known = memory.campaigns[campaign.id]!;
        const stands = standing(known.reports, number);
        if (stands !== null) return stands;
        join(known, campaign, place);
        const make = () => {
          const budget = Math.min(this.#budget, campaign.promise.deviceBudget);
          charge(memory, campaign, questionKey(this.options.question ?? campaign.question), budget, charged(campaign, place));
          const made = draw(campaign, place, answer, this.#words, options.group);
          fresh = drawn(campaign, made);
          return text(made);
        };
        const plaintext = campaign.memoized ? this.options.memoize!.draw(known, campaign.terms, make) : make();
        const id = text(this.#words.bytes(16));
        known.reports[number] = {
          state: "drawn", reason: "", form: campaign.terms, id, plaintext,
          digest: "", wire: "", attempts: 0, due: 0, counted: 0,
        };
        return number;
      });
      const receipt = await this.#deliver((await this.#entry(round))!);
      if (options.round === undefined && !asks && ["too_early", "late", "round"].includes(receipt.reason)) await this.#doubt(true);
      return fresh ? { ...receipt, drawn: true, report: fresh } : receipt;
    });
  }

  /** Send every waiting report that is due, the oldest round first, and say what became of all of them. */
  async flush(): Promise<Receipt[]> {
    return this.#alone(async () => {
      const found: Receipt[] = [];
      for (const entry of await this.#waiting()) found.push(await this.#deliver(entry));
      return found;
    });
  }

  /**
   * Ask for the tokens of the round that runs and of so many after it, and say what became of each.
   *
   * Best done long before a report, at a moment that has nothing to do with it: an issuer and a shuffler that compare
   * their clocks find who asked a minute before a report came.
   */
  async fetchTokens(ahead = 3): Promise<TokenReceipt[]> {
    return this.#alone(async () => {
      const { schedule } = await this.#current();
      const before = schedule.period !== null && this.#now() < schedule.start!;
      const now = before ? 1 : await this.#round(await this.#asks());
      const last = Math.min(now + whole("ahead", ahead, 0), schedule.count);
      const found: TokenReceipt[] = [];
      for (let round = now; round <= last; round++) found.push((await this.#pass(round))!.receipt);
      return found;
    });
  }

  /** What a report that has not arrived yet says, for the person whose device it is; null once it has: it is erased. */
  async pending(round: number): Promise<readonly Drawn[] | null> {
    const entry = await this.#entry(round);
    return entry?.plaintext ? drawn(this.#campaign, raw(entry.plaintext)!) : null;
  }

  // Which round, and which version

  async #refuseOver(round: number, asks: boolean): Promise<void> {
    const { id, schedule, batch } = this.#campaign;
    const over =
      schedule.period === null
        ? ((await this.#transport.round(id)) ?? 0) > round
        : !(asks || (batch.small === "wait" && batch.late === "refuse")) && this.#isOver(round);
    if (over) throw new DovetailError("round", `round ${round} of the campaign ${id} is over; nothing was drawn.`);
  }

  #isOver(round: number): boolean {
    const { schedule } = this.#campaign;
    return this.#now() >= roundEnds(schedule, round) + schedule.grace;
  }

  /** Reports of other rounds go first, until one of them does not arrive. */
  async #sendEarlier(round: number): Promise<void> {
    for (const entry of await this.#waiting()) {
      if (entry.round !== round && entry.reason !== "too_early" && (await this.#deliver(entry)).state === "waiting") return;
    }
  }

  /** The later round that a report counts for if it arrives now; 0 where it counts for its own. */
  async #countsFor(entry: Entry): Promise<number> {
    const { id, schedule, batch } = this.#campaign;
    if (batch.late !== "next") return 0;
    if (schedule.period !== null && !(await this.#known()).doubted) {
      return this.#isOver(entry.round) ? Math.min(roundAt(schedule, this.#now()), schedule.count) : 0;
    }
    const running = entry.attempts ? await this.#transport.round(id) : null; // it arrives late after waiting only
    return running !== null && running > entry.round ? running : 0;
  }

  /** Whether the shuffler, not the device's clock, says which round runs. */
  async #asks(): Promise<boolean> {
    return this.#campaign.schedule.period === null || (await this.#known()).doubted;
  }

  async #round(asks: boolean): Promise<number> {
    const { id, schedule } = this.#campaign;
    const byClock = schedule.period === null ? null : roundAt(schedule, this.#now());
    const number = asks ? await this.#transport.round(id) : byClock;
    if (number === null) {
      throw new DovetailError("round", `nobody says which round of the campaign ${id} runs; try again, or name the round.`);
    }
    if (number < 1 || number > schedule.count) throw new DovetailError("round", `no round of the campaign ${id} takes reports now.`);
    if (asks && number === byClock) await this.#doubt(false);
    return number;
  }

  async #current(): Promise<Campaign> {
    if (this.#expired()) await this.#follow();
    const { id, version } = this.#campaign;
    if ((await this.#known()).newest > version) {
      throw config(`a newer version of the campaign ${id} asks something else; give its file to take part.`);
    }
    if (this.#expired()) throw config(`the campaign ${id} has expired; ask its owner for a newer version.`);
    return this.#campaign;
  }

  #expired(): boolean {
    const { expires } = this.#campaign;
    return expires !== null && this.#now() >= expires;
  }

  /** Take over a newer version of the shuffler's if it asks the same, and else remember that there is one. */
  async #follow(): Promise<void> {
    const known = this.#campaign;
    const signed = await this.#transport.fetch(known.id);
    let fresh: Campaign;
    try {
      fresh = await parseCampaign(signed ?? new Uint8Array(0), known.owner, this.options);
    } catch (error) {
      if (error instanceof DovetailError) return; // not signed by the owner, so the owner has not said it
      throw error;
    }
    if (fresh.id !== known.id || fresh.version <= known.version) return;
    if (!fresh.owner.equals(known.owner) && this.options.handOver === false) return;
    if (fresh.terms === known.terms) {
      this.#campaign = await this.#adopt(fresh, []);
      this.#transport.trust(this.#campaign);
    } else {
      await this.#step((found) => void (found.newest = Math.max(found.newest, fresh.version)));
    }
  }

  /** Pin the owner, remember the newest version of the campaign, and return it. */
  async #adopt(campaign: Campaign, owners = this.options.owners ?? []): Promise<Campaign> {
    const named = owners.map((owner) => VerifyingKey.parse("owner", owner));
    const follows = this.options.handOver ?? true;
    for (;;) {
      // a stored file is parsed, which waits, before the step that waits for nothing
      const before = await this.options.store.transact((memory) => own(memory.campaigns, campaign.id)?.signed);
      const known = before === undefined ? null : await parseCampaign(raw(before)!, undefined, this.options);
      const adopted = await this.options.store.transact((memory) => {
        const found = own(memory.campaigns, campaign.id);
        if (found?.signed !== before) return null; // somebody else was first
        if (!found || !known) {
          consent(memory, campaign, named, follows);
          memory.campaigns = {
            ...memory.campaigns,
            [campaign.id]: {
              owner: String(campaign.owner), version: campaign.version, signed: text(campaign.signed),
              spent: "0/1", doubted: false, joined: "", newest: 0, reports: {},
            },
          };
          return campaign;
        }
        const pinned = VerifyingKey.parse("owner", found.owner);
        const former = descendsFrom(known, campaign.owner) && campaign.version < known.version;
        if (!(former || descendsFrom(campaign, pinned))) {
          throw config(`the campaign ${campaign.id} is pinned to its owner, and this file has another one.`);
        }
        if (!(former || follows || [pinned, ...named].some((owner) => owner.equals(campaign.owner)))) {
          throw config(`the campaign ${campaign.id} was handed over to ${campaign.owner}, and this device is told to follow no hand-over.`);
        }
        consent(memory, campaign, named, follows);
        if (known.version === campaign.version && !equal(known.digest, campaign.digest)) {
          throw config(`the campaign ${campaign.id} has two different files of version ${campaign.version}; ask its owner which one holds.`);
        }
        if (known.version >= campaign.version) return known;
        Object.assign(found, { owner: String(campaign.owner), version: campaign.version, signed: text(campaign.signed) });
        return campaign;
      });
      if (adopted) return adopted;
    }
  }

  async #classOf(campaign: Campaign): Promise<number> {
    const name = this.options.epsilonClass;
    if (!campaign.classes.length) {
      if (name !== undefined) throw config(`the campaign ${campaign.id} has no classes: leave the class out.`);
      return 0;
    }
    const joined = await this.options.store.transact((memory) => own(memory.campaigns, campaign.id)?.joined ?? "");
    return placeOf(campaign, joined, name);
  }

  // Delivery

  /** Run the machine until the report is settled or has to wait. */
  async #deliver(entry: Entry): Promise<Receipt> {
    const { period } = this.#campaign.schedule;
    const [longest, now] = [period === null ? Infinity : period / 2, this.#now()];
    if (settled(entry) || (now < entry.due && entry.due <= now + MOST_WAIT)) return this.#receipt(entry);
    let delivery: Delivery = { state: "waiting", attempts: entry.attempts, wait: 0, reason: "" };
    for (let next: DeliveryEvent | null = event("due"); next; ) {
      let effects: readonly DeliveryEffect[];
      [delivery, effects] = advance(delivery, next, this.#words, longest);
      next = null;
      for (const effect of effects) [entry, next] = await this.#perform(effect, entry, delivery);
    }
    return this.#receipt(entry);
  }

  /** Carry out one effect, and say what it led to. */
  async #perform(effect: DeliveryEffect, entry: Entry, { state, wait, attempts, reason }: Delivery): Promise<[Entry, DeliveryEvent | null]> {
    switch (effect) {
      case "send":
        if (!entry.wire && entry.form === this.#campaign.terms) {
          const missing = (await this.#pass(entry.round))?.missing;
          if (missing) return [entry, missing];
          entry = await this.#seal(entry);
        }
        if (!entry.wire) return [entry, event("outdated", "campaign")]; // drawn for a question that is asked no more
        return [entry, await this.#transport.send(raw(entry.wire)!)];
      case "fetch":
        return [entry, await this.#renew(entry, reason)];
      case "reseal":
        return [await this.#seal(entry), null];
      case "wait":
        return [await this.#update(entry, { reason, attempts, due: this.#now() + wait }), null];
      case "settle": {
        const accepted = state === "accepted";
        const counted = accepted ? await this.#countsFor(entry) : 0;
        return [await this.#settle(entry, accepted ? "" : reason, counted), null];
      }
    }
  }

  /** Whether the same report can be sealed again for some version of the campaign; else it waits. */
  async #renew(entry: Entry, why: string): Promise<DeliveryEvent> {
    if (entry.digest === text(this.#campaign.digest)) await this.#follow();
    if (entry.form !== this.#campaign.terms || (await this.#known()).newest > this.#campaign.version) return event("final", "changed");
    return entry.digest !== text(this.#campaign.digest) ? event("renewed") : event("later", why);
  }

  /** The report with its message for this version of the campaign: the one that is stored, whoever made it. */
  async #seal(entry: Entry): Promise<Entry> {
    const campaign = this.#campaign;
    const digest = text(campaign.digest);
    if (settled(entry) || entry.digest === digest) return entry;
    const place = await this.#classOf(campaign);
    const pass = await this.#pass(entry.round);
    if (pass && !pass.token) return entry; // another process has found it to be of other keys meanwhile
    const by = pass?.signer ?? this.signer;
    const wire = text(await sealMessage(campaign, entry.round, raw(entry.plaintext)!, by, raw(entry.id)!, place, undefined, pass?.token));
    return this.#change(entry, (report) => {
      if (report.digest !== digest) Object.assign(report, { state: "sealed", digest, wire });
    });
  }

  /** What shows that the device is entitled to a report of this round, as it stands after asking for it. */
  async #pass(round: number): Promise<Pass | null> {
    const campaign = this.#campaign;
    return campaign.tokens && this.options.tokens!.pass(campaign, round, this.options.store, this.signer);
  }

  async #update(entry: Entry, change: Partial<Report>): Promise<Entry> {
    return this.#change(entry, (report) => void Object.assign(report, change));
  }

  /** Accepted, or refused for good; what it said is erased. Acceptance outlives every refusal. */
  async #settle(entry: Entry, refused: string, counted: number): Promise<Entry> {
    const state = refused ? "refused" : "accepted";
    const done = { state, reason: refused, counted, form: "", id: "", plaintext: "", digest: "", wire: "" } as const;
    const settle = (report: Report, known: Known) => {
      Object.assign(report, done);
      this.options.tokens?.spend(known, entry.round);
    };
    return this.#change(entry, settle, state === "accepted");
  }

  async #change(entry: Entry, change: (report: Report, known: Known) => void, always = false): Promise<Entry> {
    return this.#step((known) => {
      const report = known.reports[entry.round]!;
      if (always || !settled(report)) change(report, known);
      return { ...report, round: entry.round };
    });
  }

  #receipt(entry: Entry): Receipt {
    const { round, reason, due } = entry;
    const why = FINAL[reason] ?? LATER[reason] ?? "";
    const base = { campaign: this.#campaign.id, round, reason, why, drawn: false };
    return settled(entry) ? { ...base, state: entry.state, wait: 0 } : { ...base, state: "waiting", wait: Math.max(0, due - this.#now()) };
  }

  // Memory

  #answer(value: unknown): unknown {
    const { asked, categories, mechanism } = this.#campaign;
    if (asked) return asked.check(value);
    if (typeof value !== "string") return mechanism.check(value);
    const place = categories.indexOf(value);
    if (place >= 0) return place;
    throw new DovetailError("data", categories.length ? `\`value\` must be one of ${categories.join(", ")}.` : "`value` must be a number.");
  }

  async #step<T>(change: (known: Known) => T): Promise<T> {
    return this.options.store.transact((memory) => change(memory.campaigns[this.#campaign.id]!));
  }

  async #known(): Promise<Known> {
    return this.#step((known) => known);
  }

  async #entries(): Promise<Entry[]> {
    const { reports } = await this.#known();
    return Object.entries(reports).map(([round, report]) => ({ ...report, round: Number(round) }));
  }

  async #entry(round: number): Promise<Entry | undefined> {
    return (await this.#entries()).find((entry) => entry.round === round);
  }

  async #waiting(): Promise<Entry[]> {
    return (await this.#entries()).filter((entry) => !settled(entry)).sort((one, other) => one.round - other.round);
  }

  async #doubt(wrong: boolean): Promise<void> {
    await this.#step((known) => void (known.doubted = wrong));
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    return this.options.store.alone ? this.options.store.alone(work) : work();
  }
}

function own<T>(table: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

function settled(report: Report): report is Report & { state: "accepted" | "refused" } {
  return report.state === "accepted" || report.state === "refused";
}

/**
 * The round whose report stands for this one: its own, one that counted for it, or one that waits: whatever keeps that
 * from arriving would keep the next one, too. One that came too early does not.
 */
function standing(reports: Readonly<Record<string, Report>>, round: number): number | null {
  if (Object.hasOwn(reports, round)) return round;
  const found = Object.entries(reports).filter(([, each]) => each.counted === round || (!settled(each) && each.reason !== "too_early"));
  const [first] = found.sort(([a, one], [b, other]) => Number(other.counted === round) - Number(one.counted === round) || Number(a) - Number(b));
  return first ? Number(first[0]) : null;
}

function placeOf(campaign: Campaign, joined: string, name: string | undefined): number {
  if (joined && name !== undefined && name !== joined) {
    throw config(`this device has joined the campaign ${campaign.id} in the class ${joined}, and a class is chosen once: not ${name}.`);
  }
  const wanted = joined || name;
  if (wanted === undefined) return 0;
  const place = campaign.classes.findIndex((each) => each.name === wanted);
  if (place < 0) throw config(`\`epsilonClass\` must be one of ${campaign.classes.map((each) => each.name).join(", ")}, got ${wanted}.`);
  return place;
}

/** Choose the class at this place, once. */
function join(known: Memory["campaigns"][string], campaign: Campaign, place: number): void {
  const chosen = campaign.classes[place]?.name;
  if (chosen === undefined) return;
  placeOf(campaign, known.joined, chosen);
  known.joined = chosen;
}

/** Remember the campaign's owner as one who is answered, or refuse an owner without consent. */
function consent(memory: Memory, campaign: Campaign, owners: readonly VerifyingKey[], follows: boolean): void {
  const known = owners.length ? owners : memory.owners.map((owner) => VerifyingKey.parse("owner", owner));
  const met = known.some((owner) => owner.equals(campaign.owner));
  if (known.length && !met && !(follows && known.some((owner) => descendsFrom(campaign, owner)))) {
    throw config(
      `this device has not consented to answer ${campaign.owner}, the owner of the campaign ${campaign.id}; its user consents by naming that key in \`owners\`.`,
    );
  }
  const owner = String(campaign.owner);
  if (!memory.owners.includes(owner)) memory.owners.push(owner);
}


