/** Many devices of one process: prints their keys, and answers each line of input, by the relay that it names. */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { asks } from "../dist/asks.js";
import { dummies } from "../dist/dummies.js";
import { Device, inMemory, limit, obliviousTransport } from "../dist/index.js";
import { makeKey, signerOf } from "../dist/keys.js";
import { memoize } from "../dist/memoize.js";

const [file, count] = [new Uint8Array(readFileSync(process.argv[2])), Number(process.argv[3])];
const trust = ["users", "shuffler"].includes(process.argv[4]) ? { trust: process.argv[4] } : {};
const keys = await Promise.all(Array.from({ length: count }, () => makeKey()));
const names = keys.map(async (pair) => String((await signerOf(pair)).key));
console.log(JSON.stringify(await Promise.all(names)));
let devices;
for await (const line of createInterface({ input: process.stdin })) {
  const { values, relay } = JSON.parse(line);
  const open = async (pair) => {
    const by = relay ? { transport: obliviousTransport(relay) } : {};
    const store = { ...inMemory(), key: async () => pair };
    await limit(store, { total: 400, perQuestion: 400 });
    return Device.open(file, { store, asks, dummies, memoize, ...trust, ...by });
  };
  devices ??= await Promise.all(keys.map(open));
  const states = {};
  const queue = devices.map((device, place) => [device, values[place]]);
  const work = async () => {
    for (let next; (next = queue.pop()); ) {
      const { state, reason } = await next[0].submit(next[1]);
      states[`${state} ${reason}`.trim()] = (states[`${state} ${reason}`.trim()] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  console.log(JSON.stringify(states));
}
