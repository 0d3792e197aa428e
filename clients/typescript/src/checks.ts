/** Range checks for parameters, as `dovetail_protocol.checks` has them. */

import { refuse } from "./errors.js";

export function whole(name: string, value: unknown, least: number, most = Infinity): number {
  const wanted = `a whole number, at least ${least}` + (most === Infinity ? "" : ` and at most ${most}`);
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) throw refuse(name, wanted, value);
  return value;
}

/** A finite number that `fits`. */
export function real(name: string, value: unknown, wanted = "a finite number", fits = (_: number) => true): number {
  if (typeof value !== "number" || !Number.isFinite(value) || !fits(value)) throw refuse(name, wanted, value);
  return value;
}

export function positive(name: string, value: unknown): number {
  return real(name, value, "a finite number above 0", (found) => found > 0);
}

export function notNegative(name: string, value: unknown): number {
  return real(name, value, "a finite number, at least 0", (found) => found >= 0);
}

export function probability(name: string, value: unknown): number {
  return real(name, value, "a number strictly between 0 and 1", (found) => found > 0 && found < 1);
}

/** A probability that can be drawn by as it is written. */
export function rate(name: string, value: unknown): number {
  return real(name, value, "above 0 and at most 1, a multiple of 2^-32", (found) => found > 0 && found <= 1 && Number.isInteger(found * 2 ** 32));
}

/** A local epsilon, nats. */
export function privacyBudget(name: string, value: unknown, most = 700): number {
  return real(name, value, `a number above 0 and at most ${most} (nats)`, (found) => found > 0 && found <= most);
}

const MOST_STEPS = 2 ** 31;

/** A public range of numbers, and how many steps of this width its grid has. */
export function numberGrid(lower: unknown, upper: unknown, grid: unknown): [number, number, number] {
  const [low, high] = [real("lower", lower), real("upper", upper)];
  const range = high - low;
  if (!(range >= 1e-75 && range <= 1e75)) throw refuse("upper", `above \`lower\` = ${low} by 1e-75 to 1e75`, high);
  const step = positive("grid", grid);
  const steps = range / step;
  if (!(steps > 0.5 && steps < MOST_STEPS + 0.5) || Math.abs(steps - halfEven(steps)) > 1e-9 * steps) {
    throw refuse("grid", `a whole fraction 1/m of the range ${range}, m at most ${MOST_STEPS}`, step);
  }
  return [low, high, halfEven(steps)];
}

/** The nearest whole number, an even one of two; x from 0 to 2^51. */
function halfEven(x: number): number {
  return x + 2 ** 52 - 2 ** 52;
}
