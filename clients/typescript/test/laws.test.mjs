/**
 * Reports follow the published laws: shares of 5,000 draws from a fixed stream, with a false alarm below 1e-10 for each
 * share by Chernoff's bound. The vectors say the same draw by draw; this says it where the reference is silent.
 */

import assert from "node:assert/strict";
import test from "node:test";
import { mechanism } from "../dist/mechanisms.js";
import { SystemEntropy } from "../dist/words.js";
import { Section } from "../dist/section.js";
import { ADD_ONS, Stream, madeOf } from "./given.mjs";

const N = 5_000;
const LEAST = 1e-10;
const kind = (wanted) => (error) => error.kind === wanted;
const { abs, cos, exp, log, sin, sqrt } = Math;

/** The share of what is drawn that `holds`. */
function shareOf(draw, holds, seed = 77) {
  const words = new Stream(new Uint8Array(32).fill(seed));
  let hits = 0;
  for (let i = 0; i < N; i++) hits += Number(holds(draw(words)));
  return hits / N;
}

/** At most the chance of a share of N draws as far from `p` as this one: Chernoff (1952), with relative entropy. */
function chance(share, p) {
  const part = (one, other) => (one ? one * log(one / other) : 0);
  return 2 * exp(-N * (part(share, p) + part(1 - share, 1 - p)));
}

const reported = ({ name, ...given }, value, holds) => {
  const made = madeOf({ name, ...given });
  return shareOf((words) => made.randomize(value, words), holds);
};

const bit = (place) => (report) => Boolean(report[place >> 3] & (128 >> (place & 7)));
const hash = ([a, b], value, g) => ((((a * value + b) % (1n << 64n)) >> 32n) * g) >> 32n;
const laplace = (d, rate) => ((1 - exp(-rate)) / (1 + exp(-rate))) * exp(-rate * abs(d));
const grid = { lower: 0, upper: 8, epsilon: 2, grid: 1 };
const krr = (epsilon) => exp(epsilon) / (exp(epsilon) + 4);
const CASES = [
  ["krr", { k: 5, epsilon: 1 }, 3, krr(1), (r) => r === 3n],
  ["krr", { k: 5, epsilon: 1 }, 3, 1 / (exp(1) + 4), (r) => r === 4n],
  ["unary", { k: 9, epsilon: 1.5 }, 4, 1 / 2, bit(4)],
  ["unary", { k: 9, epsilon: 1.5 }, 4, 1 / (exp(1.5) + 1), bit(8)],
  ["unary", { k: 9, epsilon: 1.5, encoding: "symmetric" }, 4, exp(0.75) / (exp(0.75) + 1), bit(4)],
  ["local_hashing", { k: 300, epsilon: 1 }, 299, exp(1) / (exp(1) + 3), (r) => hash(r, 299n, 4n) === r[2]],
  ["subset_selection", { k: 10, epsilon: 1 }, 9, (3 * exp(1)) / (3 * exp(1) + 7), bit(9)],
  ["subset_selection", { k: 10, epsilon: 1 }, 9, (((3 * exp(1)) / (3 * exp(1) + 7)) * 2 + (7 / (3 * exp(1) + 7)) * 3) / 9, bit(0)],
  // 4 blocks of 8 reports; symbol 6 owns the reports of block 2 whose second bit is 0
  ["hadamard", { k: 20, epsilon: 2 }, 6, exp(2) / (exp(2) + 7), (r) => r / 8n === 2n && !(r & 2n)],
  ["laplace", grid, 5, laplace(0, 0.25), (r) => r === 5n],
  ["laplace", grid, 5, laplace(3, 0.25), (r) => r === 2n],
  ["laplace", { ...grid, epsilon: 40 }, 2.25, 0.25 * laplace(0, 5) + 0.75 * laplace(1, 5), (r) => r === 3n],
  ["window", { ...grid, window: 4 }, 5, exp(2) / (exp(2) + 2) / 4, (r) => r === 6n],
  ["window", { ...grid, window: 4 }, 5, 2 / (exp(2) + 2) / 8, (r) => r === 1n],
];

for (const [name, parameters, value, p, holds] of CASES) {
  test(`${name} ${JSON.stringify(parameters)} has a share of ${p.toFixed(4)}`, () => {
    assert.ok(chance(reported({ name, ...parameters }, value, holds), p) > LEAST);
  });
}

test("an epsilon that is off by a third is noticed", () => {
  const [name, parameters, value, , holds] = CASES[0];
  assert.ok(chance(reported({ name, ...parameters, epsilon: 1.33 }, value, holds), krr(1)) < LEAST);
});

const keep = (k, epsilon) => exp(epsilon) / (exp(epsilon) + k - 1);
const JOINT = { name: "joint", parts: [{ name: "krr", k: 3, epsilon: 1 }, { name: "krr", k: 2, epsilon: 0.5 }] };
const PAIRS = [
  [[2n, 1n], keep(3, 1) * keep(2, 0.5)],
  [[0n, 1n], ((1 - keep(3, 1)) / 2) * keep(2, 0.5)],
  [[2n, 0n], keep(3, 1) * (1 - keep(2, 0.5))],
];

for (const [pair, p] of PAIRS) {
  test(`answers ${pair} to two questions come with the product of their chances, ${p.toFixed(4)}`, () => {
    const holds = (report) => report.every((one, place) => one === pair[place]);
    assert.ok(chance(reported(JOINT, [2, 1], holds), p) > LEAST);
    const other = { ...JOINT, parts: JOINT.parts.map((part) => ({ ...part, epsilon: 3 })) };
    assert.ok(chance(reported(other, [2, 1], holds), p) < LEAST, "other epsilons are noticed");
  });
}

const ONE = { ...JOINT, name: "one", weights: [3, 1] };
const DRAWN = [
  [[0n, 2n], 0.75 * keep(3, 1)],
  [[1n, 1n], 0.25 * keep(2, 0.5)],
  [[1n, 0n], 0.25 * (1 - keep(2, 0.5))],
];

for (const [[question, answer], p] of DRAWN) {
  test(`question ${question} is drawn and answered by ${answer} as often as its weight and its law say, ${p.toFixed(4)}`, () => {
    const holds = (report) => report[0] === question && report[1] === answer;
    assert.ok(chance(reported(ONE, [2, 1], holds), p) > LEAST);
    assert.ok(chance(reported({ ...ONE, weights: [1, 1] }, [2, 1], holds), p) < LEAST, "other weights are noticed");
  });
}

test("a drawn report is a question, the report to it and zeros", () => {
  const made = madeOf({ name: "one", weights: [1, 1], parts: [JOINT.parts[0], { name: "krr", k: 300, epsilon: 1 }] });
  for (const wrong of [[], [0, 0], [2, 0, 0], [0, 3, 0], [0, 1, 1], [1, 1, 44], [0, 1, 0, 0]]) {
    assert.throws(() => made.decode(Uint8Array.from(wrong)), kind("data"), String(wrong));
  }
  for (const wrong of [1n, [1n], [0n, 1n, 0n], [2n, 1n], [0n, 3n]]) assert.throws(() => made.encode(wrong), kind("data"));
  assert.deepEqual(made.encode(made.decode(Uint8Array.of(0, 2, 0))), Uint8Array.of(0, 2, 0));
});

/** The inner product of a vector with the direction of a report, from the text of the reference: SplitMix64, Box-Muller. */
function along(report, vector) {
  const wrap = (x) => x & 0xffffffffffffffffn;
  const mixed = (word) => {
    word = wrap((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n);
    word = wrap((word ^ (word >> 27n)) * 0x94d049bb133111ebn);
    return word ^ (word >> 31n);
  };
  const pairs = [1n, 2n].map((place) => mixed(wrap(mixed(report & ~1n) + place * 0x9e3779b97f4a7c15n)));
  const polar = pairs.map((bits) => [sqrt(-2 * log((Number(bits & 0xffffffffn) + 0.5) / 2 ** 32)), Number(bits >> 32n) * ((2 * Math.PI) / 2 ** 32)]);
  const normal = [...polar.map(([r, angle]) => r * cos(angle)), ...polar.map(([r, angle]) => r * sin(angle))];
  return vector.reduce((sum, x, place) => sum + x * normal[place], 0) * (report & 1n ? -1 : 1);
}

test("a reported direction points along the vector as often as its law says, whatever its length", () => {
  const given = { name: "closest_direction", d: 2, radius: 2, epsilon: 1.5, axes: 3 };
  const p = (epsilon) => keep(6, epsilon) + (2 * (1 - keep(6, epsilon))) / 5; // the held one, or one of two other pairs
  for (const [vector, lifted] of [[[1.2, -0.4], [0.6, -0.2, sqrt(0.6)]], [[0, 9], [0, 1, 0]], [[0, 0], [0, 0, 1]]]) {
    const share = reported(given, vector, (report) => along(report, lifted) > 0);
    assert.ok(chance(share, p(1.5)) > LEAST && chance(share, p(1)) < LEAST, String(vector));
  }
});

/** A value from 0 to 1 that is rounded so, and what comes of it. */
function rounded(part, held, holds, missing) {
  const k = part.rounding === "digits" ? 9 : part.points;
  const table = { question: "?", values: [{ name: "x", lower: 0, upper: 1, ...missing }], symbols: [[{ of: ["x"], ...part }]] };
  const found = ADD_ONS.asks.read(new Section("asks", table), mechanism(k === 9 ? "none" : "krr", { k, ...(k !== 9 && { epsilon: 1 }) }), []);
  const checked = found.check(held);
  return shareOf((words) => found.answers(checked, words), holds);
}

const point = (place) => ([found]) => found === place;
const ROUNDED = [
  [{ rounding: "even", points: 5 }, 0.55, point(2), 0.8],
  [{ rounding: "even", points: 5 }, 0.55, point(3), 0.2],
  [{ rounding: "even", points: 5, of: ["x", "x"] }, 0.75, point(1), 1], // the square of 1/4 stands on the grid of 0 to 1/4
  [{ rounding: "gaps", points: 6 }, 0.55, point(3), 0.2, { missing: "none" }],
  [{ rounding: "gaps", points: 6 }, null, point(5), 1, { missing: "none" }],
  [{ rounding: "digits", points: 27 }, 13.25 / 26, ([a, b, c]) => a === 2 && b === 4 && c === 7, 0.25],
  [{ rounding: "digits", points: 27 }, 17.5 / 26, ([a, b, c]) => a === 0 && b === 3 && c === 8, 0.5], // 17 is 122, 18 is 200
  // the weights of a quadratic spline: (1/2 - t)^2 / 2, 3/4 - t^2, (1/2 + t)^2 / 2; here t = .1, and at the ends 1/2 and -1/2
  [{ rounding: "spline", points: 5 }, 1.6 / 3, point(1), 0.08],
  [{ rounding: "spline", points: 5 }, 1.6 / 3, point(2), 0.74],
  [{ rounding: "spline", points: 5 }, 1.6 / 3, point(3), 0.18],
  [{ rounding: "spline", points: 5 }, 0, point(0), 0.5],
  [{ rounding: "spline", points: 5 }, 0, point(1), 0.5],
  [{ rounding: "spline", points: 5 }, 1, point(4), 0.5],
  [{ rounding: "spline", points: 3 }, 0.9, point(2), 0.405],
  [{ rounding: "spline", points: 3 }, 0.9, point(0), 0.005],
];

for (const [part, held, holds, p, missing] of ROUNDED) {
  test(`${held} is rounded to one place of ${JSON.stringify(part)} in a share of ${p}`, () => {
    assert.ok(chance(rounded(part, held, holds, missing), p) > LEAST);
  });
}

test("a spline keeps the mean of what it rounds, and its square but for a quarter of a squared step", () => {
  const [held, step] = [1.6 / 3, 1 / 3];
  const shares = Array.from({ length: 5 }, (_, place) => rounded({ rounding: "spline", points: 5 }, held, point(place)));
  const moment = (of) => shares.reduce((sum, share, place) => sum + share * of((place - 0.5) * step), 0);
  assert.deepEqual([shares[0], shares[4]], [0, 0]); // so that all lies between 1/6 and 5/6
  const far = (2 / 3) * sqrt(log(2 / LEAST) / (2 * N)); // Hoeffding (1963)
  const square = held ** 2 + step ** 2 / 4;
  assert.ok(abs(moment((x) => x) - held) < far && abs(moment((x) => x * x) - square) < far);
  assert.ok(abs(0.5 ** 2 - square) > far, "always the nearest place is noticed");
});

test("a rounding by another law is noticed", () => {
  assert.ok(chance(rounded({ rounding: "even", points: 4 }, 1.6 / 3, point(2)), 0.74) < LEAST);
});

test("where people send dummies they come at their rate, and the answer in either place", async () => {
  const { fill } = await import("../dist/mechanisms.js");
  const words = new Stream(new Uint8Array(32).fill(5));
  let [dummies, first] = [0, 0];
  for (let i = 0; i < N; i++) {
    const pair = fill([2], 4, 0.75, words);
    dummies += Number(!pair.includes(4n));
    first += Number(pair[0] === 2n && pair[1] === 4n);
  }
  assert.ok(chance(dummies / N, 0.75) > LEAST && chance(first / N, 0.125) > LEAST);
});

test("the platform's bits are fair, in blocks of any length, and never come twice", () => {
  const words = new SystemEntropy();
  const bytes = words.bytes(200_000);
  let ones = 0;
  for (const byte of bytes) for (let left = byte; left; left &= left - 1) ones++;
  assert.ok(abs(ones - 800_000) / sqrt(400_000) < 6.5); // a false alarm below 1e-10
  assert.ok(bytes.subarray(-100).some((byte) => byte), "the last block is drawn, too");
  assert.notEqual(words.word(), words.word());
  assert.equal(words.bits(0), 0n);
  for (let i = 0; i < 1000; i++) assert.ok(words.below(3n) < 3n && words.bits(3) < 8n);
});
