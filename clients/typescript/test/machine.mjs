/**
 * Devices that another program works with: each line asks for one thing, and while it is done the other program is the
 * network, and says over every step of a store whether the device dies there.
 */

import { createInterface } from "node:readline";
import { Device, account, inMemory, limit } from "../dist/index.js";
import { pairOf } from "../dist/keys.js";
import { hex, unhex } from "./given.mjs";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (found) => console.log(JSON.stringify(found));

async function hear() {
  const { value, done } = await lines.next();
  return done ? null : JSON.parse(value);
}

class Dies extends Error {}

async function ask(question) {
  say(question);
  const answer = await hear();
  if (answer.dies) throw new Dies();
  return answer;
}

const transport = {
  trust() {},
  send: async (wire) => ask({ ask: "send", wire: hex(wire) }),
  fetch: async () => null,
  round: async () => (await ask({ ask: "round" })).round,
};

/** A memory that outlives its device, which may die before a step or after it. */
function dying(store) {
  return {
    ...store,
    transact: async (change) => {
      await ask({ ask: "step" });
      const found = await store.transact(change);
      await ask({ ask: "step" });
      return found;
    },
  };
}

const { file, secrets, classes, budget, trust } = await hear();
let now = 0;
const stores = await Promise.all(
  secrets.map(async (secret) => {
    const [store, pair] = [inMemory(), await pairOf(unhex(secret))];
    await limit(store, { total: budget, perQuestion: budget });
    return { ...store, key: async () => pair };
  }),
);
const alive = new Map();

async function device(place) {
  if (!alive.has(place)) {
    const own = classes.length ? { epsilonClass: classes[place % classes.length] } : {};
    const options = { store: dying(stores[place]), transport, now: () => now, ...own, ...(trust ? { trust } : {}) };
    alive.set(place, await Device.open(unhex(file), options));
  }
  return alive.get(place);
}

const work = {
  submit: async ({ place, value, round }) => (await (await device(place)).submit(value, round === null ? {} : { round })).state,
  flush: async ({ place }) => (await (await device(place)).flush()).length,
  off: async ({ place }) => alive.delete(place),
  // what a broken device would do: what has not arrived is neither kept nor paid for
  forget: async ({ place }) => {
    alive.delete(place);
    await stores[place].transact((memory) => {
      memory.questions = {};
      for (const known of Object.values(memory.campaigns)) {
        const [paid, drawn] = [known.spent.split("/").map(BigInt), Object.entries(known.reports)];
        const kept = drawn.filter(([, { state }]) => state === "accepted");
        known.reports = Object.fromEntries(kept);
        known.spent = `${paid[0] * BigInt(kept.length)}/${paid[1] * BigInt(drawn.length || 1)}`;
      }
    });
  },
  account: async ({ place }) => {
    const { campaigns } = await account(stores[place]);
    const joined = (await stores[place].transact((memory) => memory)).campaigns;
    return campaigns.map((each) => ({ ...each, joined: joined[each.id].joined }));
  },
};

for (let wanted; (wanted = await hear()); ) {
  now = wanted.now ?? now;
  try {
    say({ done: await work[wanted.do](wanted) });
  } catch (error) {
    if (error instanceof Dies) alive.delete(wanted.place);
    say({ refused: error instanceof Dies ? "dies" : (error.kind ?? error.stack) });
  }
}
