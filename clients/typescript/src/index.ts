/** A device of Dovetail: randomizes an answer where the person is, and sends it sealed. */

export { type Campaign, type EpsilonClass, type Schedule, charged, mechanismOf, parseCampaign, roundAt, roundEnds } from "./campaign.js";
export { Device, type DeviceOptions, type Receipt } from "./client.js";
export { FINAL, LATER } from "./delivery_table.js";
export { DovetailError, type Kind } from "./errors.js";
export { type HttpOptions, type Transport, httpTransport, obliviousTransport } from "./http.js";
export { type Signer, VerifyingKey } from "./keys.js";
export { type Account, type Store, account, inMemory, limit, questionKey } from "./ledger.js";
export type { Mechanism } from "./mechanisms.js";
export { SystemEntropy, Words } from "./words.js";
