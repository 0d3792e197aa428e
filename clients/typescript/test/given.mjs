/** What tests are given: the vectors of the reference, and words that are chosen. It is in no published file. */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { asks } from "../dist/asks.js";
import { raw } from "../dist/bytes.js";
import { dummies } from "../dist/dummies.js";
import { mechanism } from "../dist/mechanisms.js";
import { memoize } from "../dist/memoize.js";
import { Section } from "../dist/section.js";
import { anonymousTokens } from "../dist/tokens.js";
import { Words } from "../dist/words.js";

export const FOLDER = new URL("../../../tests/device/vectors/", import.meta.url);
export const VECTORS = JSON.parse(readFileSync(new URL("twins.json", FOLDER), "utf8"));

export const hex = (bytes) => Buffer.from(bytes).toString("hex");
export const unhex = (text) => new Uint8Array(Buffer.from(text, "hex"));
export { raw };

/** What reads every campaign that this package can read. */
export const ADD_ONS = { asks, dummies, memoize, tokens: anonymousTokens() };

/** The mechanism of a table [randomizer]. */
export function madeOf({ name, ...given }) {
  return asks.mechanism(name, new Section("randomizer", given)) ?? mechanism(name, given);
}

/** The stream of a seed, and how many bytes of it are used. */
export class Stream extends Words {
  used = 0;
  #left = Buffer.alloc(0);

  constructor(seed) {
    super();
    this.seed = Buffer.from(seed);
  }

  bytes(count) {
    if (this.#left.length < count) {
      const first = (this.used + this.#left.length) / 32;
      const blocks = Array.from({ length: Math.ceil(count / 32) + 64 }, (_, place) => {
        const number = Buffer.alloc(8);
        number.writeBigUInt64BE(BigInt(first + place));
        return createHash("sha256").update(Buffer.concat([this.seed, number])).digest();
      });
      this.#left = Buffer.concat([this.#left, ...blocks]);
    }
    const taken = this.#left.subarray(0, count);
    this.#left = this.#left.subarray(count);
    this.used += count;
    return new Uint8Array(taken);
  }
}

/** An X25519 pair of a given secret half. */
export async function ephemeral(secret) {
  const head = Buffer.from("302e020100300506032b656e04220420", "hex");
  const algorithm = { name: "X25519" };
  const privateKey = await crypto.subtle.importKey("pkcs8", Buffer.concat([head, secret]), algorithm, true, ["deriveBits"]);
  const { x } = await crypto.subtle.exportKey("jwk", privateKey);
  return { privateKey, publicKey: await crypto.subtle.importKey("raw", raw(x), algorithm, true, []) };
}

const MESSAGES = JSON.parse(readFileSync(new URL("messages.json", FOLDER), "utf8"));
const DOMAIN = Buffer.from("dovetail campaign v1\0");

/** The campaign of the vectors with replaced lines, signed by its owner or by the owner of another secret. */
export async function campaignFile(changes = {}, secret = unhex(MESSAGES[0].secrets.owner), ending = "") {
  let body = MESSAGES[0].campaign.slice(0, MESSAGES[0].campaign.lastIndexOf("# signed: "));
  const { pairOf, signerOf } = await import("../dist/keys.js");
  const owner = await signerOf(await pairOf(secret));
  for (const [key, line] of Object.entries({ owner: `owner = "${owner.key}"`, ...changes })) {
    const found = new RegExp(`^${key} = .*$`, "m");
    if (!found.test(body)) throw new Error(`no line ${key}`);
    body = body.replace(found, () => line);
  }
  return signed(body + ending, owner);
}

/** The file of this text; signed by the owner of the vectors, or another one. */
export async function signed(body, owner) {
  const { pairOf, signerOf } = await import("../dist/keys.js");
  const signer = owner ?? (await signerOf(await pairOf(unhex(MESSAGES[0].secrets.owner))));
  const signature = await signer.sign(new Uint8Array(Buffer.concat([DOMAIN, Buffer.from(body)])));
  return new Uint8Array(Buffer.from(`${body}# signed: ${Buffer.from(signature).toString("base64url")}\n`));
}

/** The line by which the owner of the vectors hands the campaign over. */
export async function handOverLine(to) {
  const { pairOf, signerOf } = await import("../dist/keys.js");
  const before = await signerOf(await pairOf(unhex(MESSAGES[0].secrets.owner)));
  const after = (await signerOf(await pairOf(to))).key;
  const statement = Buffer.concat([Buffer.from("dovetail hand-over v1\0"), before.key.bytes, after.bytes, Buffer.from("meters")]);
  const signature = Buffer.from(await before.sign(new Uint8Array(statement))).toString("base64url");
  return `# handed over: meters ${before.key} ${after} ${signature}\n`;
}

export const START = Date.UTC(2030, 0, 1) / 1000;

/** A shuffler that answers as it is told, and remembers what came. */
export function shuffler(...answers) {
  const sent = [];
  return {
    sent,
    answers,
    newer: null,
    running: null,
    trust() {},
    async send(wire) {
      sent.push(hex(wire));
      return this.answers.shift() ?? { name: "accepted", reason: "", after: 0 };
    },
    async fetch() {
      return this.newer;
    },
    async round() {
      return this.running;
    },
  };
}
