/**
 * A vector, of which a random direction is reported that is likelier the closest one.
 *
 * Floating-point numbers decide which of the drawn directions is held, and whole numbers, by k-ary response, which one
 * is reported: the promise does not rest on doubles. Sines and logarithms differ between platforms in their last bit,
 * so that two languages could hold another one of two directions that are equally close to 15 digits.
 */

import { positive, privacyBudget, whole } from "./checks.js";
import { refuse } from "./errors.js";
import { WORD, krrMasses } from "./exact.js";
import { type Kinds, bad, numbered, respond } from "./mechanisms.js";

export const MOST_COORDINATES = 2 ** 16;
const MOST_DRAWN = 2 ** 24; // normal numbers that a device makes for one report
const GOLDEN = 0x9e3779b97f4a7c15n;

export const VECTORS: Kinds = {
  closest_direction: {
    needs: ["d", "radius", "epsilon", "axes"],
    make: (given) => {
      const d = whole("d", given["d"], 1, MOST_COORDINATES);
      const [radius, epsilon] = [positive("radius", given["radius"]), privacyBudget("epsilon", given["epsilon"])];
      const axes = whole("axes", given["axes"], 1, 4096);
      if (axes * (d + 1) > MOST_DRAWN) throw refuse("axes", `at most ${Math.floor(MOST_DRAWN / (d + 1))} for ${d} coordinates`, axes);
      const count = 2n * BigInt(axes);
      const masses = krrMasses(count, epsilon);
      const check = (value: unknown) => coordinates(value, d);
      return {
        ...numbered(WORD),
        d,
        epsilon,
        check,
        randomize: (value, words) => {
          const held = lifted(check(value), radius);
          const drawn = Array.from({ length: axes }, () => words.word() & ~1n);
          const found = respond(closest(drawn, held), count, masses, words);
          return drawn[Number(found >> 1n)]! | (found & 1n);
        },
      };
    },
  },
};

/** So many finite numbers, from an array of them. */
export function coordinates(value: unknown, count: number, name = "value"): readonly number[] {
  const found: readonly unknown[] = Array.isArray(value) || ArrayBuffer.isView(value) ? Array.from(value as ArrayLike<unknown> & object) : [];
  if (found.length !== count || !found.every(Number.isFinite)) throw bad(`\`${name}\` must be ${count} finite numbers.`);
  return found as number[];
}

/** The vector over the radius, shortened to length 1, and one coordinate more that makes it as long. */
function lifted(vector: readonly number[], radius: number): number[] {
  const squares = (numbers: readonly number[]) => numbers.reduce((sum, x) => sum + x * x, 0);
  const peak = vector.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1;
  const parts = vector.map((x) => x / peak);
  const scale = Math.min(peak / radius, 1 / (Math.sqrt(squares(parts)) || 1));
  const short = parts.map((x) => x * scale);
  return [...short, Math.sqrt(Math.max(0, 1 - squares(short)))];
}

/** Twice the place of the number whose direction is closest to this one, plus 1 where the opposite one is. */
function closest(drawn: readonly bigint[], held: readonly number[]): bigint {
  const products = drawn.map((word) => inner(word, held));
  const place = products.reduce((best, each, place) => (Math.abs(each) > Math.abs(products[best]!) ? place : best), 0);
  return BigInt(2 * place + Number(products[place]! < 0));
}

/** The inner product with normal coordinates of a word: SplitMix64 of word and place, then Box-Muller. */
function inner(word: bigint, held: readonly number[]): number {
  const [half, start] = [Math.ceil(held.length / 2), mixed(word)];
  let total = 0;
  for (let place = 0; place < half; place++) {
    const bits = mixed(BigInt.asUintN(64, start + BigInt(place + 1) * GOLDEN));
    const angle = Number(bits >> 32n) * ((2 * Math.PI) / 2 ** 32);
    let along = Math.cos(angle) * held[place]!;
    if (half + place < held.length) along += Math.sin(angle) * held[half + place]!;
    total += along * Math.sqrt(-2 * Math.log((Number(bits & 0xffffffffn) + 0.5) / 2 ** 32));
  }
  return total;
}

/** Steele, Lea, Flood (2014), Fast Splittable Pseudorandom Number Generators, OOPSLA: the mixer of SplitMix64. */
function mixed(word: bigint): bigint {
  const once = BigInt.asUintN(64, (word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n);
  const twice = BigInt.asUintN(64, (once ^ (once >> 27n)) * 0x94d049bb133111ebn);
  return twice ^ (twice >> 31n);
}
