/**
 * The local randomizers, as `dovetail_protocol.mechanisms` has them: the same words lead to the same report.
 *
 * The samplers are exact but not constant-time: whoever can time this process is not kept out.
 */

import { type Bytes, join, pack, unpack } from "./bytes.js";
import { numberGrid, privacyBudget, whole } from "./checks.js";
import { DovetailError, leftOut, refuse } from "./errors.js";
import {
  WORD,
  exactly,
  expFloor,
  type Fraction,
  fraction,
  geometric,
  krrMasses,
  mostOdds,
  nearest,
  requireApart,
  unaryMasses,
  windowMasses,
} from "./exact.js";
import { type Words, bitLength } from "./words.js";

/** A report: a whole number, packed bits, the seeds and the bucket of local hashing, or one of several questions. */
export type Report = bigint | Bytes | readonly Report[];
/** What a mechanism takes: the number of a symbol or any number, an array of numbers, or an answer to each question. */
export type Input = number | readonly Input[];

export interface Mechanism {
  readonly name: string;
  /** Of one report, nats. */
  readonly epsilon: number;
  /** Length of an encoded report, the same for every value. */
  readonly reportBytes: number;
  /** Everything that a campaign file states of it. */
  readonly parameters: Parameters;
  /** Number of symbols, where values are 0..k-1. */
  readonly k?: number;
  /** Of coordinates, where values are arrays. */
  readonly d?: number;
  /** Of each question, where one report answers several. */
  readonly parts?: readonly Mechanism[];
  /** The value, or a `DovetailError` of kind "data" that does not repeat it. */
  check(value: unknown): Input;
  randomize(value: unknown, words: Words): Report;
  encode(report: Report): Bytes;
  decode(data: Uint8Array): Report;
}

export type Parameters = Readonly<Record<string, unknown>>;

const SYMBOLS = 2 ** 31;
const LISTED = 2 ** 24;

export function bad(message: string): DovetailError {
  return new DovetailError("data", message);
}

export function symbol(value: unknown, k: number, name = "value"): number {
  const found = k === 2 && typeof value === "boolean" ? Number(value) : value;
  if (typeof found !== "number" || !Number.isInteger(found) || found < 0 || found >= k) {
    throw bad(`\`${name}\` must be a whole number in 0..${k - 1}.`);
  }
  return found;
}

/** Bytes that hold any of 0..count-1. */
function size(count: bigint): number {
  return Math.ceil(bitLength(count - 1n) / 8);
}

export function exact(data: Uint8Array, length: number): Bytes {
  if (data.length !== length) throw bad(`An encoded report of this mechanism must be ${length} bytes.`);
  return new Uint8Array(data);
}

/** Encoding of whole numbers 0..count-1. */
export function numbered(count: bigint) {
  const reportBytes = size(count);
  const known = (report: Report): bigint => {
    if (typeof report !== "bigint" || report < 0n || report >= count) {
      throw bad(`\`report\` must be a whole number in 0..${count - 1n}.`);
    }
    return report;
  };
  return {
    reportBytes,
    encode: (report: Report) => pack(known(report), reportBytes),
    decode: (data: Uint8Array): Report => known(unpack(exact(data, reportBytes))),
  };
}

/** Encoding of several reports, one after the other. */
export function several(parts: readonly Pick<Mechanism, "reportBytes" | "encode" | "decode">[]) {
  const reportBytes = parts.reduce((sum, part) => sum + part.reportBytes, 0);
  return {
    reportBytes,
    encode: (report: Report) => {
      if (!Array.isArray(report) || report.length !== parts.length) throw bad(`\`report\` must have ${parts.length} parts.`);
      return join(...parts.map((part, place) => part.encode(report[place])));
    },
    decode: (data: Uint8Array): Report => {
      const whole = exact(data, reportBytes);
      let end = 0;
      return parts.map((part) => part.decode(whole.slice(end, (end += part.reportBytes))));
    },
  };
}

/** Encoding of k packed bits, of which the padding is zero; `accept` says which others are reports. */
function bits(k: number, accept: (bits: bigint) => boolean, wanted: string) {
  const reportBytes = Math.ceil(k / 8);
  const padding = BigInt(8 * reportBytes - k);
  const decode = (data: Uint8Array): Bytes => {
    const found = unpack(exact(data, reportBytes));
    if (found & ((1n << padding) - 1n) || !accept(found)) throw bad(`\`report\` must be packed bits ${wanted}.`);
    return new Uint8Array(data);
  };
  return { reportBytes, padding, decode, encode: (report: Report) => decode(report as Bytes) };
}

/** One report of k-ary randomized response: a uniform word keeps the value or names the offset of a lie. */
export function respond(value: bigint, k: bigint, [keep, lie]: readonly [bigint, bigint], words: Words): bigint {
  const word = words.word();
  return word < keep ? value : (value + 1n + (word - keep) / lie) % k;
}

/** What mechanisms of one of k symbols share. */
function symbols(given: Parameters, most = SYMBOLS, largest = 700) {
  const [k, epsilon] = [whole("k", given["k"], 2, most), privacyBudget("epsilon", given["epsilon"], largest)];
  return { k, epsilon, check: (value: unknown) => symbol(value, k) };
}

function krr(given: Parameters): Made {
  const shared = symbols(given);
  const { k, epsilon, check } = shared;
  const [count, masses] = [BigInt(k), krrMasses(BigInt(k), epsilon)];
  return {
    ...numbered(count),
    ...shared,
    randomize: (value, words) => respond(BigInt(check(value)), count, masses, words),
  };
}

function hadamard(given: Parameters): Made {
  const shared = symbols(given);
  const { k, epsilon, check } = shared;
  const count = BigInt(k);
  const blocks = 1n << BigInt(Math.min(bitLength(expFloor(epsilon)), bitLength(2n * count - 1n)) - 1);
  const width = 1n << BigInt(bitLength((count + blocks - 1n) / blocks));
  const masses = krrMasses(2n * blocks, epsilon);
  return {
    ...numbered(blocks * width),
    ...shared,
    randomize: (value, words) => {
      const own = BigInt(check(value));
      const half = respond(2n * (own % blocks), 2n * blocks, masses, words);
      const place = words.word() & (width / 2n - 1n);
      return (half / 2n) * width + element(own / blocks + 1n, half & 1n, place);
    },
  };
}

/** Number `place` of the y with parity(popcount(row & y)) = parity, numbered without the lowest bit of the row. */
function element(row: bigint, parity: bigint, place: bigint): bigint {
  const lowest = row & -row;
  const y = ((place & -lowest) << 1n) | (place & (lowest - 1n));
  return y | (lowest * ((popcount(row & y) + parity) & 1n));
}

function popcount(value: bigint): bigint {
  let count = 0n;
  for (let left = value; left; left &= left - 1n) count++;
  return count;
}

function unary(given: Parameters): Made {
  const shared = symbols(given, LISTED);
  const { k, epsilon, check } = shared;
  const encoding = given["encoding"];
  if (encoding !== "optimized" && encoding !== "symmetric") {
    throw refuse("encoding", '"optimized" or "symmetric"', encoding);
  }
  const [p, q] = unaryMasses(epsilon, encoding === "symmetric");
  const form = bits(k, () => true, `that are zero from bit ${k}`);
  return {
    ...form,
    ...shared,
    randomize: (value, words) => {
      const own = 1n << BigInt(k - 1 - check(value));
      const found = (coins(q, k, words) & ~own) | (own * coins(p, 1, words));
      return pack(found << form.padding, form.reportBytes);
    },
  };
}

/** `count` independent bits, each 1 with probability exactly mass / 2^64, all compared at once from the lowest place. */
function coins(mass: bigint, count: number, words: Words): bigint {
  let below = 0n;
  for (let place = 0n; place < 64n; place++) {
    const zeros = words.bits(count); // which numbers have a 0 here
    below = (mass >> place) & 1n ? below | zeros : below & zeros;
  }
  return below;
}

function localHashing(given: Parameters): Made {
  const shared = symbols(given, SYMBOLS, 11);
  const { epsilon, check } = shared;
  const g = (expFloor(epsilon, 2n) + 1n) / 2n + 1n;
  const masses = krrMasses(g, epsilon);
  const number = numbered(WORD);
  return {
    ...several([number, number, numbered(g)]),
    ...shared,
    randomize: (value, words) => {
      const own = BigInt(check(value));
      const [a, b] = [words.word(), words.word()];
      return [a, b, respond(((((a * own + b) % WORD) >> 32n) * g) >> 32n, g, masses, words)];
    },
  };
}

function subsetSelection(given: Parameters): Made {
  const shared = symbols(given, LISTED);
  const { k, epsilon, check } = shared;
  const { n, d } = mostOdds(epsilon);
  const chosen = nearest(BigInt(k) * d, n + d);
  const held = Math.min(Math.max(1, Number(chosen)), k - 1);
  const [inside, outside] = [BigInt(held) * n, BigInt(k - held) * d];
  const mass = (WORD * inside) / (inside + outside);
  requireApart(mass * BigInt(k - held), (WORD - mass) * BigInt(held), epsilon);
  const form = bits(k, (found) => popcount(found) === BigInt(held), `with ${held} of ${k} set`);
  return {
    ...form,
    ...shared,
    randomize: (value, words) => {
      const own = check(value);
      const mine = words.word() < mass;
      const set = new Uint8Array(form.reportBytes);
      const mark = (place: number) => (set[place >> 3]! |= 128 >> (place & 7));
      for (const other of subset(k - 1, mine ? held - 1 : held, words)) mark(other + Number(other >= own));
      if (mine) mark(own);
      return set;
    },
  };
}

/** `size` different numbers of 0..count-1, every such set equally likely: Floyd's algorithm. */
function subset(count: number, size: number, words: Words): Set<number> {
  const chosen = new Set<number>();
  for (let last = count - size; last < count; last++) {
    const drawn = Number(words.below(BigInt(last + 1)));
    chosen.add(chosen.has(drawn) ? last : drawn);
  }
  return chosen;
}

/** What laplace and window share: numbers of a range, rounded at random to a grid point beside them. */
function grid(given: Parameters) {
  const [lower, upper, steps] = numberGrid(given["lower"], given["upper"], given["grid"]);
  const check = (value: unknown): number => {
    if (typeof value !== "number" || !(value >= lower && value <= upper)) {
      throw bad(`\`value\` must be a number in [${lower}, ${upper}].`);
    }
    return value;
  };
  const point = (value: unknown, word: bigint): bigint => {
    const scaled = ((check(value) - lower) / (upper - lower)) * steps;
    const below = Math.floor(scaled);
    return BigInt(below) + (word < BigInt(Math.floor((scaled - below) * 2 ** 64)) ? 1n : 0n);
  };
  return { steps, check, point };
}

const FARTHEST = 1n << 62n; // an encoded report is cut off there
const LONGEST = 2 ** 52; // grid steps that the noise may typically span

function laplace(given: Parameters): Made {
  const { steps, check, point } = grid(given);
  const epsilon = privacyBudget("epsilon", given["epsilon"]);
  if (steps > epsilon * LONGEST) throw refuse("epsilon", `at least ${steps / LONGEST} on a grid of ${steps} steps`, epsilon);
  const double = exactly(epsilon);
  const rate: Fraction = fraction(double.n, double.d * BigInt(steps));
  return {
    epsilon,
    reportBytes: 8,
    check,
    randomize: (value, words) => {
      const word = () => words.word();
      const start = point(value, word());
      const up = geometric(rate, word);
      return start + up - geometric(rate, word);
    },
    encode: (report) => {
      if (typeof report !== "bigint") throw bad("`report` must be a whole number of grid steps.");
      return pack(report > FARTHEST ? FARTHEST : report < -FARTHEST ? -FARTHEST : report, 8);
    },
    decode: (data) => {
      const found = BigInt.asIntN(64, unpack(exact(data, 8)));
      if (found > FARTHEST || found < -FARTHEST) {
        throw bad("`report` must be a whole number of grid steps from -2^62 to 2^62.");
      }
      return found;
    },
  };
}

function window(given: Parameters): Made {
  const { steps, check, point } = grid(given);
  const epsilon = privacyBudget("epsilon", given["epsilon"]);
  const width = whole("window", given["window"], 1, steps);
  const [inside, low] = windowMasses(BigInt(steps), BigInt(width), epsilon);
  requireApart(inside, BigInt(width) * low, epsilon);
  const [span, outputs] = [BigInt(width), BigInt(steps + width)];
  return {
    ...numbered(outputs),
    epsilon,
    check,
    randomize: (value, words) => {
      const start = point(value, words.word());
      const word = words.word();
      // one of the outputs behind the window, around the end; else one inside it
      if (word < WORD - inside) return (start + span + word / low) % outputs;
      return start + words.below(span);
    },
  };
}

/** A symbol as it is, or the blank k: where only other people's dummies hide it. */
function unrandomized(given: Parameters): Made {
  const k = whole("k", given["k"], 2, LISTED);
  const check = (value: unknown) => symbol(value, k);
  return {
    ...numbered(BigInt(k + 1)),
    k,
    epsilon: Infinity,
    check,
    randomize: (value) => BigInt(check(value)),
  };
}

const SCALE = 2 ** 32;

/** The answers and, with probability `rate`, a uniform symbol or else the blank, in random order. */
export function fill(answers: readonly Input[], k: number, rate: number, words: Words): bigint[] {
  const blank = words.bits(32) >= BigInt(Math.ceil(rate * SCALE));
  const drawn = [...(answers as number[]).map(BigInt), blank ? BigInt(k) : words.below(BigInt(k))];
  for (let place = answers.length; place; place--) {
    const other = Number(words.below(BigInt(place + 1)));
    [drawn[place], drawn[other]] = [drawn[other]!, drawn[place]!];
  }
  return drawn;
}

type Made = Omit<Mechanism, "name" | "parameters">;

export interface Kind {
  readonly make: (given: Parameters) => Made;
  readonly needs: readonly string[];
  /** What else it takes, and what that is where it is left out. */
  readonly defaults?: Parameters;
}

export type Kinds = Readonly<Record<string, Kind>>;

export const KINDS: Kinds = {
  hadamard: { make: hadamard, needs: ["k", "epsilon"] },
  krr: { make: krr, needs: ["k", "epsilon"] },
  laplace: { make: laplace, needs: ["lower", "upper", "epsilon", "grid"] },
  local_hashing: { make: localHashing, needs: ["k", "epsilon"] },
  none: { make: unrandomized, needs: ["k"] },
  subset_selection: { make: subsetSelection, needs: ["k", "epsilon"] },
  unary: { make: unary, needs: ["k", "epsilon"], defaults: { encoding: "optimized" } },
  window: { make: window, needs: ["lower", "upper", "epsilon", "window", "grid"] },
};

/** The mechanism of this name; every parameter that has no fixed default must be stated. */
export function mechanism(name: string, given: Parameters, kinds = KINDS): Mechanism {
  if (name === "budget_laplace") throw leftOut(name);
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (!kind) throw refuse("mechanism", `one of ${Object.keys(kinds).join(", ")}`, name);
  const all: Parameters = { ...kind.defaults, ...given };
  const takes = [...kind.needs, ...Object.keys(kind.defaults ?? {})];
  const stated = Object.keys(all);
  if (stated.length > takes.length || takes.some((key) => all[key] === undefined)) {
    throw refuse(name, `stated by ${takes.join(", ")}`, stated.join(", "));
  }
  return { ...kind.make(all), name, parameters: Object.fromEntries(takes.map((key) => [key, all[key]])) };
}
