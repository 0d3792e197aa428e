/**
 * Reports follow the published laws: shares of 5,000 draws from a fixed stream, to within 6.5 standard errors (a false
 * alarm below 1e-10 for each share). The vectors say the same draw by draw; this says it where the reference is silent.
 */

import assert from "node:assert/strict";
import test from "node:test";
import { mechanism } from "../dist/mechanisms.js";
import { SystemEntropy } from "../dist/words.js";
import { Stream } from "./given.mjs";

const N = 5_000;
const { exp } = Math;

/** How many standard errors the share of draws that `holds` is away from `p`. */
function away(name, parameters, value, p, holds, seed = 77) {
  const [made, words] = [mechanism(name, parameters), new Stream(new Uint8Array(32).fill(seed))];
  let hits = 0;
  for (let i = 0; i < N; i++) hits += Number(holds(made.randomize(value, words)));
  return Math.abs(hits - N * p) / Math.sqrt(N * p * (1 - p));
}

const bit = (place) => (report) => Boolean(report[place >> 3] & (128 >> (place & 7)));
const hash = ([a, b], value, g) => ((((a * value + b) % (1n << 64n)) >> 32n) * g) >> 32n;
const laplace = (d, rate) => ((1 - exp(-rate)) / (1 + exp(-rate))) * exp(-rate * Math.abs(d));
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
    assert.ok(away(name, parameters, value, p, holds) < 6.5);
  });
}

test("an epsilon that is off by a third is noticed", () => {
  const [name, parameters, value, , holds] = CASES[0];
  assert.ok(away(name, { ...parameters, epsilon: 1.33 }, value, krr(1), holds) > 6.5);
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
  const within = (count, p) => Math.abs(count - N * p) / Math.sqrt(N * p * (1 - p)) < 6.5;
  assert.ok(within(dummies, 0.75) && within(first, 0.125));
});

test("the platform's bits are fair, in blocks of any length, and never come twice", () => {
  const words = new SystemEntropy();
  const bytes = words.bytes(200_000);
  let ones = 0;
  for (const byte of bytes) for (let left = byte; left; left &= left - 1) ones++;
  assert.ok(Math.abs(ones - 800_000) / Math.sqrt(400_000) < 6.5);
  assert.ok(bytes.subarray(-100).some((byte) => byte), "the last block is drawn, too");
  assert.notEqual(words.word(), words.word());
  assert.equal(words.bits(0), 0n);
  for (let i = 0; i < 1000; i++) assert.ok(words.below(3n) < 3n && words.bits(3) < 8n);
});
