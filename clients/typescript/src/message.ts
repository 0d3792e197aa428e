/**
 * The message: one person's report in two envelopes, of one length for every value.
 *
 *     wire    = "DVTL" | version 1 | campaign digest 32 | round 4 | sealed to the shuffler( outer )
 *     outer   = report id 16 | device key 32 | signature 64 | [token 256] | [class 1] | sealed to the analyzer( inner ), once or twice
 *     inner   = version 1 | public group 2 | report (fixed length of the randomizer)
 */

import { type Bytes, ascii, equal, join, pack, raw, unpack } from "./bytes.js";
import { type Campaign, mechanismOf, roundsMix } from "./campaign.js";
import { DovetailError, config } from "./errors.js";
import { OVERHEAD } from "./hpke.js";
import { type Signer, type VerifyingKey, sha256 } from "./keys.js";
import { type Input, type Report, fill } from "./mechanisms.js";
import { binaryRequest } from "./ohttp.js";
import type { Words } from "./words.js";

const VERSION = pack(1n, 1);
const MAGIC = ascii("DVTL");
const ANSWER = join(ascii("DVTA"), VERSION);
export const HEADER = "Dovetail-Answer";
export const REPORTS = "/v1/reports";

export function entries(campaign: Campaign): number {
  return (campaign.asked?.count ?? 1) + Number(campaign.sent !== null);
}

/** The inner plaintexts of one message: each randomized answer, and where people send dummies one entry more. */
export function draw(campaign: Campaign, place: number, answer: unknown, words: Words, group?: string): Bytes {
  const number = group === undefined ? 0 : campaign.groups.indexOf(group);
  if ((group === undefined) !== !campaign.groups.length || number < 0) {
    const wanted = campaign.groups.length ? `one of ${campaign.groups.join(", ")}` : "absent, as there are no groups";
    throw new DovetailError("data", `the public group must be ${wanted}.`);
  }
  const { asked, sent } = campaign;
  const own = mechanismOf(campaign, place);
  const answers = (asked?.answers(answer as Input[], words) ?? [answer]).map(own.check);
  const drawn: readonly Report[] = sent
    ? fill(answers, own.k!, sent.rate, words)
    : answers.map((each) => own.randomize(each, words));
  return join(...drawn.map((report) => join(VERSION, pack(BigInt(number), 2), own.encode(report))));
}

/** The reports of plaintexts that `draw` made. */
export function drawn(campaign: Campaign, plaintext: Bytes): Report[] {
  return parts(campaign, plaintext).map((entry) => campaign.mechanism.decode(entry.slice(3)));
}

function parts(campaign: Campaign, plaintext: Bytes): Bytes[] {
  const size = plaintext.length / entries(campaign);
  return Array.from({ length: entries(campaign) }, (_, place) => plaintext.slice(place * size, (place + 1) * size));
}

/** Ephemeral key pairs in the order in which they are used: tests hand in their own. */
export type Pairs = () => Promise<CryptoKeyPair> | undefined;

/** The message of plaintexts: each sealed to the analyzer, signed, sealed to the shuffler; `token` is of the round. */
export async function sealMessage(
  campaign: Campaign,
  round: number,
  plaintext: Bytes,
  device: Signer,
  id: Bytes,
  place: number,
  pairs: Pairs = () => undefined,
  token = new Uint8Array(0),
): Promise<Bytes> {
  if (!(Number.isInteger(round) && round >= 1 && round <= campaign.schedule.count)) {
    throw new DovetailError("round", `${campaign.id} has the rounds 1 to ${campaign.schedule.count}.`);
  }
  const shared = info("dovetail report", campaign, roundsMix(campaign) ? 0 : round);
  const sealed = [token, pack(BigInt(place), Number(campaign.classes.length > 0))];
  for (const entry of parts(campaign, plaintext)) sealed.push(await campaign.analyzer.seal(entry, shared, await pairs()));
  const inner = join(...sealed);
  const named = join(id, device.key.bytes);
  const signature = await device.sign(join(info("dovetail device", campaign, round), named, inner));
  const outer = join(named, signature, inner);
  const envelope = await campaign.shuffler.seal(outer, info("dovetail envelope", campaign, round), await pairs());
  return join(MAGIC, VERSION, campaign.digest, pack(BigInt(round), 4), envelope);
}

function info(purpose: string, campaign: Campaign, round: number): Bytes {
  return join(ascii(purpose), pack(1n, 2), campaign.digest, pack(BigInt(round), 4));
}

/** Refuse a `pad` that some request of this campaign is longer than. */
export function requireRoom(campaign: Campaign): void {
  const [room, longest] = [campaign.ohttp?.pad ?? Infinity, longestRequest(campaign)];
  if (room < longest) throw config(`\`ohttp.pad\` = ${room} is below ${longest}, the longest request of ${campaign.id}.`);
}

/** Length of the longest request of a device of this campaign, bytes. */
export function longestRequest(campaign: Campaign): number {
  const inner = OVERHEAD + 3 + campaign.mechanism.reportBytes;
  const outer = OVERHEAD + 16 + 32 + 64 + (campaign.tokens ? 256 : 0) + Number(campaign.classes.length > 0) + entries(campaign) * inner;
  const report = binaryRequest(REPORTS, new Uint8Array(MAGIC.length + 1 + 32 + 4 + outer));
  return Math.max(report.length, binaryRequest(`${campaignPath(campaign.id)}/round`).length);
}

export function campaignPath(id: string): string {
  return `/v1/campaigns/${id}`;
}

/** The campaign digest in the head of a message. */
export function digestOf(wire: Bytes): Bytes {
  return wire.slice(5, 37);
}

/** What the shuffler says of one message: "accepted" or the kind of a refusal, and the seconds to wait. */
export interface Answer {
  readonly kind: string;
  readonly after: number;
}

/** The answer in a header of HTTP; null for anything else, and for what the shuffler has not signed. */
export async function readAnswer(header: string, wire: Bytes, key: VerifyingKey | undefined): Promise<Answer | null> {
  const data = raw(header.trim());
  if (!data || data.length < 74 || data.length > 73 + 64 || !equal(data.slice(0, 5), ANSWER)) return null;
  const [wait, signature, kind] = [data.slice(5, 9), data.slice(9, 73), data.slice(73)];
  if (kind.some((byte) => byte > 127)) return null;
  const statement = join(ascii("dovetail answer"), pack(1n, 2), await sha256(wire), wait, kind);
  const signed = key !== undefined && (await key.verifies(signature, statement));
  const name = String.fromCharCode(...kind);
  if (!signed && name !== "campaign") return null;
  return { kind: name, after: signed ? Number(unpack(wait)) : 0 };
}
