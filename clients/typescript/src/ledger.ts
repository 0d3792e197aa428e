/**
 * What a device keeps, and the one rule for every place where it keeps it.
 *
 * Checking budgets, drawing, charging and storing is one atomic step, in which nothing is awaited but the store. So no
 * two tabs, processes or crashes ever draw two reports for one round.
 */

import { type Campaign, affordable } from "./campaign.js";
import { positive } from "./checks.js";
import { DovetailError } from "./errors.js";
import { type Fraction, asWritten, fraction, plus } from "./exact.js";
import { makeKey } from "./keys.js";

/** Where a device keeps its memory. */
export interface Store {
  /**
   * Change the memory in one atomic and durable step. `change` gets a copy of it, which it may edit; it awaits nothing
   * and may be called again where somebody else was first. What it throws leaves everything as it was.
   */
  transact<T>(change: (memory: Memory) => T): Promise<T>;
  /** The device's key pair; made at first use. */
  key(): Promise<CryptoKeyPair>;
  /** Only one of several tabs or processes sends at a time, where the platform can say so. */
  alone?<T>(work: () => Promise<T>): Promise<T>;
  close(): void;
}

export interface Report {
  state: "drawn" | "sealed" | "accepted" | "refused";
  /** Kind of the last refusal. */
  reason: string;
  /** `campaign.terms` of the version that it was drawn for. */
  form: string;
  id: string;
  plaintext: string;
  /** The version of the campaign that the message is made for, and the message. */
  digest: string;
  wire: string;
  attempts: number;
  /** Not sent before, by the device's clock. */
  due: number;
  /** The later round that it counted for, where it came late. */
  counted: number;
}

/** The token of one round; its bytes are empty where there are none yet, or none any more. */
export interface HeldToken {
  state: "asked" | "held" | "spent" | "refused";
  /** Why there will be none. */
  reason: string;
  /** The one-time key, until its report is settled. */
  secret: string;
  /** What hides the request, until it is answered. */
  salt: string;
  factor: string;
  token: string;
  /** Digest of the challenge and the key that it is for. */
  bound: string;
}

export interface Known {
  /** Pinned: the key that signed the first version seen, or its heir. */
  owner: string;
  version: number;
  signed: string;
  /** Nats, an exact fraction. */
  spent: string;
  doubted: boolean;
  /** As which class the device has joined. */
  joined: string;
  /** A version seen that asks something else, not followed. */
  newest: number;
  /** By round. */
  reports: Record<string, Report>;
  /** By round; one for each that was ever asked for, and no second one. */
  tokens?: Record<string, HeldToken>;
  /** Reports that are sent again in every round, by `campaign.terms`. */
  memoized?: Record<string, string>;
}

export interface Memory {
  schema: 1;
  /** The day on which it began. */
  since: string;
  total: number;
  perQuestion: number;
  owners: string[];
  /** Nats by question key, exact fractions. */
  questions: Record<string, string>;
  campaigns: Record<string, Known>;
}

/** A memory of nothing, with the safe limits: 10 nats in all, 5 for one question. */
export function begin(): Memory {
  return {
    schema: 1,
    since: new Date().toISOString().slice(0, 10),
    total: 10,
    perQuestion: 5,
    owners: [],
    questions: {},
    campaigns: {},
  };
}

/** The memory of its text; one that another version has written is refused, and nothing is drawn. */
export function checkMemory(found: Memory): Memory {
  if (found?.schema !== 1) throw new DovetailError("storage", "what this device keeps was written by another version of this software.");
  return found;
}

/** The question that budgets are counted by: its words, whatever their case and what stands between them. */
export function questionKey(question: string): string {
  return (question.normalize("NFKC").toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).join(" ");
}

function parse(spent: string | undefined): Fraction {
  const [n, d] = (spent ?? "0/1").split("/");
  return { n: BigInt(n!), d: BigInt(d!) };
}

function format({ n, d }: Fraction): string {
  return `${n}/${d}`;
}

function spentInAll({ questions }: Memory): Fraction {
  return Object.values(questions).map(parse).reduce(plus, fraction(0n));
}

/** The least double that is, as it is written, at least this much. */
function atLeast(value: Fraction): number {
  const near = Number(value.n) / Number(value.d);
  const written = asWritten(near);
  return written.n * value.d >= value.n * written.d ? near : near * (1 + 2 ** -52);
}

/** Pay for one report, out of every budget that it counts for, or throw and charge nothing. */
export function charge(memory: Memory, campaign: Campaign, question: string, budget: number, price: number): void {
  const known = memory.campaigns[campaign.id]!;
  const spent = parse(known.spent);
  if (!affordable(budget, price, spent)) {
    throw new DovetailError(
      "budget",
      `the budget of ${budget} nats for the campaign ${campaign.id} does not pay for another report; this device takes no further part in it.`,
    );
  }
  const onQuestion = parse(Object.hasOwn(memory.questions, question) ? memory.questions[question] : undefined);
  const inAll = spentInAll(memory);
  for (const [gone, limit, what] of [
    [onQuestion, memory.perQuestion, "on one question"],
    [inAll, memory.total, "in all"],
  ] as const) {
    if (!affordable(limit, price, gone)) {
      throw new DovetailError(
        "budget",
        `this device gives at most ${limit} nats ${what}, of which ${atLeast(gone)} are spent: no report of ${price} for the campaign ${campaign.id}.`,
      );
    }
  }
  known.spent = format(plus(spent, asWritten(price)));
  memory.questions = { ...memory.questions, [question]: format(plus(onQuestion, asWritten(price))) };
}

/** What a device remembers to have spent and sent, for the person whose device it is. */
export interface Account {
  readonly since: string;
  readonly spent: number;
  readonly total: number;
  readonly perQuestion: number;
  readonly campaigns: readonly {
    readonly id: string;
    readonly version: number;
    readonly spent: number;
    readonly reports: readonly { readonly round: number; readonly state: Report["state"]; readonly reason: string }[];
  }[];
}

export async function account(store: Store): Promise<Account> {
  const memory = await store.transact((found) => found);
  return {
    since: memory.since,
    spent: atLeast(spentInAll(memory)),
    total: memory.total,
    perQuestion: memory.perQuestion,
    campaigns: Object.entries(memory.campaigns).map(([id, known]) => ({
      id,
      version: known.version,
      spent: atLeast(parse(known.spent)),
      reports: Object.entries(known.reports).map(([round, { state, reason }]) => ({ round: Number(round), state, reason })),
    })),
  };
}

/** Set what the device gives at most; what is spent stays spent. */
export async function limit(store: Store, limits: { readonly total?: number; readonly perQuestion?: number }): Promise<void> {
  const total = limits.total === undefined ? undefined : positive("total", limits.total);
  const perQuestion = limits.perQuestion === undefined ? undefined : positive("perQuestion", limits.perQuestion);
  await store.transact((memory) => {
    memory.total = total ?? memory.total;
    memory.perQuestion = perQuestion ?? memory.perQuestion;
  });
}

/** Give a memory of one process alone, for previews and simulations: it forgets, so it protects nobody. */
export function inMemory(): Store {
  let [memory, pair]: [Memory, CryptoKeyPair | null] = [begin(), null];
  return {
    transact: async (change) => {
      const copy = structuredClone(memory);
      const found = change(copy);
      memory = copy;
      return found;
    },
    key: async () => (pair ??= await makeKey()),
    close: () => undefined,
  };
}
