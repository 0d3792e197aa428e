/**
 * Anonymous tokens (Privacy Pass, RFC 9576 to 9578, type 2): entitled to one report of one round, and not who.
 *
 *     one-time key   Ed25519, of one device for one campaign and round
 *     nonce          SHA-256(one-time public key)
 *     context        SHA-256("dovetail token" 0 1 | id length 1 | campaign id | round 4)
 *     challenge      0x0002 | issuer's name, length 2 | 32 | context | 0 0
 *     token input    0x0002 | nonce | SHA-256(challenge) | SHA-256(the round's key)      98 bytes
 *     authenticator  the issuer's blind signature of it                                  256 bytes
 *
 * The same bytes as `dovetail_protocol.tokens`, and the same states: what a device asks with is stored before it asks,
 * what it gets is verified before it is kept, and no round has two tokens. In a chunk of its own, for campaigns that ask
 * for tokens. Experimental.
 */

import { type BlindRsaKey, keyOf } from "./blind_rsa.js";
import { type Bytes, ascii, equal, join, pack, raw, text } from "./bytes.js";
import { type Campaign, placeOf, roundsMix } from "./campaign.js";
import { type DeliveryEvent, event } from "./delivery.js";
import { config } from "./errors.js";
import { type HttpOptions, connection, kindOf } from "./http.js";
import { type Signer, VerifyingKey, pairOf, sha256, signerOf } from "./keys.js";
import type { HeldToken, Known, Store } from "./ledger.js";
import type { Section } from "./section.js";

const MOST_ROUNDS = 1000;
const MODULUS = 256; // bytes, and so has an authenticator
const SALT = 48;
const [CODE, VOUCHER] = [16, 64];
const TYPE = pack(2n, 2);
// RSASSA-PSS with SHA-384, MGF1 and a salt of 48 bytes, as RFC 9578, section 8.2.2, has it
const SPKI = raw(
  "MIIBUjA9BgkqhkiG9w0BAQowMKANMAsGCWCGSAFlAwQCAqEaMBgGCSqGSIb3DQEBCDALBglghkgBZQMEAgKiAwIBMAOCAQ8AMIIBCgKCAQEA",
)!;
const EXPONENT = pack(0x0203010001n, 5);

const ERASED = { secret: "", salt: "", factor: "", token: "" };

/** Why a round will never have a token. */
const FINAL: Readonly<Record<string, string>> = {
  issued: "the issuer has given its token to another request: this device has lost its memory, or somebody else has used its right",
  forged:
    "the issuer has signed with another key than the campaign names, or this key hides nothing: it could tell this device from others; nothing is sent",
  changed:
    "the campaign has another issuer or key for this round than when this device asked, and a second request could be linked",
  late: "the round is over",
};

/** Why it has none now. */
const LATER: Readonly<Record<string, string>> = {
  unentitled: "the issuer does not know this device, its code or its account, or does not know it yet",
  too_early: "the issuer has no tokens of this round on sale",
  not_found: "the issuer does not know this campaign",
  malformed: "the issuer cannot read what this device asks",
  unavailable: "the issuer does not answer",
};

/** Public key of an issuer for one round. */
export interface TokenKey extends BlindRsaKey {
  /** SHA-256 of its SPKI. */
  readonly id: Bytes;
}

/** `[tokens]` of a campaign: who issues, where, and with which key for each round. */
export interface TokenRule {
  readonly issuer: string;
  /** May change with a version of the campaign. */
  readonly url: string;
  /** Base64url of each SPKI. */
  readonly keys: readonly string[];
}

/** What shows the right to one report of a round, or why nothing does. */
export interface Pass {
  readonly receipt: TokenReceipt;
  /** Why no report is drawn for the round; empty where one may be. */
  readonly refusal: string;
  /** What keeps a report that was drawn from being sealed. */
  readonly missing: DeliveryEvent | null;
  /** The one-time key and the token, where it is held. */
  readonly signer?: Signer;
  readonly token?: Bytes;
}

/** What became of the token of one round. */
export interface TokenReceipt {
  readonly round: number;
  /** "held"; "spent" on a report; "refused" for good; "asked" for, until the issuer answers. */
  readonly state: HeldToken["state"];
  readonly reason: string;
  readonly why: string;
}

/** A way to the issuer; faults are answers, never exceptions. */
export interface Issuer {
  /** The blind signature of what is asked at this address, or the kind of the refusal. */
  ask(url: string, application: Bytes): Promise<Bytes | string>;
}

export interface TokenOptions extends HttpOptions {
  /** Base64url of an invitation's code or an account's voucher; default the device's own key, which a roster names. */
  readonly entitlement?: string;
  /** Default the one at `tokens.url`, over HTTP. */
  readonly issuer?: Issuer;
}

/** What a device takes for campaigns that ask for tokens. */
export interface Tokens {
  /** `[tokens]` of a campaign that otherwise asks so. */
  read(section: Section, promise: Campaign["promise"], asked: Pick<Campaign, "schedule" | "batch">): Promise<TokenRule>;
  /** The token of a round as it stands after asking for it. */
  pass(campaign: Campaign, round: number, store: Store, device: Signer): Promise<Pass>;
  /** Erase the token of a round whose report is settled. */
  spend(known: Known, round: number): void;
}

/** Tokens for a device: `Device.open(file, { store, tokens: anonymousTokens() })`. */
export function anonymousTokens(options: TokenOptions = {}): Tokens {
  const entitlement = options.entitlement === undefined ? null : raw(options.entitlement.trim());
  if (options.entitlement !== undefined && ![CODE, VOUCHER].includes(entitlement?.length ?? 0)) {
    throw config("`entitlement` is neither a code of an invitation nor an account's voucher.");
  }
  const issuer = options.issuer ?? httpIssuer(options);
  return {
    read: readTokens,
    pass: async (campaign, round, store, device) => {
      const [held, reason] = await fetchToken(campaign, round, store, issuer, entitlement ?? device);
      return passOf(held, reason, round, campaign.id);
    },
    spend: (known, round) => {
      const held = known.tokens?.[round];
      if (held && held.state !== "refused") Object.assign(held, { state: "spent", ...ERASED });
    },
  };
}

/** The issuer over HTTP: its signatures are verified, its refusals are believed unverified. */
export function httpIssuer(options: HttpOptions = {}): Issuer {
  return {
    ask: async (url, application) => {
      const found = await connection(url, options, "application/octet-stream")("/v1/tokens", application);
      if (!found) return "unavailable";
      return found.status === 200 ? found.content : kindOf(found);
    },
  };
}

async function readTokens(section: Section, promise: Campaign["promise"], asked: Pick<Campaign, "schedule" | "batch">): Promise<TokenRule> {
  if (section.empty || promise.authentication !== "token") {
    throw config('`authentication = "token"` and [tokens] go together: who issues tokens, and by which keys.');
  }
  if (roundsMix(asked)) {
    throw config('tokens of two rounds are two strangers: use small = "wait" or "drop" and late = "refuse".');
  }
  const rounds = asked.schedule.count;
  const rule = { issuer: section.text("issuer"), keys: section.texts("keys"), url: section.text("url") };
  const signing = section.text("signing", ""); // of how many tokens were issued, which is for analysts
  if (signing) VerifyingKey.parse("tokens.signing", signing);
  section.finish();
  placeOf("tokens.url", rule.url, "http");
  if (!/^[ -~]{1,255}$/.test(rule.issuer)) throw config("`tokens.issuer` must be a name of 1 to 255 printable ASCII characters.");
  if (rounds > MOST_ROUNDS || rule.keys.length !== rounds) {
    throw config(`\`tokens.keys\` must be one key for each round, at most ${MOST_ROUNDS}; there are ${rule.keys.length} keys and ${rounds} rounds.`);
  }
  for (const key of rule.keys) {
    const data = raw(key);
    const modulus = data?.slice(SPKI.length, SPKI.length + MODULUS);
    const whole = modulus?.length === MODULUS && modulus[0]! >> 7 && equal(data!, join(SPKI, modulus, EXPONENT));
    if (!whole || keyOf(modulus).hasSmallFactor()) throw config("`tokens.keys` must be issuer's keys, as `dovetail collect token-keys` prints them.");
  }
  return rule;
}

/** The key of a round of a rule that was read. */
export async function tokenKey(rule: TokenRule, round: number): Promise<TokenKey> {
  const data = raw(rule.keys[round - 1]!)!;
  return { ...keyOf(data.slice(SPKI.length, -EXPONENT.length)), id: await sha256(data) };
}

/** The TokenChallenge of a round (RFC 9577, section 2.1): without origin, as the context binds more. */
export async function challenge(rule: TokenRule, campaign: string, round: number): Promise<Bytes> {
  const name = ascii(rule.issuer);
  const context = await sha256(join(ascii("dovetail token\0\x01"), placed(campaign, round)));
  return join(TYPE, pack(BigInt(name.length), 2), name, pack(32n, 1), context, pack(0n, 2));
}

/** What is signed for a one-time device key (RFC 9578, section 6.3). */
export async function tokenInput(device: VerifyingKey, challenge: Bytes, key: TokenKey): Promise<Bytes> {
  return join(TYPE, await sha256(device.bytes), await sha256(challenge), key.id);
}

/** A request for a token, by a device of the roster or with a code or a voucher. */
export async function applyFor(campaign: string, round: number, request: Bytes, by: Signer | Bytes, key: TokenKey): Promise<Bytes> {
  const head = join(ascii("DVTI\x01"), placed(campaign, round));
  if (by instanceof Uint8Array) return join(head, pack(by.length === CODE ? 1n : 3n, 1), by, request);
  const named = join(head, pack(2n, 1), by.key.bytes);
  return join(named, await by.sign(join(ascii("dovetail issue\0\x01"), key.id, named, request)), request);
}

/** The TokenRequest (RFC 9578, section 6.1), 259 bytes. */
export function tokenRequest(key: TokenKey, blinded: Bytes): Bytes {
  return join(TYPE, key.id.slice(-1), blinded);
}

function placed(campaign: string, round: number): Bytes {
  return join(pack(BigInt(campaign.length), 1), ascii(campaign), pack(BigInt(round), 4));
}

async function passOf({ state, secret, token }: HeldToken, reason: string, round: number, campaign: string): Promise<Pass> {
  const why = FINAL[reason] ?? LATER[reason] ?? "";
  const refused = reason && reason !== "unavailable";
  const base = {
    receipt: { round, state, reason, why },
    refusal: refused ? `no token for round ${round} of the campaign ${campaign}: ${why}; nothing was drawn.` : "",
    missing: state === "asked" ? event("later", "token") : state === "refused" ? event("final", "token") : null,
  };
  return state === "held" ? { ...base, signer: await signerOf(await pairOf(raw(secret)!)), token: raw(token)! } : base;
}

async function fetchToken(
  campaign: Campaign,
  round: number,
  store: Store,
  issuer: Issuer,
  by: Signer | Bytes,
): Promise<readonly [HeldToken, string]> {
  const rule = campaign.tokens!;
  const key = await tokenKey(rule, round);
  const said = await challenge(rule, campaign.id, round);
  const held = await drawn(store, campaign.id, round, key, text(await sha256(join(said, key.id))));
  if (held.state !== "asked") return [held, held.reason];
  const settle = async (state: HeldToken["state"], reason: string, token = "") =>
    [await settled(store, campaign.id, round, { state, reason, token }), reason] as const;
  const [salt, factor] = [raw(held.salt)!, raw(held.factor)!];
  const input = await tokenInput((await signerOf(await pairOf(raw(held.secret)!))).key, said, key);
  const blinded = await key.blind(input, salt, factor);
  if (!blinded) return settle("refused", "forged");
  const answer = await issuer.ask(rule.url, await applyFor(campaign.id, round, tokenRequest(key, blinded), by, key));
  if (typeof answer === "string") {
    if (Object.hasOwn(FINAL, answer)) return settle("refused", answer);
    return [held, Object.hasOwn(LATER, answer) ? answer : "unavailable"];
  }
  if (answer.length !== MODULUS) return [held, "unavailable"]; // a captive portal
  const token = await key.unblind(input, answer, factor);
  return token ? settle("held", "", text(token)) : settle("refused", "forged");
}

/**
 * The token of a round as it stands; where none was asked for, what it is asked for with, stored first.
 *
 * Under a version of other [tokens] what was drawn is erased, and the round has none: one blinding factor under two
 * keys, or one one-time key in two requests, links the requests to the report.
 */
function drawn(store: Store, campaign: string, round: number, key: TokenKey, bound: string): Promise<HeldToken> {
  return store.transact((memory) => {
    const tokens = (memory.campaigns[campaign]!.tokens ??= {});
    const held = tokens[round];
    if (held && ["asked", "held"].includes(held.state) && held.bound !== bound) {
      Object.assign(held, { state: "refused", reason: "changed", ...ERASED });
    }
    return { ...(tokens[round] ??= { state: "asked", reason: "", ...fresh(key), token: "", bound }) };
  });
}

/** A one-time device key and the chance that hides it. */
function fresh(key: TokenKey): Pick<HeldToken, "secret" | "salt" | "factor"> {
  const random = (size: number) => text(crypto.getRandomValues(new Uint8Array(size)));
  return { secret: random(32), salt: random(SALT), factor: text(key.drawFactor()) };
}

/** Once it was asked for and not settled by another process; what hid its request is erased. */
function settled(store: Store, campaign: string, round: number, found: Pick<HeldToken, "state" | "reason" | "token">): Promise<HeldToken> {
  return store.transact((memory) => {
    const held = memory.campaigns[campaign]!.tokens![round]!;
    if (held.state === "asked") Object.assign(held, found, { salt: "", factor: "" });
    return { ...held };
  });
}
