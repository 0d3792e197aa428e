/** What a campaign file says of dummies that its shuffler adds: what a device needs of it is what a batch costs. */

import type { Asked } from "./asks.js";
import { rate, whole } from "./checks.js";
import { config } from "./errors.js";
import { fraction } from "./exact.js";
import type { Mechanism } from "./mechanisms.js";
import { type Section, list } from "./section.js";

/** What a device takes for campaigns whose shuffler is trusted with the noise: `Device.open(file, { store, dummies })`. */
export interface Dummies {
  read(section: Section): AddedRule;
}

/** Dummies that the shuffler adds to every batch. */
export interface AddedRule {
  /** All that the file says of them. */
  readonly stated: unknown;
  /** What a batch costs a person who sends so many symbols as they are. */
  charged(symbols: number): { readonly epsilon: number; readonly delta: number };
  /** Whether they go with this randomizer, and with so many digits of one number. */
  fit(kind: Mechanism, asked: Asked | null): boolean;
}

export const dummies: Dummies = { read };

function read(section: Section): AddedRule {
  const epsilon = section.positive("epsilon");
  const byChance = Object.hasOwn(section.found, "kept");
  const rates = byChance ? ["kept", "more"].map((name) => section.read(name, undefined, rate)) : [];
  const delta = byChance ? 0 : section.probability("delta");
  const reaches = byChance ? [] : section.read("reaches", [], (path, found) => list(path, found).map((each) => whole(path, each, 1)));
  const variance = byChance ? null : reaches.length ? section.text("variance") : section.text("variance", null);
  const reach = byChance || reaches.length ? 0 : section.whole("reach", 1);
  section.finish();
  if (variance !== null) requireFraction(variance);
  const times = (symbols: number) => (reaches.length ? 1 : symbols);
  return {
    stated: [epsilon, delta, rates, reaches, reach, variance],
    charged: (symbols) => ({ epsilon: times(symbols) * epsilon, delta: times(symbols) * delta }),
    fit: ({ name }, asked) => (name === "none" || (name === "krr" && !byChance)) && (asked?.digits ?? 0) === reaches.length,
  };
}

/** Refuse what is no fraction above 0 in lowest terms as it is written, such as "1715/4". */
function requireFraction(text: string): void {
  const written = /^[1-9]\d*(\/([2-9]|[1-9]\d+))?$/.test(text);
  const [n = 0n, d = 1n] = written ? text.split("/").map(BigInt) : [];
  if (!n || (n | d) >> 53n || fraction(n, d).d !== d) throw config("`dummies.variance` must be a fraction above 0 in lowest terms.");
}
