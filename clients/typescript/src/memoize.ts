/** Campaigns that repeat a report: it is drawn and paid for once, and sent again in every later round. */

import { type Campaign, roundsMix } from "./campaign.js";
import { config } from "./errors.js";
import type { Known } from "./ledger.js";
import type { Section } from "./section.js";

/** What a device takes for campaigns with [memoize]: `Device.open(file, { store, memoize })`. */
export interface Memoize {
  /** Refuse a table that says anything else than that values do not change, and a campaign that it does not go with. */
  check(section: Section, campaign: Campaign): void;
  /** The report that stands for all rounds: the one kept for these terms, or else what `make` draws and pays for. */
  draw(known: Known, terms: string, make: () => string): string;
}

export const memoize: Memoize = {
  check: (section, campaign) => {
    if (section.rest()["constant_values"] !== true || section.sorted.length > 1) {
      throw config("[memoize] takes `constant_values` = true, and nothing else.");
    }
    if (campaign.groups.length || campaign.classes.length || roundsMix(campaign) || campaign.promise.trust !== "local") {
      throw config('[memoize] goes with noise of people\'s own, without [classes], [groups], and rounds that mix: use small = "wait" or "drop" and late = "refuse".');
    }
  },
  draw: (known, terms, make) => ((known.memoized ??= {})[terms] ??= make()),
};
