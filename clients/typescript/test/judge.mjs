/** Says of each line of its input what this package makes of it: a campaign file, or an answer of a shuffler. */

import { createInterface } from "node:readline";
import { charged, parseCampaign } from "../dist/campaign.js";
import { VerifyingKey } from "../dist/keys.js";
import { readAnswer } from "../dist/message.js";
import { ADD_ONS, hex, unhex } from "./given.mjs";

/** A table [asks] without settings, or each of several. */
const told = ([question, settings, ...rest]) => (rest.length ? [question, ...rest] : [question, settings.map(told)]);

async function judge({ campaign, header, wire, key }) {
  if (header !== undefined) return await readAnswer(header, unhex(wire), new VerifyingKey(unhex(key)));
  try {
    const found = await parseCampaign(unhex(campaign), undefined, ADD_ONS);
    const { mechanism, schedule, batch, promise } = found;
    return {
      id: found.id,
      version: found.version,
      question: found.question,
      digest: hex(found.digest),
      mechanism: mechanism.name,
      k: mechanism.k ?? null,
      epsilon: mechanism.epsilon === Infinity ? null : mechanism.epsilon,
      charged: charged(found, Math.max(0, found.classes.length - 1)),
      categories: found.categories,
      groups: found.groups,
      schedule: [schedule.start, schedule.period, schedule.count, schedule.grace],
      batch: [batch.minimum, batch.small, batch.late, batch.closeAt],
      promise: [promise.delta, promise.assumedHonest, promise.assumedDishonest, promise.authentication, promise.deviceBudget, promise.trust],
      expires: found.expires,
      endpoints: found.endpoints,
      ohttp: found.ohttp && [found.ohttp.relay, found.ohttp.pad, found.ohttp.keys.length],
      tokens: found.tokens && [found.tokens.issuer, found.tokens.url, found.tokens.keys],
      asked: found.asked && [found.asked.count, found.asked.digits, ...told(found.asked.stated)],
      added: found.added && found.added.stated,
      classes: found.classes.map((each) => [each.name, each.epsilon]),
      memoized: found.memoized,
    };
  } catch (error) {
    return { refused: error.kind ?? error.stack };
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await judge(JSON.parse(line))));
