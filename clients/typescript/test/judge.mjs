/** Says of each line of its input what this package makes of it: a campaign file, or an answer of a shuffler. */

import { createInterface } from "node:readline";
import { asks } from "../dist/asks.js";
import { charged, parseCampaign } from "../dist/campaign.js";
import { VerifyingKey } from "../dist/keys.js";
import { readAnswer } from "../dist/message.js";
import { anonymousTokens } from "../dist/tokens.js";
import { hex, unhex } from "./given.mjs";

async function judge({ campaign, header, wire, key }) {
  if (header !== undefined) return await readAnswer(header, unhex(wire), new VerifyingKey(unhex(key)));
  try {
    const found = await parseCampaign(unhex(campaign), undefined, { tokens: anonymousTokens(), asks });
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
      asked: found.asked && [found.asked.count, ...found.asked.stated.filter((_, place) => place !== 1)], // but settings
      classes: found.classes.map((each) => [each.name, each.epsilon]),
    };
  } catch (error) {
    return { refused: error.kind ?? error.stack };
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await judge(JSON.parse(line))));
