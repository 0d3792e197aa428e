/** How one report is delivered, as a state machine without I/O: events in, effects out. */

import { type DeliveryEffect, type DeliveryState, type EventName, FINAL, LATER, TRANSITIONS } from "./delivery_table.js";
import type { Answer } from "./message.js";
import type { Words } from "./words.js";

export interface DeliveryEvent {
  readonly name: EventName;
  /** Kind of a refusal. */
  readonly reason: string;
  /** Seconds that the service asks to wait. */
  readonly after: number;
}

export interface Delivery {
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly wait: number;
  readonly reason: string;
}

const BASE = 1; // seconds
const LONGEST = 3600;
const OBEYED = 86400; // no service keeps a device waiting longer than this

/** The longest wait of all, seconds. */
export const MOST_WAIT = LONGEST + OBEYED;

export function event(name: EventName, reason = "", after = 0): DeliveryEvent {
  return { name, reason, after };
}

/** The event of a refusal of this kind. */
export function refusal(kind: string, after = 0): DeliveryEvent {
  if (Object.hasOwn(FINAL, kind)) return event("final", kind);
  if (kind === "campaign") return event("outdated", kind);
  return event("later", Object.hasOwn(LATER, kind) ? kind : "unavailable", after);
}

export function answered({ kind, after }: Answer): DeliveryEvent {
  return kind === "accepted" ? event("accepted") : refusal(kind, after);
}

/** The machine after an event, and what is to be done now, in this order; waits are shorter than `longest`. */
export function advance(
  delivery: Delivery,
  { name, reason, after }: DeliveryEvent,
  words: Words,
  longest = LONGEST,
): [Delivery, readonly DeliveryEffect[]] {
  const found = TRANSITIONS[`${delivery.state} ${name}`];
  if (!found) return [delivery, []];
  const [state, effects] = found;
  const next = { ...delivery, state, reason, wait: 0 };
  if (!effects.includes("wait")) return [next, effects];
  // exponential and fully jittered, so that devices that failed together do not come back together
  const ceiling = Math.min(longest, LONGEST, BASE * 2 ** Math.min(delivery.attempts, 64));
  const wait = Math.min(Math.max(after, 0), OBEYED) + (ceiling * Number(words.bits(53))) / 2 ** 53;
  return [{ ...next, wait, attempts: delivery.attempts + 1 }, effects];
}
