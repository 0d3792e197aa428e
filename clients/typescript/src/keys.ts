/** Keys of the roles: what seals, what signs; as the short texts `suite:base64url` of campaign files. */

import { type Bytes, equal, join, pack, raw, text, unpack } from "./bytes.js";
import { config, leftOut, unsupported } from "./errors.js";
import { KEM, SUITE, seal } from "./hpke.js";

const FIELD = (1n << 255n) - 19n; // of the curve of Ed25519, whose points are written by their y and one bit
const ORDER_8 = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n;
const SMALL = [0n, 1n, FIELD - 1n, ORDER_8, FIELD - ORDER_8]; // y of the points whose eightfold is neutral
const X25519 = "x25519";
const ED25519 = { name: "Ed25519" };
const PKCS8 = Uint8Array.from([0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20]);

export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

function split(name: string, encoded: string, suite: string, length: number): Bytes {
  const data = encoded.startsWith(`${suite}:`) ? raw(encoded.slice(suite.length + 1)) : null;
  if (data?.length !== length) throw config(`\`${name}\` must be ${length} bytes of ${suite}.`);
  return data;
}

/** Public half of an Ed25519 key pair. Nothing verifies under a point of small order: anybody finds signatures for it. */
export class VerifyingKey {
  constructor(readonly bytes: Bytes) {}

  static parse(name: string, encoded: string): VerifyingKey {
    const key = new VerifyingKey(split(name, encoded, "ed25519", 32));
    if (key.#anybodys()) throw config(`\`${name}\` is a point of small order, for which anybody signs.`);
    return key;
  }

  toString(): string {
    return `ed25519:${text(this.bytes)}`;
  }

  equals(other: VerifyingKey): boolean {
    return equal(this.bytes, other.bytes);
  }

  async verifies(signature: Bytes, message: Bytes): Promise<boolean> {
    if (this.#anybodys()) return false;
    try {
      const key = await crypto.subtle.importKey("raw", this.bytes, ED25519, false, ["verify"]);
      return await crypto.subtle.verify(ED25519, key, signature, message);
    } catch {
      return false;
    }
  }

  #anybodys(): boolean {
    return SMALL.includes((unpack(this.bytes.slice().reverse()) % (1n << 255n)) % FIELD);
  }
}

/** The public key that reports to a role are sealed to. */
export class SealingKey {
  constructor(readonly bytes: Bytes) {}

  static async parse(name: string, encoded: string, suite: string): Promise<SealingKey> {
    const key = new SealingKey(split(name, encoded, suite, suite === X25519 ? 32 : 1216));
    if (suite !== X25519) throw leftOut(suite);
    try {
      await key.seal(new Uint8Array(0), new Uint8Array(0));
    } catch {
      throw config(`\`${name}\` is not a public key of ${X25519}.`);
    }
    return key;
  }

  seal(plaintext: Bytes, info: Bytes, pair?: CryptoKeyPair): Promise<Bytes> {
    return seal(this.bytes, plaintext, info, pair);
  }
}

/** Public key of a gateway of oblivious HTTP. */
export interface GatewayKey {
  readonly id: number;
  readonly bytes: Bytes;
}

/** From the base64url of its key configuration: key id 1 | kem 0x0020 | public key 32 | 4 as 2 bytes | kdf 1 | aead 1. */
export function gatewayKey(name: string, encoded: string): GatewayKey {
  const data = raw(encoded);
  const bytes = data?.slice(3, 35);
  if (!data || bytes?.length !== 32 || !equal(data, join(data.slice(0, 1), KEM, bytes, pack(4n, 2), SUITE))) {
    throw config(`\`${name}\` must be a key of a gateway.`);
  }
  return { id: data[0]!, bytes };
}

/** Whatever signs for the device: a key of WebCrypto, or of somebody's secure element. */
export interface Signer {
  readonly key: VerifyingKey;
  sign(message: Bytes): Promise<Bytes>;
}

/** A new device key; in a browser nobody reads its secret half out. */
export async function makeKey(extractable = false): Promise<CryptoKeyPair> {
  try {
    return (await crypto.subtle.generateKey(ED25519, extractable, ["sign", "verify"])) as CryptoKeyPair;
  } catch {
    throw unsupported("this browser cannot sign with Ed25519; a newer one can, and so can another device.");
  }
}

export async function signerOf(pair: CryptoKeyPair): Promise<Signer> {
  const key = new VerifyingKey(new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey)));
  return { key, sign: async (message) => new Uint8Array(await crypto.subtle.sign(ED25519, pair.privateKey, message)) };
}

/** The pair of a secret half of 32 bytes, as key files hold it. */
export async function pairOf(secret: Bytes): Promise<CryptoKeyPair> {
  const privateKey = await crypto.subtle.importKey("pkcs8", join(PKCS8, secret), ED25519, true, ["sign"]);
  const { x } = await crypto.subtle.exportKey("jwk", privateKey);
  return { privateKey, publicKey: await crypto.subtle.importKey("raw", raw(x ?? "")!, ED25519, true, ["verify"]) };
}
