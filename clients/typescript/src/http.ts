/** Sending over HTTP with `fetch`, directly or by a relay: nothing that tells devices apart, no cookie, no redirect. */

import { text } from "./bytes.js";
import type { Bytes } from "./bytes.js";
import type { Campaign, Route } from "./campaign.js";
import { type DeliveryEvent, answered, event, refusal } from "./delivery.js";
import { FINAL } from "./delivery_table.js";
import { config } from "./errors.js";
import type { VerifyingKey } from "./keys.js";
import { HEADER, REPORTS, campaignPath, digestOf, readAnswer, requireRoom } from "./message.js";
import { type BinaryResponse, REQUEST_TYPE, RESPONSE_TYPE, binaryRequest, binaryResponse, encapsulate, padded } from "./ohttp.js";

const PROBLEM = "urn:dovetail:problem:";
const CLOSED = ["held", "releasing", "released", "delivered", "dropped", "merged", "over"];
const MOST_BYTES = 1 << 20;

/** A way to the shuffler; faults are answers, never exceptions. */
export interface Transport {
  /** Take answers to messages for this version from the shuffler that it names. */
  trust(campaign: Campaign): void;
  /** Deliver one message and say what became of it. */
  send(wire: Bytes): Promise<DeliveryEvent>;
  /** The signed campaign file as the shuffler has it now, null if nobody says. */
  fetch(id: string): Promise<Bytes | null>;
  /** The round that takes reports now; 0 if none does, null if nobody says. */
  round(id: string): Promise<number | null>;
}

export interface HttpOptions {
  /** Seconds for one whole exchange. */
  readonly timeout?: number;
  /** Allow plain HTTP to another machine. */
  readonly insecureHttp?: boolean;
}

/** One request to a path of the shuffler; null where no whole answer comes in time. */
type Exchange = (path: string, body?: Bytes) => Promise<BinaryResponse | null>;

/** The shuffler behind `url`, http or https; what it has not signed is a reason to try again, and nothing else. */
export function httpTransport(url: string, options: HttpOptions = {}): Transport {
  return transport(connection(url, options, "application/octet-stream"));
}

/**
 * The shuffler behind a relay: `url` is the relay's, and nothing is ever sent to anybody else.
 *
 * Requests are sealed to the gateway's key that the campaign names last, and all have one length. What the relay says
 * itself is a reason to try again, whatever it says.
 */
export function obliviousTransport(url: string, options: HttpOptions = {}): Transport {
  const connect = connection(url, options, REQUEST_TYPE);
  let route: Route;
  const exchange: Exchange = async (path, body) => {
    const [wire, open] = await encapsulate(route.keys.at(-1)!, padded(binaryRequest(path, body), route.pad));
    const outer = await connect("", wire);
    if (outer?.status !== 200 || outer.headers.get("Content-Type")?.split(";")[0] !== RESPONSE_TYPE) return null;
    try {
      return binaryResponse((await open(outer.content))!);
    } catch {
      return null; // not the gateway's answer to this request
    }
  };
  return transport(exchange, (campaign) => {
    requireRoom(campaign);
    route = campaign.ohttp ?? route;
  });
}

export function connection(url: string, { timeout = 10, insecureHttp = false }: HttpOptions, type: string): Exchange {
  let place: URL | null = null;
  try {
    place = new URL(url);
  } catch {} // refused with the others
  if (!place || !["http:", "https:"].includes(place.protocol) || place.username || place.password || place.search || place.hash) {
    throw config("`url` must be http://host:port or https://host:port, without user and query.");
  }
  const here = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(place.hostname);
  if (place.protocol === "http:" && !here && !insecureHttp) {
    throw config("`url` must be https:// beyond this machine: plain HTTP is read and changed by anybody on the way.");
  }
  const base = place.href.replace(/\/+$/, "");
  return async (path, body) => {
    try {
      const response = await fetch(base + path, {
        method: body ? "POST" : "GET",
        ...(body ? { body, headers: { "Content-Type": type } } : {}),
        credentials: "omit",
        redirect: "error",
        cache: "no-store",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(timeout * 1000),
      });
      const content = new Uint8Array(await response.arrayBuffer());
      return content.length > MOST_BYTES ? null : { status: response.status, headers: response.headers, content };
    } catch {
      return null;
    }
  };
}

function transport(exchange: Exchange, trusted: (campaign: Campaign) => void = () => undefined): Transport {
  const shufflers = new Map<string, VerifyingKey>();
  return {
    trust: (campaign) => {
      trusted(campaign);
      shufflers.set(text(campaign.digest), campaign.shufflerSigning);
    },
    send: async (wire) => {
      const found = await exchange(REPORTS, wire);
      if (!found) return refusal("unreachable");
      const signed = await readAnswer(found.headers.get(HEADER) ?? "", wire, shufflers.get(text(digestOf(wire))));
      if (signed) return answered(signed);
      const kind = kindOf(found);
      // the shuffler's alone: they end the report, or let another be drawn
      if (kind === "accepted" || kind === "too_early" || Object.hasOwn(FINAL, kind)) return event("outdated", "unsigned");
      return refusal(kind, Number(/^\d{1,9}$/.exec(found.headers.get("Retry-After") ?? "")?.[0] ?? 0));
    },
    fetch: async (id) => {
      const found = await exchange(campaignPath(id));
      return found?.status === 200 ? found.content : null;
    },
    round: async (id) => {
      const found = await exchange(`${campaignPath(id)}/round`);
      if (found?.status !== 200) return null;
      const { round, state } = json(found.content);
      if (typeof round !== "number" || !Number.isInteger(round) || round < 0) return null;
      return CLOSED.includes(String(state)) ? 0 : round;
    },
  };
}

/** The kind that a problem document names, or what its absence means. */
export function kindOf({ status, headers, content }: BinaryResponse): string {
  const type = (headers.get("Content-Type") ?? "").split(";")[0]!.trim().toLowerCase();
  const named = type === "application/problem+json" ? json(content)["type"] : undefined;
  if (typeof named === "string" && named.startsWith(PROBLEM)) return named.slice(PROBLEM.length);
  if (status === 202) return "accepted";
  return status === 429 ? "rate_limited" : "unavailable"; // a proxy or a captive portal, not the shuffler
}

function json(content: Bytes): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(new TextDecoder().decode(content));
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
