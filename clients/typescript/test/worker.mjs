/**
 * One of several processes that share a memory: answers rounds 1 to 12, and tells what it hands to the shuffler. Where
 * a number is given, it is killed once it has told so many.
 */

import { createHash } from "node:crypto";
import { writeSync } from "node:fs";
import { Device, fileStore } from "../dist/node.js";
import { START, campaignFile, shuffler } from "./given.mjs";

let [now, told] = [START + 1, 0];
const transport = shuffler();
transport.send = async (wire) => {
  // two processes may seal one report at the same moment: the first that is stored is sent by both
  writeSync(1, `${wire[40]} ${createHash("sha256").update(wire).digest("hex")}\n`);
  if (++told === Number(process.argv[3])) process.kill(process.pid, "SIGKILL");
  return { name: "accepted", reason: "", after: 0 };
};
const file = await campaignFile({ epsilon: "epsilon = 0.1" });
const device = await Device.open(file, { store: fileStore(process.argv[2]), transport, now: () => now });
for (let round = 1; round <= 12; round++, now += 3600) await device.submit(round % 4);
