/**
 * HPKE, base mode, single shot (RFC 9180): DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, on WebCrypto.
 *
 * What multiplies with secrets is WebCrypto's; here is the key schedule alone.
 */

import { type Bytes, ascii, join, pack } from "./bytes.js";

const VERSION = ascii("HPKE-v1");
export const KEM = pack(0x20n, 2);
export const SUITE = pack(0x10001n, 4); // KDF and AEAD
const KEM_LABEL = join(ascii("KEM"), KEM);
const LABEL = join(ascii("HPKE"), KEM, SUITE);
const NONE = new Uint8Array(0);

export const OVERHEAD = 32 + 16; // encapsulated key and tag, bytes

export function ephemeralPair(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]) as Promise<CryptoKeyPair>;
}

/** Encapsulated key and ciphertext; throws where `to` is no public key. */
export async function seal(to: Bytes, plaintext: Bytes, info: Bytes, pair?: CryptoKeyPair, aad: Bytes = NONE): Promise<Bytes> {
  const context = await schedule(to, info, pair);
  return join(context.enc, await sealWith(context, plaintext, aad));
}

/** What both ends share after the encapsulated key. */
export interface Context {
  readonly enc: Bytes;
  readonly secret: Bytes;
  readonly mode: Bytes;
}

export async function schedule(to: Bytes, info: Bytes, pair?: CryptoKeyPair): Promise<Context> {
  pair ??= await ephemeralPair();
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const shared = await encapsulate(to, enc, pair.privateKey);
  const mode = join(
    pack(0n, 1),
    await extract(LABEL, NONE, "psk_id_hash", NONE),
    await extract(LABEL, NONE, "info_hash", info),
  );
  return { enc, mode, secret: await extract(LABEL, shared, "secret", NONE) };
}

/** The ciphertext of one message: a context seals no second one. */
export async function sealWith({ secret, mode }: Context, plaintext: Bytes, additionalData: Bytes = NONE): Promise<Bytes> {
  const iv = await expand(LABEL, secret, "base_nonce", mode, 12);
  const cipher = await aes128(await expand(LABEL, secret, "key", mode, 16), "encrypt");
  return new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData }, cipher, plaintext));
}

/** A secret of this exchange for another use, at most 32 bytes. */
export async function exported({ secret, mode }: Context, label: string, length: number): Promise<Bytes> {
  return expand(LABEL, await expand(LABEL, secret, "exp", mode, 32), "sec", ascii(label), length);
}

export function aes128(key: Bytes, use: "encrypt" | "decrypt"): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", key, "AES-GCM", false, [use]);
}

async function encapsulate(to: Bytes, enc: Bytes, mine: CryptoKey): Promise<Bytes> {
  const theirs = await crypto.subtle.importKey("raw", to, { name: "X25519" }, false, []);
  const point = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, mine, 256));
  if (point.every((byte) => byte === 0)) throw new Error("a point of small order");
  return expand(KEM_LABEL, await extract(KEM_LABEL, NONE, "eae_prk", point), "shared_secret", join(enc, to), 32);
}

function extract(suite: Bytes, salt: Bytes, label: string, secret: Bytes): Promise<Bytes> {
  return hmac(salt.length ? salt : new Uint8Array(32), join(VERSION, suite, ascii(label), secret));
}

async function expand(suite: Bytes, key: Bytes, label: string, info: Bytes, length: number): Promise<Bytes> {
  const labelled = join(pack(BigInt(length), 2), VERSION, suite, ascii(label), info, pack(1n, 1)); // one block is enough
  return (await hmac(key, labelled)).slice(0, length);
}

export async function hmac(key: Bytes, message: Bytes): Promise<Bytes> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, message));
}
