/**
 * Probabilities as whole numbers: the thresholds that random words are compared with.
 *
 * Exact rational arithmetic, the same as `dovetail_protocol.exact_thresholds` digit for digit. An exponential is only
 * ever used through a bracket of fractions that contains it.
 */

import { refuse } from "./errors.js";
import { bitLength } from "./words.js";

export interface Fraction {
  readonly n: bigint;
  readonly d: bigint; // above 0
}

export const WORD = 1n << 64n; // a uniform 64-bit word stands for the interval [word, word + 1) / WORD

export function fraction(n: bigint, d: bigint = 1n): Fraction {
  let [a, b] = [n < 0n ? -n : n, d];
  while (b) [a, b] = [b, a % b];
  return { n: n / a, d: d / a };
}

export function plus(x: Fraction, y: Fraction): Fraction {
  return fraction(x.n * y.d + y.n * x.d, x.d * y.d);
}

export function minus(x: Fraction, y: Fraction): Fraction {
  return plus(x, { n: -y.n, d: y.d });
}

/** floor(n / d) for d above 0. */
export function floorDiv(n: bigint, d: bigint): bigint {
  return n < 0n ? -((-n + d - 1n) / d) : n / d;
}

/** The whole number nearest to n / d, an even one of two. */
export function nearest(n: bigint, d: bigint): bigint {
  const below = floorDiv(n, d);
  const rest = 2n * (n - below * d);
  return rest > d || (rest === d && below & 1n) ? below + 1n : below;
}

/** The decimal number that a file or a person wrote: ten reports of 0.1 cost 1. */
export function asWritten(value: number): Fraction {
  const [digits, exponent = "0"] = String(value).split("e") as [string, string?];
  const [whole, part = ""] = digits.split(".") as [string, string?];
  return scaled(BigInt(whole + part), Number(exponent) - part.length);
}

/** The double itself, as a fraction. */
export function exactly(value: number): Fraction {
  let exponent = 0;
  while (!Number.isInteger(value)) [value, exponent] = [value * 2, exponent + 1];
  return fraction(BigInt(value), 1n << BigInt(exponent));
}

function scaled(mantissa: bigint, exponent: number): Fraction {
  return exponent < 0 ? fraction(mantissa, 10n ** BigInt(-exponent)) : fraction(mantissa * 10n ** BigInt(exponent));
}

/** Fractions low <= e^x <= high of relative width below 10^(2 - digits). */
export function expBracket(x: Fraction, digits = 60): readonly [Fraction, Fraction] {
  if (x.n === 0n) return [fraction(1n), fraction(1n)];
  const least = 10n ** BigInt(digits - 1);
  const ends = [false, true].map((up) => expDecimal(...divide(x, digits, up), digits));
  const [[low, lowScale], [high, highScale]] = ends as [[bigint, number], [bigint, number]];
  // next-down and next-up of what is correctly rounded: off by half a unit at most
  return [low === least ? scaled(10n * low - 1n, lowScale - 1) : scaled(low - 1n, lowScale), scaled(high + 1n, highScale)];
}

/** x as `digits` decimal digits and an exponent, rounded down or up. */
function divide({ n, d }: Fraction, digits: number, up: boolean): [bigint, number] {
  const size = n < 0n ? -n : n;
  let exponent = String(size).length - String(d).length - digits;
  const top = exponent < 0 ? n * 10n ** BigInt(-exponent) : n;
  let bottom = exponent < 0 ? d : d * 10n ** BigInt(exponent);
  if ((n < 0n ? -top : top) >= bottom * 10n ** BigInt(digits)) [bottom, exponent] = [bottom * 10n, exponent + 1];
  return [up ? -floorDiv(-top, bottom) : floorDiv(top, bottom), exponent];
}

/** e^(mantissa 10^exponent) to `digits` decimal digits, correctly rounded, half to even. */
function expDecimal(mantissa: bigint, exponent: number, digits: number): [bigint, number] {
  for (let guard = 30; ; guard *= 2) {
    const places = digits + guard;
    const one = 10n ** BigInt(places);
    const ten = ln10(places);
    const shift = exponent + places;
    const argument = shift < 0 ? floorDiv(mantissa, 10n ** BigInt(-shift)) : mantissa * 10n ** BigInt(shift);
    const power = floorDiv(argument, ten);
    const rest = argument - power * ten;
    let sum = one;
    for (let term = one, i = 1n; (term = (term * rest) / one / i); i++) sum += term;
    // the argument is off by 1, the logarithm by 4 for each power, each of the terms by 2; all of it at most tenfold
    const error = 10n * (4n * (power < 0n ? -power : power) + 1000n);
    const unit = 10n ** BigInt(guard + 1);
    const found = nearest(sum - error, unit);
    if (found === nearest(sum + error, unit)) {
      const scale = Number(power) + 1 - digits;
      return found === 10n ** BigInt(digits) ? [found / 10n, scale + 1] : [found, scale];
    }
  }
}

const logarithms = new Map<number, bigint>();

/** ln 10 with so many decimal places, to within 4 units. */
function ln10(places: number): bigint {
  let found = logarithms.get(places);
  if (found === undefined) {
    const one = 10n ** BigInt(places + 5);
    const terms = [[46n, 31n], [34n, 49n], [20n, 161n]] as const;
    found = terms.reduce((sum, [times, base]) => sum + times * inverseTangent(base, one), 0n) / 100000n;
    logarithms.set(places, found);
  }
  return found;
}

/** artanh(1 / base) in fixed point. */
function inverseTangent(base: bigint, one: bigint): bigint {
  let sum = 0n;
  for (let power = one / base, i = 1n; power; power /= base * base, i += 2n) sum += power / i;
  return sum;
}

const kept = new Map<number, Fraction>(); // of public parameters only

/** Just below e^epsilon. */
export function mostOdds(epsilon: number): Fraction {
  let found = kept.get(epsilon);
  if (!found) kept.set(epsilon, (found = expBracket(exactly(epsilon))[0]));
  return found;
}

/** floor(scale e^x), x above 0. */
export function expFloor(x: number, scale = 1n): bigint {
  const { n, d } = mostOdds(x);
  return n > d ? (scale * n) / d : scale;
}

/** Whole masses (keep, lie) with keep + (k - 1) lie = 2^64 and keep / lie <= e^epsilon, as near as can be. */
export function krrMasses(k: bigint, epsilon: number): readonly [bigint, bigint] {
  const { n, d } = mostOdds(epsilon);
  const lie = -floorDiv(-WORD * d, n + (k - 1n) * d);
  const keep = WORD - (k - 1n) * lie;
  requireApart(keep, lie, epsilon);
  return [keep, lie];
}

/** Refuse an epsilon so small that the likelier masses of 64 bits are no larger than the others. */
export function requireApart(likelier: bigint, other: bigint, epsilon: number): void {
  if (likelier <= other) throw refuse("epsilon", "large enough for 64-bit probabilities", epsilon);
}

/** Whole masses (own bit, every other bit) out of 2^64 of unary encoding. */
export function unaryMasses(epsilon: number, symmetric: boolean): readonly [bigint, bigint] {
  return symmetric ? krrMasses(2n, epsilon / 2) : [WORD / 2n, krrMasses(2n, epsilon)[1]];
}

/** Whole masses (inside, low) with inside + steps low = 2^64 and inside / (width low) <= e^epsilon. */
export function windowMasses(steps: bigint, width: bigint, epsilon: number): readonly [bigint, bigint] {
  const { n, d } = mostOdds(epsilon);
  const low = -floorDiv(-WORD * d, width * n + steps * d);
  return [WORD - steps * low, low];
}

const DIGIT = 12; // bits that small rates split off a geometric number at a time
const LONGEST_TAIL = 8192n;

/** A draw of exactly Pr[c] proportional to e^(-rate c) on all whole numbers; rate above 0. */
export function geometric(rate: Fraction, word: () => bigint): bigint {
  for (let shift = 0, sum = 0n; ; shift += DIGIT) {
    const scaledRate = fraction(rate.n << BigInt(shift), rate.d);
    const last = -floorDiv(-45n * scaledRate.d, scaledRate.n) <= LONGEST_TAIL;
    sum += settle(scaledRate, last ? null : 1n << BigInt(DIGIT), word) << BigInt(shift);
    if (last) return sum;
  }
}

/** The geometric number on 0..size-1, or without end, that a uniform number of as many words as it takes stands for. */
function settle(rate: Fraction, size: bigint | null, word: () => bigint): bigint {
  let uniform = word();
  for (let bits = 64; ; bits += 64) {
    const found = resolve(rate, size, uniform, bits);
    if (found !== null) return found;
    uniform = (uniform << 64n) | word();
  }
}

/**
 * The c that every number in [uniform, uniform + 1) / 2^bits stands for, or null if it takes more bits.
 *
 * c >= m iff F(m - 1) <= U iff e^(-rate m) >= 1 - U (1 - e^(-rate size)): one binary digit of c after the other, from
 * the highest, in fixed point with brackets.
 */
function resolve(rate: Fraction, size: bigint | null, uniform: bigint, bits: number): bigint | null {
  const depth = Math.max(0, bitLength(rate.d) - bitLength(rate.n) + 1);
  const places = BigInt(bits + 2 * depth + 64);
  const one = 1n << places;
  const [endLow, endHigh] = size === null ? [0n, 0n] : fixed(fraction(rate.n * size, rate.d), places);
  const restLow = one + ((-(uniform + 1n) * (one - endLow)) >> BigInt(bits));
  const restHigh = one - ((uniform * (one - endHigh)) >> BigInt(bits));
  if (restLow <= 0n && size === null) return null; // the tail has no end
  const powers = [fixed(rate, places)];
  while (powers.at(-1)![1] > restLow && (size === null || 1n << BigInt(powers.length) < size)) {
    const [low, high] = powers.at(-1)!;
    powers.push([(low * low) >> places, ((high * high) >> places) + 1n]);
  }
  let [c, low, high] = [0n, one, one]; // low <= 2^places e^(-rate c) <= high
  for (let place = powers.length - 1; place >= 0; place--) {
    const [powerLow, powerHigh] = powers[place]!;
    const more = c + (1n << BigInt(place));
    const nextLow = (low * powerLow) >> places;
    const nextHigh = ((high * powerHigh) >> places) + 1n;
    if (size !== null && more >= size) continue;
    if (nextLow >= restHigh) [c, low, high] = [more, nextLow, nextHigh];
    else if (nextHigh > restLow) return null;
  }
  return c;
}

/** Bracket of e^-exponent in fixed point with `bits` fractional bits. */
function fixed(exponent: Fraction, bits: bigint): readonly [bigint, bigint] {
  const [low, high] = expBracket({ n: -exponent.n, d: exponent.d }, Math.floor(Number(bits) / 3) + 10);
  return [(low.n << bits) / low.d, (high.n << bits) / high.d + 1n];
}
