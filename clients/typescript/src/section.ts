/** Reading a table of TOML: each key once, with its range; what is left over is an error. */

import { TomlDate } from "smol-toml";
import { SPACE } from "./bytes.js";
import { notNegative, positive, probability, real, whole } from "./checks.js";
import { DovetailError, config, refuse, show } from "./errors.js";

const BLANK = new RegExp(`^[${SPACE}]*$`);

export type Table = Record<string, unknown>;

export function isTable(found: unknown): found is Table {
  return typeof found === "object" && found !== null && !Array.isArray(found) && !(found instanceof Date);
}

export function list(path: string, found: unknown): unknown[] {
  if (!Array.isArray(found)) throw config(`\`${path}\` must be a list.`);
  return found;
}

/** One table under the dotted name `name`, empty for the top. A reader without a default refuses an absent key. */
export class Section {
  readonly #known = new Set<string>();

  constructor(
    readonly name: string,
    readonly found: Table,
  ) {}

  get empty(): boolean {
    return !Object.keys(this.found).length;
  }

  section(key: string, optional = false): Section {
    const found = this.#take(key, optional ? {} : undefined);
    if (!isTable(found)) throw config(`\`${this.#path(key)}\` must be a table, written [${this.#path(key)}].`);
    return new Section(this.#path(key), found);
  }

  text(key: string): string;
  text<T>(key: string, otherwise: T): string | T;
  text(key: string, otherwise?: unknown): unknown {
    return this.read(key, otherwise, (path, found) => {
      if (typeof found !== "string" || BLANK.test(found)) throw refuse(path, "a text", found);
      return found;
    });
  }

  choice<T extends string>(key: string, known: readonly T[], otherwise?: T): T {
    const found = this.text(key, otherwise) as T;
    if (!known.includes(found)) throw config(`\`${this.#path(key)}\` must be one of ${known.join(", ")}, got ${show(found)}.`);
    return found;
  }

  /** A list of different texts; empty if absent. */
  texts(key: string): readonly string[] {
    const found = this.#take(key, []);
    if (!Array.isArray(found) || !found.every((item) => typeof item === "string" && item)) {
      throw config(`\`${this.#path(key)}\` must be a list of texts.`);
    }
    if (new Set(found).size < found.length) throw config(`\`${this.#path(key)}\` names something twice.`);
    return found as string[];
  }

  whole(key: string, least: number, most?: number): number;
  whole<T>(key: string, least: number, most: number | undefined, otherwise: T): number | T;
  whole(key: string, least: number, most?: number, otherwise?: unknown): unknown {
    return this.read(key, otherwise, (path, found) => whole(path, found, least, most));
  }

  positive(key: string): number {
    return this.read(key, undefined, positive);
  }

  probability(key: string): number {
    return this.read(key, undefined, probability);
  }

  notNegative(key: string): number | null {
    return this.read(key, null, notNegative);
  }

  /** A duration of at most 30 years. */
  seconds(key: string, least: number, otherwise?: number): number {
    return this.read(key, otherwise, (path, found) => {
      return real(path, found, `a number of seconds from ${least} to 1e9`, (seconds) => seconds >= least && seconds <= 1e9);
    }) as number;
  }

  /** A date with time and offset, in seconds since 1970. */
  moment(key: string): number;
  moment(key: string, otherwise: null): number | null;
  moment(key: string, otherwise?: null): unknown {
    return this.read(key, otherwise, (path, found) => {
      if (!(found instanceof TomlDate) || !found.isDateTime() || found.isLocal()) {
        throw refuse(path, "a date with time and offset", found);
      }
      const year = found.getUTCFullYear();
      if (!(year >= 1 && year <= 9999)) throw refuse(path, "a date of the years 2 to 9998", found);
      return found.getTime() / 1000;
    });
  }

  /** Every key and what it holds, by name. */
  get sorted(): [string, unknown][] {
    return Object.keys(this.found).sort().map((key) => [key, this.found[key]]);
  }

  /** Everything not read yet, which counts as read. */
  rest(): Table {
    const left: Table = Object.fromEntries(Object.entries(this.found).filter(([key]) => !this.#known.has(key)));
    Object.keys(left).forEach((key) => this.#known.add(key));
    return left;
  }

  /** Refuse keys that nobody asked for. */
  finish(): void {
    for (const key of Object.keys(this.found)) {
      if (!this.#known.has(key)) throw config(`${show(this.#path(key))} is not a key of a campaign.`);
    }
  }

  /** What a key holds, as `check` has it; `otherwise` where it is absent. */
  read<T>(key: string, otherwise: undefined, check: (path: string, found: unknown) => T): T;
  read<T, O>(key: string, otherwise: O, check: (path: string, found: unknown) => T): T | O;
  read(key: string, otherwise: unknown, check: (path: string, found: unknown) => unknown): unknown {
    const found = this.#take(key, otherwise);
    if (!Object.hasOwn(this.found, key)) return found;
    try {
      return check(this.#path(key), found);
    } catch (error) {
      throw error instanceof DovetailError ? config(error.message) : error;
    }
  }

  #take(key: string, otherwise: unknown): unknown {
    this.#known.add(key);
    if (Object.hasOwn(this.found, key)) return this.found[key];
    if (otherwise === undefined) throw config(`\`${this.#path(key)}\` is missing.`);
    return otherwise;
  }

  #path(key: string): string {
    return this.name ? `${this.name}.${key}` : key;
  }
}
