/** Bytes as whole numbers, as text, and one after the other. */

export type Bytes = Uint8Array<ArrayBuffer>;

export function join(...parts: readonly Uint8Array[]): Bytes {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let place = 0;
  for (const part of parts) {
    all.set(part, place);
    place += part.length;
  }
  return all;
}

export function ascii(text: string): Bytes {
  return new TextEncoder().encode(text) as Bytes;
}

/** A whole number as so many bytes, big endian; negative ones as two's complement. */
export function pack(value: bigint, length: number): Bytes {
  const bytes = new Uint8Array(length);
  for (let place = length - 1, left = value; place >= 0; place--, left >>= 8n) bytes[place] = Number(left & 255n);
  return bytes;
}

export function unpack(bytes: Uint8Array): bigint {
  let hex = "0x0";
  for (const byte of bytes) hex += byte.toString(16).padStart(2, "0");
  return BigInt(hex);
}

export function equal(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, place) => byte === other[place]);
}

/** Base64url without padding. */
export function text(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** Bytes of base64url without padding; null for anything else, also for a second spelling of the same bytes. */
export function raw(encoded: string): Bytes | null {
  if (!/^[\w-]*$/.test(encoded) || encoded.length % 4 === 1) return null;
  const binary = atob(encoded.replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  return text(bytes) === encoded ? bytes : null;
}

/** Where `part` begins for the last time, or -1. */
export function lastIndexOf(bytes: Uint8Array, part: Uint8Array): number {
  for (let start = bytes.length - part.length; start >= 0; start--) {
    if (part.every((byte, place) => byte === bytes[start + place])) return start;
  }
  return -1;
}

/** What Python calls white space, which is not what JavaScript does. */
export const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
