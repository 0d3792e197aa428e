/** The one exception of this package; its `kind` says what to do about it, its message says it to a person. */

export type Kind =
  | "parameter" // a parameter outside its range
  | "data" // a value that the campaign does not take
  | "config" // a campaign file that is not signed, or says what nobody understands
  | "unsupported" // a campaign of a kind that this package leaves out, or a platform that lacks something
  | "budget" // nothing is drawn any more
  | "round" // no round takes reports now; nothing was drawn
  | "token" // the issuer gives no token for this round; nothing was drawn
  | "storage"; // what is written does not stay

export class DovetailError extends Error {
  constructor(
    readonly kind: Kind,
    message: string,
  ) {
    super(message);
    this.name = "DovetailError";
  }
}

/** The error for a parameter outside its range, ready to be thrown. */
export function refuse(name: string, wanted: string, got: unknown): DovetailError {
  return new DovetailError("parameter", `\`${name}\` must be ${wanted}, got ${show(got)}.`);
}

export function config(message: string): DovetailError {
  return new DovetailError("config", message);
}

export function unsupported(message: string): DovetailError {
  return new DovetailError("unsupported", message);
}

export function leftOut(name: string): DovetailError {
  return unsupported(`${name} is not in this package; the device in Python answers this campaign.`);
}

/** Somebody else's text in one line, without what would move or hide letters. */
export function show(value: unknown): string {
  const text = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? "nothing");
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`).slice(0, 80);
}
