/** One report about several questions: with the answers to all of them, or to one that the device draws. */

import { whole } from "./checks.js";
import { refuse } from "./errors.js";
import { type Fraction, asWritten, plus } from "./exact.js";
import { type Input, type Mechanism, bad, exact, several, symbol } from "./mechanisms.js";

const MOST_PARTS = 16;
const MOST_WEIGHT = 1000;

/** What takes an answer to each question, for a mechanism of each. */
function taking(parts: readonly Mechanism[], weights?: readonly number[]) {
  if (parts.length < 2 || parts.length > MOST_PARTS) throw refuse("parts", `2 to ${MOST_PARTS} mechanisms`, parts.length);
  for (const { name, epsilon, d } of parts) {
    if (d || epsilon === Infinity) throw refuse("parts", "mechanisms of a symbol or a number", name);
  }
  const check = (value: unknown): readonly Input[] => {
    if (!Array.isArray(value) || value.length !== parts.length) throw bad(`\`value\` must have ${parts.length} parts, one for each question.`);
    return parts.map((part, place) => part.check(value[place]));
  };
  return { parts, check, parameters: { weights, parts: parts.map(({ name, parameters }) => ({ name, ...parameters })) } };
}

/** One report about several questions, each by a mechanism and with randomness of its own; epsilons add. */
export function joint(parts: readonly Mechanism[]): Mechanism {
  const shared = taking(parts);
  return {
    ...several(parts),
    ...shared,
    name: "joint",
    epsilon: decimalAtLeast(parts.map(({ epsilon }) => asWritten(epsilon)).reduce(plus)),
    randomize: (value, words) => {
      const checked = shared.check(value); // all of it before anything is drawn
      return parts.map((part, place) => part.randomize(checked[place], words));
    },
  };
}

/** One report about one question, drawn as often as its weight says and whatever is held; the largest epsilon counts. */
export function drawn(parts: readonly Mechanism[], weights: readonly number[]): Mechanism {
  const shared = taking(parts, weights);
  if (weights.length !== parts.length) throw refuse("weights", "one for each of `parts`", weights.length);
  let total = 0;
  const ends = weights.map((weight) => (total += whole("weights", weight, 1, MOST_WEIGHT)));
  const reportBytes = 1 + Math.max(...parts.map((part) => part.reportBytes));
  const other = () => bad("`report` must be a question, the report to it and zeros.");
  const partOf = (place: unknown) => parts[symbol(place, parts.length, "report")]!;
  return {
    ...shared,
    name: "one",
    epsilon: Math.max(...parts.map(({ epsilon }) => epsilon)),
    reportBytes,
    randomize: (value, words) => {
      const checked = shared.check(value); // all of it, whichever is drawn
      const found = words.below(BigInt(total));
      const place = ends.findIndex((end) => found < end);
      return [BigInt(place), parts[place]!.randomize(checked[place], words)];
    },
    encode: (report) => {
      if (!Array.isArray(report) || report.length !== 2) throw other();
      const encoded = new Uint8Array(reportBytes); // with zeros up to the longest one
      encoded.set(partOf(Number(report[0])).encode(report[1]), 1);
      encoded[0] = Number(report[0]);
      return encoded;
    },
    decode: (data) => {
      const whole = exact(data, reportBytes);
      const part = partOf(whole[0]);
      const end = 1 + part.reportBytes;
      if (whole.slice(end).some(Boolean)) throw other();
      return [BigInt(whole[0]!), part.decode(whole.slice(1, end))];
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
