/**
 * Questions in [asks]: which values a person has, how each is rounded, and how the places are numbered together.
 *
 * The same symbols of the same words as `dovetail_protocol.asked`, whose device this is the twin of. Rounding compares
 * 53 uniform bits with a double, which is exact, and every double is computed in the same order as there. In a chunk of
 * its own, for campaigns that have [asks], with what randomizes arrays and several answers together. Several answers
 * among dummies are one symbol, that of their combination.
 */

import { real } from "./checks.js";
import { MOST_COORDINATES, VECTORS, coordinates } from "./closest_direction.js";
import { DovetailError, config } from "./errors.js";
import { drawn, joint } from "./joint.js";
import { type Input, type Mechanism, mechanism, symbol } from "./mechanisms.js";
import { Section, isTable, list } from "./section.js";
import type { Words } from "./words.js";

const MOST_VALUES = 32;
const MOST_SYMBOLS = 256;
const MOST_PLACES = 2 ** 24;
const TOGETHER = ["joint", "one"];
const ROUNDINGS = ["list", "bins", "ends", "even", "digits", "spline", "gaps"] as const;

/** What a device takes for campaigns with [asks]: `Device.open(file, { store, asks })`. */
export interface Asks {
  /** The mechanism of [randomizer] by this name, where it goes with [asks] alone. */
  mechanism(name: string, section: Section): Mechanism | undefined;
  /** [asks] of a campaign with this randomizer, and the categories that go without it. */
  read(section: Section, kind: Mechanism, categories: readonly string[]): Asked;
}

/** What is asked of each person. */
export interface Asked {
  /** In their order. */
  readonly values: readonly Value[];
  /** Answers of one person, each of which is randomized and sealed by itself. */
  readonly count: number;
  /** How many of them are digits of one number; 0 where none are. */
  readonly digits: number;
  /** All of the table, in one order. */
  readonly stated: unknown;
  /** The values of a person in their order, from an object by name, an array, or one value by itself. */
  check(given: unknown): readonly Input[];
  /** What a device hands to its mechanism, one after the other, of checked values. */
  answers(checked: readonly Input[], words: Words): readonly Input[];
}

/** A value of a person: one of `categories`, a number from `lower` to `upper`, or an array of `length` numbers. */
export interface Value {
  readonly name: string;
  readonly categories: readonly string[];
  readonly lower: number;
  readonly upper: number;
  /** What no answer is called, where a person may leave the number out (also by null); else empty. */
  readonly missing: string;
  /** 0 of all but arrays. */
  readonly length: number;
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

export const asks: Asks = {
  mechanism: (name, section) => {
    if (!TOGETHER.includes(name)) return Object.hasOwn(VECTORS, name) ? mechanism(name, section.rest(), VECTORS) : undefined;
    const parts = section.read("parts", [], tables).map((part) => mechanism(part.text("name"), part.rest()));
    const weights = name === "one" && section.read("weights", [], list);
    section.finish();
    return weights ? drawn(parts, weights as number[]) : joint(parts);
  },
  read: (section, kind, categories) => {
    const question = section.text("question");
    if (categories.length) throw config("`randomizer.categories` go without [asks], which names the values itself.");
    if (!TOGETHER.includes(question) && !kind.parts) return asked(readStated(section), kind);
    const tabled = section.read("each", [], tables);
    section.finish();
    if (kind.name === "none" && question === "joint") return combined(question, tabled.map(readStated), kind);
    if (question !== kind.name || tabled.length !== kind.parts?.length) {
      throw config("`randomizer.name` of several questions is `asks.question`, with one of `randomizer.parts` for each of `asks.each`.");
    }
    return together(question, tabled.map((one, place) => asked(readStated(one), kind.parts![place]!)));
  },
};

/** Several questions of each person, whose answers stay together in one report, or of which one is drawn. */
function together(question: string, each: readonly Asked[]): Asked {
  const stated = [question, each.map((one) => one.stated)];
  return about(each.flatMap((one) => one.values), stated, 0, 1, (checked, words) => {
    let end = 0;
    return [each.flatMap((one) => one.answers(checked.slice(end, (end += one.values.length)), words))];
  });
}

/** Several questions of one symbol each, whose combination is the one symbol of a person: the last counts fastest. */
function combined(question: string, each: readonly Stated[], kind: Mechanism): Asked {
  const values: Value[] = [];
  const parts = each.flatMap(([, , own, symbols]) => {
    const first = values.push(...own) - own.length;
    const [parts = []] = symbols;
    if (each.length < 2 || symbols.length > 1 || sizeOf(parts) < 2) {
      throw config("`asks.each` among dummies must be at least 2 questions of one symbol each.");
    }
    return parts.map((part) => ({ ...part, of: part.of.map((place) => first + place) }));
  });
  return asked([question, [], values, [parts]], kind, [question, each]);
}

/** What is asked about values of different names. */
function about(values: readonly Value[], stated: unknown, digits: number, count: number, answers: Asked["answers"]): Asked {
  const names = values.map(({ name }) => name);
  if (!names.length || names.length > MOST_VALUES || new Set(names).size < names.length) {
    throw config(`the values of [asks] must be 1 to ${MOST_VALUES} with different names.`);
  }
  const check = (given: unknown) => {
    const held = inOrder(given, names, values[0]!.length > 0);
    if (held?.length === names.length) return values.map((value, place) => checked(value, held[place]));
    throw new DovetailError("data", `\`value\` must have ${names.length} parts: ${names.join(", ")}.`);
  };
  return { values, stated, digits, count, check, answers };
}

/** A question, its settings, the values that it is about, and the symbols that a person makes of them. */
type Stated = readonly [question: string, settings: unknown, values: readonly Value[], symbols: readonly (readonly Part[])[]];

function readStated(section: Section): Stated {
  const question = section.text("question");
  const settings = section.section("settings", true).sorted;
  const values = section.read("values", [], tables).map(readValue);
  const lists = section.read("symbols", [], (path, found) => list(path, found).map((parts) => tables(path, parts)));
  const symbols = lists.map((parts) => parts.map((part) => readPart(part, values)));
  section.finish();
  return [question, settings, values, symbols];
}

/** What is asked by this table, for answers that the mechanism takes. */
function asked(stated: Stated, kind: Mechanism, as: unknown = stated): Asked {
  const [, , values, symbols] = stated;
  const all = symbols.flat();
  const digits = all.some(({ rounding }) => rounding === "digits") ? ternaryDigits(all[0]!.points) : 0;
  if (digits && all.length > 1) throw config('a part of `asks.symbols` with rounding "digits" stands alone.');
  const sizes = symbols.map((parts) => 3 * digits || sizeOf(parts));
  const size = sizes.reduce((sum, each) => sum + each, 0);
  if (symbols.length > MOST_SYMBOLS || symbols.some((parts) => !parts.length) || size > MOST_PLACES) {
    throw config(`\`asks.symbols\` must be at most ${MOST_SYMBOLS} lists of parts, with ${MOST_PLACES} places together.`);
  }
  const made = about(values, as, digits, digits || symbols.length || 1, (held, words) => {
    if (!symbols.length) return held;
    let first = 0;
    return symbols.flatMap((parts, number) => {
      const place = parts.reduce((before, part) => before * part.points + placeOf(part, values, held as number[], words), 0);
      if (digits) return Array.from({ length: digits }, (_, digit) => 3 * digit + (Math.floor(place / 3 ** digit) % 3));
      first += sizes[number]!;
      return first - sizes[number]! + place;
    });
  });
  const { lower, upper } = kind.parameters;
  const [first] = values as [Value];
  const same = first.length ? first.length === kind.d : !kind.d && first.lower === lower && first.upper === upper && !first.missing;
  const asIs = values.length === 1 && !first.categories.length && kind.k === undefined && same;
  if (symbols.length ? kind.k !== size || values.some(({ length }) => length) : !asIs) {
    throw config("[asks] makes other symbols than [randomizer] takes, or none of a value that it does not take.");
  }
  if ((symbols.length > 1 || digits) && kind.name !== "none") {
    throw config('several symbols of a person in [asks] go with dummies and `randomizer.name` = "none".');
  }
  return made;
}

function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((size, { points }) => size * points, 1);
}

/** The largest J for which 3^J is at most `points`. */
function ternaryDigits(points: number): number {
  let found = 0;
  while (3 ** (found + 1) <= points) found++;
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
  const length = categories.length ? 0 : section.whole("length", 1, MOST_COORDINATES, 0);
  const number = !categories.length && !length;
  const [lower, upper] = number ? ["lower", "upper"].map((key) => section.read(key, undefined, (path, found) => real(path, found))) : [0, 0];
  const value: Value = { name, categories, lower: lower!, upper: upper!, missing: number ? section.text("missing", "") : "", length };
  section.finish();
  const range = value.upper - value.lower;
  if (number && !(range > 0 && range < Infinity)) {
    throw config("`upper` of a value in [asks] must be above its `lower` by a finite amount.");
  }
  return value;
}

function readPart(section: Section, values: readonly Value[]): Part {
  const of = section.read("of", undefined, list).map((name) => values.findIndex((value) => value.name === name));
  const rounding = section.choice("rounding", ROUNDINGS);
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
      digits: points >= 3 && 3 ** ternaryDigits(points) === points,
      spline: points >= 3,
      gaps: points >= 3,
    }[rounding];
  if (!fits) throw config(`a part of \`asks.symbols\` does not go with rounding "${rounding}" or its values.`);
  return { of, rounding, points, bins, ends };
}

function inOrder(given: unknown, names: readonly string[], ofArray: boolean): readonly unknown[] | null {
  if (Array.isArray(given)) return ofArray && (given.length !== 1 || typeof given[0] === "number") ? [given] : given;
  if (typeof given !== "object" || given === null || ArrayBuffer.isView(given)) return [given];
  if (Object.keys(given).length !== names.length || !names.every((name) => Object.hasOwn(given, name))) return null;
  return names.map((name) => (given as Record<string, unknown>)[name]);
}

/** The number, NaN for none, the array, or the place of the category; an error for others, which does not repeat them. */
function checked({ name, categories, lower, upper, missing, length }: Value, given: unknown): Input {
  if (length) return coordinates(given, length, name);
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
