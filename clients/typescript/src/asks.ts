/**
 * Questions in [asks]: which values a person has, how each is rounded, and how the places are numbered together.
 *
 * The same symbols of the same words as `dovetail_protocol.asked`, whose device this is the twin of. Rounding compares
 * 53 uniform bits with a double, which is exact, and every double is computed in the same order as there. In a chunk of
 * its own, for campaigns that have [asks]; arrays are left out.
 */

import { real } from "./checks.js";
import { DovetailError, config, leftOut } from "./errors.js";
import { type Mechanism, symbol } from "./mechanisms.js";
import { Section, isTable } from "./section.js";
import type { Words } from "./words.js";

const MOST_VALUES = 32;
const MOST_SYMBOLS = 256;
const MOST_PLACES = 2 ** 24;
const ROUNDINGS = ["list", "bins", "ends", "even", "spline", "gaps"] as const;

/** What a device takes for campaigns with [asks]: `Device.open(file, { store, asks })`. */
export interface Asks {
  /** [asks] of a campaign with this randomizer, and the categories that go without it. */
  read(section: Section, kind: Mechanism, categories: readonly string[]): Asked;
}

/** What is asked of each person. */
export interface Asked {
  /** In their order. */
  readonly values: readonly Value[];
  /** Answers of one person, each of which is randomized and sealed by itself. */
  readonly count: number;
  /** All of the table, in one order. */
  readonly stated: unknown;
  /** The values of a person in their order, from an object by name, an array, or one value by itself. */
  check(given: unknown): readonly number[];
  /** What a device hands to its mechanism, one after the other, of checked values. */
  answers(checked: readonly number[], words: Words): readonly number[];
}

/** A value of a person: one of `categories`, or a number from `lower` to `upper`. */
export interface Value {
  readonly name: string;
  readonly categories: readonly string[];
  readonly lower: number;
  readonly upper: number;
  /** What no answer is called, where a person may leave the number out (also by null); else empty. */
  readonly missing: string;
}

/** The place 0..points-1 of a value, or of the product of two; `dovetail_protocol.asked` says what each rounding is. */
interface Part {
  /** Places of the values, one or two. */
  readonly of: readonly number[];
  readonly rounding: (typeof ROUNDINGS)[number];
  readonly points: number;
  readonly bins: number;
  readonly ends: readonly number[];
}

export const asks: Asks = { read: readAsked };

function readAsked(section: Section, kind: Mechanism, categories: readonly string[]): Asked {
  const [question, settings] = [section.text("question"), section.section("settings", true).rest()];
  const values = section.read("values", [], tables).map(readValue);
  const names = values.map(({ name }) => name);
  if (!values.length || values.length > MOST_VALUES || new Set(names).size < names.length) {
    throw config(`\`asks.values\` must be 1 to ${MOST_VALUES} values with different names.`);
  }
  const lists = section.read("symbols", [], (path, found) => list(path, found).map((parts) => tables(path, parts)));
  const symbols = lists.map((parts) => parts.map((part) => readPart(part, values)));
  section.finish();
  const sizes = symbols.map((parts) => parts.reduce((size, { points }) => size * points, 1));
  const size = sizes.reduce((sum, each) => sum + each, 0);
  if (symbols.length > MOST_SYMBOLS || symbols.some((parts) => !parts.length) || size > MOST_PLACES) {
    throw config(`\`asks.symbols\` must be at most ${MOST_SYMBOLS} lists of parts, with ${MOST_PLACES} places together.`);
  }
  const { lower, upper } = kind.parameters;
  const [first] = values as [Value];
  const asIs = values.length === 1 && kind.k === undefined && first.lower === lower && first.upper === upper && !first.missing;
  if (categories.length || (symbols.length ? kind.k !== size : !asIs)) {
    throw config("[asks] makes other symbols than [randomizer] takes, or none of a value that it does not take.");
  }
  if (symbols.length > 1 && kind.name !== "none") {
    throw config('several symbols of a person in [asks] go with dummies of people and `randomizer.name` = "none".');
  }
  return {
    values,
    count: symbols.length || 1,
    stated: [question, Object.entries(settings).sort(([one], [other]) => (one < other ? -1 : 1)), values, symbols],
    check: (given) => {
      const held = inOrder(given, names);
      if (held?.length === values.length) return values.map((value, place) => checked(value, held[place]));
      throw new DovetailError("data", `\`value\` must have ${names.length} parts: ${names.join(", ")}.`);
    },
    answers: (held, words) => {
      if (!symbols.length) return held;
      let first = 0;
      return symbols.map((parts, number) => {
        const place = parts.reduce((before, part) => before * part.points + placeOf(part, values, held, words), 0);
        first += sizes[number]!;
        return first - sizes[number]! + place;
      });
    },
  };
}

function list(path: string, found: unknown): unknown[] {
  if (!Array.isArray(found)) throw config(`\`${path}\` must be a list.`);
  return found;
}

function tables(path: string, found: unknown): Section[] {
  return list(path, found).map((item) => {
    if (!isTable(item)) throw config(`\`${path}\` must hold tables.`);
    return new Section(path, item);
  });
}

function readValue(section: Section): Value {
  const [name, categories] = [section.text("name"), section.texts("categories")];
  const [lower, upper] = categories.length ? [0, 0] : ["lower", "upper"].map((key) => section.read(key, undefined, (path, found) => real(path, found)));
  const value: Value = { name, categories, lower: lower!, upper: upper!, missing: categories.length ? "" : section.text("missing", "") };
  section.finish();
  const range = value.upper - value.lower;
  if (!categories.length && !(range > 0 && range < Infinity)) {
    throw config("`upper` of a value in [asks] must be above its `lower` by a finite amount.");
  }
  return value;
}

function readPart(section: Section, values: readonly Value[]): Part {
  const of = section.read("of", undefined, list).map((name) => values.findIndex((value) => value.name === name));
  const rounding = section.choice("rounding", [...ROUNDINGS, "digits"] as const);
  if (rounding === "digits") throw leftOut("campaigns of digits");
  const points = section.whole("points", 1, MOST_PLACES);
  const bins = rounding === "bins" ? section.whole("bins", 2, MOST_PLACES) : 0;
  const read = (path: string, found: unknown) => list(path, found).map((end) => real(path, end));
  const ends = rounding === "ends" ? section.read("ends", undefined, read) : [];
  section.finish();
  const held = of.map((place) => values[place]);
  const [one] = held;
  const rising = ends.every((end, place) => !place || ends[place - 1]! < end);
  const all = ends.length === points + 1 && ends[0] === one?.lower && ends[points] === one?.upper;
  const fits =
    one !== undefined &&
    (of.length === 1 || (of.length === 2 && rounding === "even")) &&
    held.every((value) => value && !value.categories.length === (rounding !== "list") && !value.missing === (rounding !== "gaps")) &&
    {
      list: points === one.categories.length,
      bins: bins % points === 0,
      ends: rising && all,
      even: points >= 2,
      spline: points >= 3,
      gaps: points >= 3,
    }[rounding];
  if (!fits) throw config(`a part of \`asks.symbols\` does not go with rounding "${rounding}" or its values.`);
  return { of, rounding, points, bins, ends };
}

function inOrder(given: unknown, names: readonly string[]): readonly unknown[] | null {
  if (Array.isArray(given)) return given;
  if (typeof given !== "object" || given === null) return [given];
  if (Object.keys(given).length !== names.length || !names.every((name) => Object.hasOwn(given, name))) return null;
  return names.map((name) => (given as Record<string, unknown>)[name]);
}

/** The number, NaN for none, or the place of the category; an error for others, which does not repeat them. */
function checked({ name, categories, lower, upper, missing }: Value, given: unknown): number {
  if (categories.length) {
    const place = categories.indexOf(given as string);
    if (place >= 0) return place;
    if (typeof given !== "string") return symbol(given, categories.length, name);
    throw new DovetailError("data", `\`${name}\` must be one of ${categories.join(", ")}.`);
  }
  if (missing && (given === null || given === missing)) return NaN;
  if (typeof given === "number" && given >= lower && given <= upper) return given;
  throw new DovetailError("data", `\`${name}\` must be a number in [${lower}, ${upper}]${missing && `, or "${missing}"`}.`);
}

/** The place of what a person holds. */
function placeOf({ of, rounding, points, bins, ends }: Part, values: readonly Value[], held: readonly number[], words: Words): number {
  const own = held[of[0]!]!;
  const scaled = (place: number) => (held[place]! - values[place]!.lower) / (values[place]!.upper - values[place]!.lower);
  if (rounding === "list") return own;
  if (rounding === "bins") return Math.floor(bin(values[of[0]!]!, own, bins) / (bins / points));
  if (rounding === "ends") return Math.min(ends.filter((end) => end <= own).length - 1, points - 1);
  if (rounding === "spline") return spline(scaled(of[0]!) * (points - 2) + 0.5, points, words);
  if (Number.isNaN(own)) return points - 1;
  let [product, low, high] = [scaled(of[0]!) - 0.5, -0.5, 0.5];
  if (of.length === 2) {
    product *= scaled(of[1]!) - 0.5;
    [low, high] = [of[0] === of[1] ? 0 : -0.25, 0.25];
  }
  const steps = points - (rounding === "gaps" ? 2 : 1);
  const found = ((Math.min(Math.max(product, low), high) - low) / (high - low)) * steps;
  const below = Math.min(Math.floor(found), steps - 1);
  return below + Number(uniform(words) < found - below);
}

/** The last of so many even bins whose lower end is not above the number. */
function bin({ lower, upper }: Value, held: number, bins: number): number {
  const step = (upper - lower) / bins;
  let [low, high] = [0, bins - 1];
  while (low < high) {
    const middle = Math.floor((low + high + 1) / 2);
    if (middle * step + lower <= held) low = middle;
    else high = middle - 1;
  }
  return low;
}

function spline(place: number, points: number, words: Words): number {
  const nearest = Math.min(Math.max(Math.floor(place + 0.5), 1), points - 2);
  const [away, drawn] = [place - nearest, uniform(words)];
  const half = (side: number) => 0.5 * (side * side);
  return nearest - Number(drawn < half(0.5 - away)) + Number(drawn >= 1 - half(0.5 + away));
}

/** 53 bits of a word, as the double that they are behind the point: exact. */
function uniform(words: Words): number {
  return Number(words.word() >> 11n) * 2 ** -53;
}
