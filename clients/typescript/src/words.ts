/** Random bits as the exact samplers ask for them. */

import { unpack } from "./bytes.js";

const MOST = 65536; // bytes that one call of getRandomValues gives

/** A source of random bits; law: all bits ever returned are independent and fair. */
export abstract class Words {
  abstract bytes(count: number): Uint8Array;

  /** A uniform whole number of `count` bits: whole bytes, big endian, shifted down. */
  bits(count: number): bigint {
    const size = Math.ceil(count / 8);
    return unpack(this.bytes(size)) >> BigInt(8 * size - count);
  }

  /** A uniform 64-bit word. */
  word(): bigint {
    return this.bits(64);
  }

  /** A whole number, exactly uniform on [0, bound), by rejection; bound at least 1. */
  below(bound: bigint): bigint {
    const size = bitLength(bound - 1n);
    for (;;) {
      const drawn = this.bits(size);
      if (drawn < bound) return drawn;
    }
  }
}

/** Randomness that protects people: the platform's for every draw. There is no seeded one in this package. */
export class SystemEntropy extends Words {
  override bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let start = 0; start < count; start += MOST) crypto.getRandomValues(bytes.subarray(start, start + MOST));
    return bytes;
  }
}

export function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}
