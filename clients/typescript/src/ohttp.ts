/**
 * Oblivious HTTP (RFC 9458) with binary messages of known length (RFC 9292): a relay sees who sends and no content.
 *
 *     key configuration      key id 1 | kem 0x0020 | public key 32 | 4 as 2 bytes | kdf 0x0001 | aead 0x0001
 *     encapsulated request   key id 1 | kem 0x0020 | kdf 0x0001 | aead 0x0001 | enc 32 | AEAD(binary request)
 *     encapsulated response  nonce 16 | AEAD(binary response), under a key of this exchange alone
 *
 * A key configuration is signed in the campaign file and not asked for: a gateway that gave everybody one of their own
 * could tell them apart.
 */

import { type Bytes, ascii, join, pack, unpack } from "./bytes.js";
import { config } from "./errors.js";
import { KEM, SUITE, aes128, exported, hmac, schedule, sealWith } from "./hpke.js";
import type { GatewayKey } from "./keys.js";

export const REQUEST_TYPE = "message/ohttp-req";
export const RESPONSE_TYPE = "message/ohttp-res";

const AUTHORITY = "shuffler"; // of every request: where it goes is the gateway's business

/** What opens the response to one request; null for anything else. */
export type Opener = (sealed: Bytes) => Promise<Bytes | null>;

/** The encapsulated request, and what opens its response. */
export async function encapsulate(to: GatewayKey, request: Bytes, pair?: CryptoKeyPair): Promise<[Bytes, Opener]> {
  const head = join(pack(BigInt(to.id), 1), KEM, SUITE);
  const context = await schedule(to.bytes, join(ascii("message/bhttp request\0"), head), pair);
  const open = async (sealed: Bytes) => {
    const secret = await hmac(join(context.enc, sealed.slice(0, 16)), await exported(context, "message/bhttp response", 16));
    const derived = async (label: string, length: number) => (await hmac(secret, join(ascii(label), pack(1n, 1)))).slice(0, length);
    const cipher = await aes128(await derived("key", 16), "decrypt");
    try {
      const plaintext = await crypto.subtle.decrypt({ name: "AES-GCM", iv: await derived("nonce", 12) }, cipher, sealed.slice(16));
      return new Uint8Array(plaintext);
    } catch {
      return null;
    }
  };
  return [join(head, context.enc, await sealWith(context, request)), open];
}

/** A request of a device, with nothing in it that tells devices apart. */
export function binaryRequest(path: string, body?: Bytes): Bytes {
  const control = [body ? "POST" : "GET", "https", AUTHORITY, path].map((text) => part(ascii(text)));
  if (!body) return join(pack(0n, 1), ...control);
  const headers = ["content-type", "application/octet-stream"].map((text) => part(ascii(text)));
  return join(pack(0n, 1), ...control, part(join(...headers)), part(body));
}

export interface BinaryResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly content: Bytes;
}

/** The final response of these bytes, padded or not; throws for anything else. */
export function binaryResponse(data: Bytes): BinaryResponse {
  const reader = new Reader(data);
  const [framing, status] = [reader.number(), reader.number()];
  const [lines, content, trailers] = [reader.rest(), reader.rest(), reader.rest()];
  if (framing !== 1 || status < 200 || status > 599 || trailers.length || data.slice(reader.place).some(Boolean)) {
    throw new RangeError("no final response of known length alone");
  }
  const [headers, fields] = [new Headers(), new Reader(lines)];
  while (fields.place < lines.length) headers.append(latin(fields.part()), latin(fields.part())); // throws for bad ones
  return { status, headers, content };
}

/** With zeros behind it up to `length` bytes. */
export function padded(message: Bytes, length: number): Bytes {
  if (message.length > length) throw config(`a message of ${message.length} bytes does not fit into ${length}.`);
  return join(message, new Uint8Array(length - message.length));
}

function latin(bytes: Bytes): string {
  return String.fromCharCode(...bytes);
}

function part(data: Bytes): Bytes {
  return join(length(data.length), data);
}

/** A variable-length integer of QUIC (RFC 9000, section 16). */
function length(value: number): Bytes {
  const code = [6, 14, 30].findIndex((bits) => value < 2 ** bits);
  return pack(BigInt(value) | (BigInt(code) << BigInt((8 << code) - 2)), 1 << code);
}

class Reader {
  place = 0;

  constructor(private readonly data: Bytes) {}

  number(): number {
    const code = (this.data[this.place] ?? 0) >> 6;
    return Number(unpack(this.#take(1 << code)) & ((1n << BigInt((8 << code) - 2)) - 1n));
  }

  part(): Bytes {
    return this.#take(this.number());
  }

  /** A part that may be left out at the end. */
  rest(): Bytes {
    return this.place < this.data.length ? this.part() : new Uint8Array(0);
  }

  #take(size: number): Bytes {
    const found = this.data.slice(this.place, this.place + size);
    if (found.length < size) throw new RangeError("it ends in its middle");
    this.place += size;
    return found;
  }
}
