/** How a report is delivered: written by `python -m tests.device.vectors.twins` from the reference. */

export type DeliveryState = "waiting" | "sending" | "fetching" | "resending" | "accepted" | "refused";
export type EventName = "due" | "accepted" | "outdated" | "renewed" | "later" | "final";
export type DeliveryEffect = "send" | "fetch" | "reseal" | "wait" | "settle";

/** Refusals after which a report is never sent again, in words. */
export const FINAL: Readonly<Record<string, string>> = {
  malformed: "the shuffler cannot read it",
  version: "the shuffler does not understand this version of the message",
  round: "the campaign has no such round",
  late: "its round is over",
  lost: "the shuffler has lost the key of its round, which counts no reports",
  seal: "it is not sealed to this shuffler",
  signature: "the device's signature does not hold",
  content: "the shuffler refuses what it says",
  revoked_device: "the device has been taken off the roster",
  second_report: "the shuffler has another report of this device for the round",
  too_large: "it is longer than the shuffler takes",
  changed: "a newer version of the campaign asks something else",
};

/** Refusals after which it is; every other kind counts as `unavailable`. */
export const LATER: Readonly<Record<string, string>> = {
  unreachable: "nobody answered",
  untrusted: "the certificate there is not trusted here; SSL_CERT_FILE names a file of those that are",
  unauthorized: "the broker wants another user or password",
  unavailable: "the service is not available",
  unsigned: "what answered has not signed as the shuffler; a proxy, or somebody else",
  unanswered: "the broker has it, the shuffler has not answered yet",
  unsubscribed: "no shuffler takes reports of this campaign at the broker",
  rate_limited: "the shuffler is busy",
  too_early: "its round has not begun",
  campaign: "the shuffler wants another version of the campaign",
  unknown_device: "the device is not on the roster, or not yet",
  token: "it has no token",
};

/** "state event" to the next state, and what is to be done; whatever is not listed changes nothing. */
export const TRANSITIONS: Readonly<Record<string, readonly [DeliveryState, readonly DeliveryEffect[]]>> = {
  "waiting due": ["sending", ["send"]],
  "sending accepted": ["accepted", ["settle"]],
  "sending later": ["waiting", ["wait"]],
  "sending final": ["refused", ["settle"]],
  "sending outdated": ["fetching", ["fetch"]],
  "fetching renewed": ["resending", ["reseal", "send"]],
  "fetching later": ["waiting", ["wait"]],
  "fetching final": ["refused", ["settle"]],
  "resending accepted": ["accepted", ["settle"]],
  "resending later": ["waiting", ["wait"]],
  "resending outdated": ["waiting", ["wait"]],
  "resending final": ["refused", ["settle"]],
};
