/** Opt-in counts for a command-line tool: off until somebody says yes, and what was given is a private answer. */

import { existsSync, readFileSync, rmSync } from "node:fs";
import { Device, SystemEntropy, fileStore, parseCampaign, stateFolder } from "dovetail-device/node";

const FILE = new Uint8Array(readFileSync(process.env.TELEMETRY_CAMPAIGN ?? new URL("campaign.toml", import.meta.url)));
const FOLDER = stateFolder("my-tool");

/** Say what would be sent for this answer; nothing is stored, and nothing is sent. */
export async function preview(answer) {
  const { question, categories, mechanism } = await parseCampaign(FILE);
  const sent = mechanism.randomize(categories.indexOf(answer), new SystemEntropy());
  return `${question} Your answer: ${answer}. Sent, for example: ${categories[Number(sent)]} (epsilon ${mechanism.epsilon}).`;
}

export const on = () => fileStore(FOLDER).key(); // makes the folder, which is the consent
export const off = () => rmSync(FOLDER, { recursive: true, force: true });

/** Count this answer, once a round, if its user has said yes; a fault never stops the tool. */
export async function count(answer) {
  if (!existsSync(FOLDER)) return "off";
  try {
    return (await (await Device.open(FILE, { store: fileStore(FOLDER) })).submit(answer)).state;
  } catch (error) {
    return error.message;
  }
}

const [verb, answer] = process.argv.slice(2);
if (verb === "preview" || verb === "count") console.log(await { preview, count }[verb](answer));
if (verb === "on" || verb === "off") await { on, off }[verb]();
