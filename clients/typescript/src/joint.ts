/** Answers to several questions in one report: each is randomized by itself, and all of them stay together. */

import { refuse } from "./errors.js";
import { type Fraction, asWritten, plus } from "./exact.js";
import { type Input, type Mechanism, bad, several } from "./mechanisms.js";

const MOST_PARTS = 16;

/** One report about several questions, each by a mechanism and with randomness of its own; epsilons add. */
export function joint(parts: readonly Mechanism[]): Mechanism {
  if (parts.length < 2 || parts.length > MOST_PARTS) throw refuse("parts", `2 to ${MOST_PARTS} mechanisms`, parts.length);
  for (const { name, epsilon, d } of parts) {
    if (d || epsilon === Infinity) throw refuse("parts", "mechanisms of a symbol or a number", name);
  }
  const check = (value: unknown): readonly Input[] => {
    if (!Array.isArray(value) || value.length !== parts.length) throw bad(`\`value\` must have ${parts.length} parts, one for each question.`);
    return parts.map((part, place) => part.check(value[place]));
  };
  return {
    ...several(parts),
    name: "joint",
    epsilon: decimalAtLeast(parts.map(({ epsilon }) => asWritten(epsilon)).reduce(plus)),
    parts,
    parameters: { parts: parts.map(({ name, parameters }) => ({ name, ...parameters })) },
    check,
    randomize: (value, words) => {
      const checked = check(value); // all of it before anything is drawn
      return parts.map((part, place) => part.randomize(checked[place], words));
    },
  };
}

/** The double nearest to a sum of decimals, or the next one, that is at least the sum as it is written. */
export function decimalAtLeast({ n, d }: Fraction): number {
  let places = 0;
  while (10n ** BigInt(places) % d) places++;
  const near = Number(`${(n * 10n ** BigInt(places)) / d}e-${places}`); // correctly rounded, as no quotient of doubles is
  const written = asWritten(near);
  if (written.n * d >= n * written.d) return near;
  const bits = new BigUint64Array(Float64Array.of(near).buffer);
  bits[0]!++;
  return new Float64Array(bits.buffer)[0]!;
}
