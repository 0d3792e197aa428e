/**
 * The campaign: what is asked, how it is randomized, when, and who may open what. One signed TOML file for all roles.
 *
 * The same files are taken as by `dovetail_protocol.campaign`, but for what this package leaves out, which is refused
 * by name: `budget_laplace` and the suite mlkem768-x25519. [asks], [tokens], [memoize] and dummies of the shuffler are
 * read by what `dovetail-device/asks`, `/tokens`, `/memoize` and `/dummies` hand in.
 */

import { parse as parseToml } from "smol-toml";
import type { Asked, Asks } from "./asks.js";
import { type Bytes, SPACE, ascii, equal, join, lastIndexOf, raw, text } from "./bytes.js";
import { privacyBudget, rate } from "./checks.js";
import type { AddedRule, Dummies } from "./dummies.js";
import { DovetailError, config, show, unsupported } from "./errors.js";
import { asWritten, floorDiv } from "./exact.js";
import { type GatewayKey, SealingKey, VerifyingKey, gatewayKey, sha256 } from "./keys.js";
import { type Mechanism, mechanism } from "./mechanisms.js";
import type { Memoize } from "./memoize.js";
import { Section } from "./section.js";
import type { TokenRule, Tokens } from "./tokens.js";

const MOST_BYTES = 1 << 20;
const MOST_ROUNDS = 2 ** 31;
const MOST_PAD = 2 ** 17;
const SIGNED = ascii("\n# signed: ");
const DOMAIN = ascii("dovetail campaign v1\0");
const HANDED = "# handed over: ";
const HAND_OVER = ascii("dovetail hand-over v1\0");
const NAME = /^[A-Za-z0-9_-]+$/;

export interface Schedule {
  /** Seconds since 1970, and seconds; null where rounds are opened by hand. */
  readonly start: number | null;
  readonly period: number | null;
  readonly count: number;
  readonly grace: number;
}

export interface EpsilonClass {
  readonly name: string;
  readonly epsilon: number;
}

export interface HandOver {
  readonly campaign: string;
  readonly before: VerifyingKey;
  readonly after: VerifyingKey;
}

export interface SentRule {
  readonly epsilon: number;
  readonly delta: number;
  readonly rate: number;
}

/** Relay that devices send to, keys of the gateway behind it, and the length of every request before sealing. */
export interface Route {
  readonly relay: string;
  /** The last one is used. */
  readonly keys: readonly GatewayKey[];
  /** Bytes. */
  readonly pad: number;
}

export interface Campaign {
  readonly id: string;
  readonly version: number;
  readonly question: string;
  readonly mechanism: Mechanism;
  readonly categories: readonly string[];
  readonly groups: readonly string[];
  readonly schedule: Schedule;
  readonly batch: { readonly minimum: number; readonly small: string; readonly late: string; readonly closeAt: number | null };
  readonly promise: {
    readonly delta: number;
    readonly assumedHonest: number | null;
    readonly assumedDishonest: number;
    readonly authentication: string;
    readonly deviceBudget: number;
    readonly trust: string;
  };
  /** Seconds since 1970. */
  readonly expires: number | null;
  readonly owner: VerifyingKey;
  readonly analyzer: SealingKey;
  readonly shuffler: SealingKey;
  readonly shufflerSigning: VerifyingKey;
  readonly endpoints: Readonly<Partial<Record<"http" | "mqtt", string>>>;
  /** Then devices send by a relay alone. */
  readonly ohttp: Route | null;
  /** Then a report shows a token of its round. */
  readonly tokens: TokenRule | null;
  /** What is asked of which values; null where the mechanism takes one value. */
  readonly asked: Asked | null;
  readonly handedOver: readonly HandOver[];
  /** Dummies that people send: then nothing is randomized. */
  readonly sent: SentRule | null;
  /** Dummies that the shuffler adds; where they alone hide an answer, nothing is randomized either. */
  readonly added: AddedRule | null;
  readonly classes: readonly EpsilonClass[];
  /** Whether a device draws one report, and sends it again in every later round. */
  readonly memoized: boolean;
  /** SHA-256 of the signed bytes. */
  readonly digest: Bytes;
  readonly signed: Bytes;
  /** What a report of it answers, how, and what was promised: only versions that agree on it share a drawn report. */
  readonly terms: string;
}

/** What reads the parts of a campaign that most campaigns lack. */
export interface AddOns {
  /** Where the campaign asks for tokens: `anonymousTokens()` of `dovetail-device/tokens`. */
  readonly tokens?: Tokens | undefined;
  /** Where the campaign has [asks]: `asks` of `dovetail-device/asks`. */
  readonly asks?: Asks | undefined;
  /** Where the shuffler is trusted with the noise: `dummies` of `dovetail-device/dummies`. */
  readonly dummies?: Dummies | undefined;
  /** Where one report is sent in all rounds: `memoize` of `dovetail-device/memoize`. */
  readonly memoize?: Memoize | undefined;
}

/** Nats that one report costs: of the local promise; without one, of one batch's. */
export function charged(campaign: Campaign, place = 0): number {
  return hidden(campaign)?.epsilon ?? campaign.classes[place]?.epsilon ?? campaign.mechanism.epsilon;
}

/** What a batch costs a person whose answers dummies alone hide; null where her device randomizes them. */
function hidden({ mechanism: kind, sent, added, asked }: Campaign): { readonly epsilon: number; readonly delta: number } | null {
  return sent ?? (kind.name === "none" ? added!.charged(asked?.count ?? 1) : null);
}

/** The mechanism of a class of people; the campaign's where there are none. */
export function mechanismOf(campaign: Campaign, place: number): Mechanism {
  const own = campaign.classes[place];
  return own ? mechanism(campaign.mechanism.name, { ...campaign.mechanism.parameters, epsilon: own.epsilon }) : campaign.mechanism;
}

/** Whether reports of several rounds may share a batch. */
export function roundsMix({ batch }: Pick<Campaign, "batch">): boolean {
  return batch.small === "merge" || batch.late === "next";
}

/** The round that runs at `now`; 0 before the first, count + 1 after the last. */
export function roundAt({ start, period, count }: Schedule, now: number): number {
  return Math.min(Math.max(0, Math.floor((now - start!) / period!) + 1), count + 1);
}

/** When a round ends, without grace. */
export function roundEnds({ start, period }: Schedule, round: number): number {
  return start! + round * period!;
}

/** Key that these hand-overs pass an owner's trust to; the owner itself if it is not among them. */
export function heir(owner: VerifyingKey, chain: readonly HandOver[]): VerifyingKey {
  for (const each of chain) if (each.before.equals(owner)) owner = each.after;
  return owner;
}

/** Whether this is the owner, or one to whom that one's trust was handed over. */
export function descendsFrom(campaign: Campaign, owner: VerifyingKey): boolean {
  return heir(owner, campaign.handedOver).equals(campaign.owner);
}

/**
 * The campaign of these bytes; signed by `owner` or its heir, or else by the owner it names itself. One that asks for
 * tokens is refused without `tokens`, one with [asks] without `asks`, and so on.
 */
export async function parseCampaign(signed: Bytes, owner?: VerifyingKey, addOns: AddOns = {}): Promise<Campaign> {
  const [body, proof] = split(signed);
  if (!proof) throw config("the campaign is not signed; the owner signs it with `dovetail collect sign`.");
  const message = join(DOMAIN, body);
  const requireOf = async (signer: VerifyingKey) => {
    if (!(await signer.verifies(proof, message))) throw config(`the campaign is not signed by ${signer}, or has been changed since.`);
  };
  if (owner) await requireOf(heir(owner, await readHandOvers(body))); // before anything is believed
  const campaign = await read(body, signed, addOns);
  await requireOf(campaign.owner);
  return campaign;
}

function split(signed: Bytes): [Bytes, Bytes | null] {
  if (signed.length > MOST_BYTES) throw config(`a campaign file has at most ${MOST_BYTES} bytes.`);
  const start = lastIndexOf(signed, SIGNED);
  if (start < 0 || signed.at(-1) !== 10) return [signed, null];
  const line = utf8(signed.slice(start + SIGNED.length, -1));
  const proof = line === null ? null : raw(line);
  return proof?.length === 64 ? [signed.slice(0, start + 1), proof] : [signed, null];
}

function utf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

async function read(body: Bytes, signed: Bytes, { tokens: reader, asks, dummies, memoize }: AddOns): Promise<Campaign> {
  const content = utf8(body);
  if (content === null) throw config("a campaign is text.");
  let found: Record<string, unknown>;
  try {
    found = parseToml(content);
  } catch (error) {
    throw config(`not a campaign in TOML: ${show(String(error).split("\n")[0])}.`);
  }
  const top = new Section("", found);
  top.whole("schema_version", 1, 1);
  const told = top.section("asks", true);
  const asking = told.empty ? undefined : (asks ?? addOn("asks"));
  const promise = readPromise(top.section("promise"));
  const randomizer = top.section("randomizer");
  const categories = randomizer.texts("categories");
  const kind = readMechanism(randomizer, promise.trust, asking);
  const hiding = top.section("dummies", true);
  differ("`promise.trust` and [dummies]", hiding.empty === (promise.trust !== "local"));
  const sent = promise.trust === "users" ? readSent(hiding) : null;
  const added = promise.trust === "shuffler" ? (dummies ?? addOn("dummies")).read(hiding) : null;
  const keys = top.section("keys");
  const suite = keys.choice("suite", ["x25519", "mlkem768-x25519"], "x25519");
  const precision = top.section("precision", true);
  const precise = !precision.empty;
  if (precise) ["beta", "rho"].forEach((name) => precision.probability(name));
  precision.finish();
  const id = top.text("id");
  if (id.length > 64 || !NAME.test(id)) throw config(`\`id\` must be 1 to 64 letters, digits, - or _, got ${show(id)}.`);
  const ohttp = readRoute(top.section("ohttp", true));
  const shown = top.section("tokens", true);
  const bears = !shown.empty || promise.authentication === "token";
  const asked = asking?.read(told, kind, categories) ?? null;
  const plain = {
    categories,
    groups: readGroups(top.section("groups", true)),
    question: top.text("question"),
    schedule: readSchedule(top.section("rounds")),
    batch: readBatch(top.section("batch")),
  };
  const classes = readClasses(top.section("classes", true), kind);
  const order = readShuffle(top.section("shuffle"));
  const memoized = Object.hasOwn(found, "memoize");
  const tokens = bears ? await (reader ?? addOn("tokens")).read(shown, promise, plain) : null;
  const terms = {
    ...(ohttp && { relay: true }), // which one, and its keys, may change
    ...(tokens && { tokens: [tokens.issuer, tokens.keys] }), // and so may the issuer's address
    asked: asked?.stated,
    mechanism: [kind.name, kind.parameters],
    ...plain,
    promise: { ...promise, deviceBudget: 0 },
    added: added?.stated,
    sent,
    classes,
    order,
    memoized: memoized || undefined,
  };
  const campaign: Campaign = {
    ...plain,
    asked,
    id,
    version: top.whole("version", 1, undefined, 1),
    mechanism: kind,
    promise,
    expires: top.moment("expires", null),
    owner: VerifyingKey.parse("keys.owner", keys.text("owner")),
    analyzer: await SealingKey.parse("keys.analyzer", keys.text("analyzer"), suite),
    shuffler: await SealingKey.parse("keys.shuffler", keys.text("shuffler"), suite),
    shufflerSigning: VerifyingKey.parse("keys.shuffler_signing", keys.text("shuffler_signing")),
    endpoints: readEndpoints(top.section("endpoints", true)),
    ohttp,
    tokens,
    handedOver: await readHandOvers(body),
    sent,
    added,
    classes,
    memoized,
    digest: await sha256(body),
    signed,
    terms: text(await sha256(ascii(JSON.stringify(terms)))),
  };
  keys.finish();
  if (memoized) (memoize ?? addOn("memoize")).check(top.section("memoize"), campaign);
  top.finish();
  agree(campaign, precise, order);
  return campaign;
}

function addOn(name: string): never {
  throw unsupported(`[${name}] needs dovetail-device/${name}.`);
}

function readMechanism(section: Section, trust: string, asking?: Asks): Mechanism {
  const name = section.text("name");
  differ("`randomizer.name` and `promise.trust`", trust === (name === "none" ? "local" : "users"));
  try {
    return asking?.mechanism(name, section) ?? mechanism(name, section.rest());
  } catch (error) {
    if (!(error instanceof DovetailError) || error.kind === "unsupported") throw error;
    throw config(`in [randomizer]: ${error.message}`);
  }
}

function readGroups(section: Section): readonly string[] {
  const names = section.texts("names");
  section.finish();
  if (names.length > 65536) throw config("`groups.names` is too long.");
  return names;
}

function readSchedule(section: Section): Schedule {
  const manual = section.choice("schedule", ["period", "manual"]) === "manual";
  const schedule = {
    start: manual ? null : section.moment("start"),
    period: manual ? null : section.seconds("period_seconds", 0.01),
    count: section.whole("count", 1, MOST_ROUNDS),
    grace: section.seconds("grace_seconds", 0, 0),
  };
  section.finish();
  return schedule;
}

function readBatch(section: Section): Campaign["batch"] {
  const rule = {
    minimum: section.whole("minimum", 1),
    small: section.choice("small", ["wait", "merge", "drop"], "wait"),
    late: section.choice("late", ["refuse", "next"], "refuse"),
    closeAt: section.whole("close_at", 1, undefined, null),
  };
  section.finish();
  differ("`batch.close_at` and `batch.minimum`", rule.closeAt !== null && rule.closeAt < rule.minimum);
  return rule;
}

/** What the shuffler is fitted to, where the batch keeps an order of public slots; a device does nothing about it. */
function readShuffle(section: Section): unknown {
  const fitted = section.text("shuffler", "uniform") !== "uniform";
  const alpha = section.notNegative("alpha");
  const file = section.text("public", null);
  const digest = section.text("public_sha256", null);
  if (digest !== null && !/^[0-9a-f]{64}$/.test(digest)) {
    throw config("`shuffle.public_sha256` must be 64 hexadecimal digits.");
  }
  const groups = section.section("groups", true);
  if (fitted) {
    section.rest();
    if (file === null || digest === null || groups.empty) throw config("[shuffle] lacks `public`, `public_sha256` or `groups`.");
    return section.sorted;
  }
  section.finish();
  differ("a uniform shuffle and `alpha`, `public` or `groups`", file !== null || alpha !== null || !groups.empty);
  return null;
}

function readPromise(section: Section): Campaign["promise"] {
  const promise = {
    delta: section.probability("delta"),
    assumedHonest: section.whole("assumed_honest", 1, undefined, null),
    assumedDishonest: section.whole("assumed_dishonest", 0, undefined, 0),
    authentication: section.choice("authentication", ["roster", "token", "none"], "roster"),
    deviceBudget: section.positive("device_budget"),
    trust: section.choice("trust", ["local", "shuffler", "users"], "local"),
  };
  section.finish();
  return promise;
}

/** Dummies that people send; those of the shuffler are read by what `dovetail-device/dummies` hands in. */
function readSent(section: Section): SentRule {
  const rule = { epsilon: section.positive("epsilon"), delta: section.probability("delta"), rate: section.read("rate", undefined, rate) };
  section.finish();
  return rule;
}

function readClasses(section: Section, kind: Mechanism): readonly EpsilonClass[] {
  if (section.empty) return [];
  differ("[classes] and [randomizer]", kind.name !== "krr");
  const found = Object.keys(section.found).map((name) => {
    if (name.length > 32 || !NAME.test(name)) {
      throw config(`a name in [classes] must be 1 to 32 letters, digits, - or _.`);
    }
    return { name, epsilon: section.read(name, undefined, (path, given) => privacyBudget(path, given, 40)) };
  });
  found.sort((one, other) => one.epsilon - other.epsilon);
  if (found.length < 2 || found.length > 16) throw config("[classes] must name 2 to 16 classes.");
  differ("two [classes] of one epsilon", found.some((each, place) => each.epsilon === found[place + 1]?.epsilon));
  differ("`randomizer.epsilon` and the largest of [classes]", found.at(-1)!.epsilon !== kind.epsilon);
  return found;
}

function readEndpoints(section: Section): Campaign["endpoints"] {
  const given: Partial<Record<"http" | "mqtt", string>> = {};
  for (const name of ["http", "mqtt"] as const) {
    const place = section.text(name, null);
    if (place === null) continue;
    given[name] = placeOf(`endpoints.${name}`, place, name);
  }
  section.finish();
  return given;
}

export function placeOf(path: string, place: string, scheme: string): string {
  const parts = /^([a-z]+):\/\/([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?(\/[!-~]*)?$/.exec(place);
  const port = Number(parts?.[3] ?? 1);
  if (!parts || ![scheme, `${scheme}s`].includes(parts[1]!) || port < 1 || port > 65535 || /[?#\\]/.test(parts[4] ?? "")) {
    throw config(`\`${path}\` must be ${scheme}://host:port or ${scheme}s://host:port, without user and query.`);
  }
  return place;
}

function readRoute(section: Section): Route | null {
  if (section.empty) return null;
  const relay = placeOf("ohttp.relay", section.text("relay"), "http");
  const keys = section.texts("keys").map((key) => gatewayKey("ohttp.keys", key));
  const route = { relay, keys, pad: section.whole("pad", 64, MOST_PAD) };
  section.finish();
  if (!keys.length) throw config("`ohttp.keys` is empty.");
  return route;
}

/** The hand-overs at the end of a campaign file without its signature; refused if one does not follow. */
async function readHandOvers(body: Bytes): Promise<readonly HandOver[]> {
  const lines: Bytes[] = [];
  const handed = ascii(HANDED);
  let end = body.length;
  while (end && body[end - 1] === 10) end--;
  for (;;) {
    const start = body.subarray(0, end).lastIndexOf(10) + 1;
    if (!equal(body.subarray(start, Math.min(end, start + handed.length)), handed)) break;
    lines.unshift(body.slice(start, end));
    if (!start) break;
    end = start - 1;
  }
  if (lines.length > 64) throw config("too many hand-overs.");
  const found = await Promise.all(lines.map(readHandOver));
  found.forEach((each, place) => {
    const next = found[place + 1];
    const again = found.slice(0, place + 1).some((earlier) => earlier.before.equals(each.after));
    differ("the lines `handed over`", again || !(!next || (each.campaign === next.campaign && each.after.equals(next.before))));
  });
  return found;
}

async function readHandOver(line: Bytes): Promise<HandOver> {
  const content = utf8(line.slice(HANDED.length));
  const parts = content?.split(new RegExp(`[${SPACE}]+`)).filter(Boolean) ?? [];
  const signature = parts.length === 4 ? raw(parts[3]!) : null;
  if (!signature) throw config("a line `handed over` is not whole.");
  const [campaign, before, after] = [parts[0]!, VerifyingKey.parse("old key", parts[1]!), VerifyingKey.parse("new key", parts[2]!)];
  if (!(await before.verifies(signature, join(HAND_OVER, before.bytes, after.bytes, ascii(campaign))))) {
    throw config(`the hand-over to ${after} is not signed by ${before}.`);
  }
  return { campaign, before, after };
}

/** Refuse what does not go together. */
function differ(keys: string, wrong: boolean): void {
  if (wrong) throw config(`${keys} of the campaign do not go together; \`dovetail collect check\` says why.`);
}

/** Refuse sections that do not agree with each other. */
function agree(campaign: Campaign, precise: boolean, order: unknown): void {
  const { handedOver, mechanism: kind, promise, groups, batch, schedule, categories, classes, asked, sent, added, expires } = campaign;
  const open = promise.authentication === "none";
  const strangers = handedOver.some((each) => each.campaign !== campaign.id);
  differ("`id`, `keys.owner` and `handed over`", strangers || !(handedOver.at(-1)?.after.equals(campaign.owner) ?? true));
  differ("[ohttp] and [endpoints]", campaign.ohttp !== null && Object.keys(campaign.endpoints).length > 0);
  differ("`keys.analyzer` and `keys.shuffler`", equal(campaign.analyzer.bytes, campaign.shuffler.bytes));
  differ("`randomizer.categories` and `randomizer.k`", categories.length > 0 && categories.length !== kind.k);
  differ("`promise.device_budget` and epsilon", promise.deviceBudget < charged(campaign, classes.length - 1));
  const crowds = groups.length > 0 || order !== null;
  differ("[groups], [shuffle], [batch] and [promise]", order !== null && (groups.length > 0 || roundsMix(campaign) || promise.authentication !== "roster"));
  differ("[dummies], [groups] and [shuffle]", promise.trust !== "local" && crowds);
  differ("[dummies], [randomizer] and [asks]", added ? !added.fit(kind, asked) : Boolean(asked?.digits));
  const few = promise.assumedHonest === null || batch.minimum < promise.assumedHonest + promise.assumedDishonest;
  differ("[dummies], [promise] and [batch]", (hidden(campaign)?.delta ?? 0) > promise.delta || (sent !== null && (open || few)));
  const alone = crowds || precise || open || promise.trust !== "local";
  differ("[classes] and groups, dummies, precision or no roster", classes.length > 0 && Boolean(alone));
  differ("`rounds.start` and `expires`", schedule.start !== null && expires !== null && expires <= schedule.start);
}

/** How many reports of so many nats fit into a budget of which `spent` are gone, in the decimals that people write. */
export function affordable(budget: number, epsilon: number, spent: { readonly n: bigint; readonly d: bigint }): number {
  const [all, each] = [asWritten(budget), asWritten(epsilon)];
  const left = floorDiv((all.n * spent.d - spent.n * all.d) * each.d, all.d * spent.d * each.n);
  return Math.max(0, Number(left));
}
