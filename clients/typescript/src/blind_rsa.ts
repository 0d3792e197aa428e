/**
 * Blind RSA signatures (RFC 9474, RSABSSA-SHA384-PSS, deterministic): signed without being seen. Experimental.
 *
 *     m = EMSA-PSS(message, salt)       blinded = m r^e        signed = blinded^d = m^d r        signature = signed / r
 *
 * With r uniform, `blinded` is uniform whatever m is. No key with a prime below 2^16 is used, and nothing is blinded that
 * shares a factor with its key: it would show in the request and in the signature. Verifying is WebCrypto's; whole
 * numbers are not constant-time.
 */

import { type Bytes, join, pack, text, unpack } from "./bytes.js";

const HASH = 48;
const SMALL = 1 << 16;

/** Public key of a blind signer with the exponent 65537. */
export interface BlindRsaKey {
  readonly modulus: bigint;
  /** Whether a prime below 2^16 divides the modulus, as it does in no key of two large primes. */
  hasSmallFactor(): boolean;
  /** A blinding factor: uniform among the numbers from 1 to the modulus that can be divided by. */
  drawFactor(): Bytes;
  /** What the signer gets (RFC 9474, section 4.2); null for an encoded message that shares a factor with the modulus. */
  blind(message: Bytes, salt: Bytes, factor: Bytes): Promise<Bytes | null>;
  /** The signature of the message; null if what the signer gave back makes none (RFC 9474, section 4.4). */
  unblind(message: Bytes, signed: Bytes, factor: Bytes, saltLength?: number): Promise<Bytes | null>;
}

/** The key of a modulus, big endian. */
export function keyOf(bytes: Bytes): BlindRsaKey {
  const [modulus, size] = [unpack(bytes), bytes.length];
  const written = (number: bigint) => pack(number % modulus, size);
  return {
    modulus,
    hasSmallFactor: () => gcd(smallPrimes() % modulus, modulus) !== 1n,
    drawFactor: () => {
      for (;;) {
        const drawn = crypto.getRandomValues(new Uint8Array(size));
        const factor = unpack(drawn);
        if (factor > 0n && factor < modulus && gcd(factor, modulus) === 1n) return drawn;
      }
    },
    blind: async (message, salt, factor) => {
      const encoded = unpack(await encodePss(message, size, salt));
      return gcd(encoded, modulus) === 1n ? written(encoded * power(unpack(factor), modulus)) : null;
    },
    unblind: async (message, signed, factor, saltLength = HASH) => {
      const signature = written(unpack(signed) * inverse(unpack(factor), modulus));
      const [name, hash] = ["RSA-PSS", "SHA-384"];
      const jwk = { kty: "RSA", n: text(bytes), e: "AQAB" };
      const key = await crypto.subtle.importKey("jwk", jwk, { name, hash }, false, ["verify"]);
      const holds = signed.length === size && (await crypto.subtle.verify({ name, saltLength }, key, signature, message));
      return holds ? signature : null;
    },
  };
}

/** EMSA-PSS of one bit less than so many bytes, with SHA-384 and MGF1 (RFC 8017, section 9.1.1). */
export async function encodePss(message: Bytes, size: number, salt: Bytes): Promise<Bytes> {
  const digest = await sha384(join(new Uint8Array(8), await sha384(message), salt));
  const block = join(new Uint8Array(size - salt.length - HASH - 2), pack(1n, 1), salt);
  for (let start = 0; start < block.length; start += HASH) {
    const mask = await sha384(join(digest, pack(BigInt(start / HASH), 4)));
    block.forEach((byte, place) => place >= start && place < start + HASH && (block[place] = byte ^ mask[place - start]!));
  }
  block[0]! &= 0x7f;
  return join(block, digest, pack(0xbcn, 1));
}

async function sha384(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-384", bytes));
}

/** base^65537. */
function power(base: bigint, modulus: bigint): bigint {
  let found = base;
  for (let square = 0; square < 16; square++) found = (found * found) % modulus;
  return (found * base) % modulus;
}

function inverse(number: bigint, modulus: bigint): bigint {
  let [a, b, x, y] = [number % modulus, modulus, 1n, 0n];
  while (b) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return ((x % modulus) + modulus) % modulus;
}

function gcd(a: bigint, b: bigint): bigint {
  while (b) [a, b] = [b, a % b];
  return a;
}

let product = 0n;

/** Product of the primes below 2^16. */
function smallPrimes(): bigint {
  if (product) return product;
  const divisible = new Uint8Array(SMALL);
  let found: bigint[] = [];
  for (let number = 2; number < SMALL; number++) {
    if (divisible[number]) continue;
    found.push(BigInt(number));
    for (let multiple = number * number; multiple < SMALL; multiple += number) divisible[multiple] = 1;
  }
  while (found.length > 1) found = found.flatMap((each, place) => (place % 2 ? [] : [each * (found[place + 1] ?? 1n)]));
  return (product = found[0]!);
}
