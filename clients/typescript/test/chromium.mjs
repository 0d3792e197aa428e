/** The vectors of the reference in a browser: what differs from them, by name; nothing if all is well. */

import { asks } from "../dist/asks.js";
import { dummies } from "../dist/dummies.js";
import { Section } from "../dist/section.js";
import { parseCampaign } from "../dist/campaign.js";
import { pairOf, signerOf } from "../dist/keys.js";
import { mechanism } from "../dist/mechanisms.js";
import { memoize } from "../dist/memoize.js";
import { draw, sealMessage } from "../dist/message.js";
import { anonymousTokens, applyFor, challenge, tokenInput, tokenKey, tokenRequest } from "../dist/tokens.js";
import { Words } from "../dist/words.js";

const ADD_ONS = { asks, dummies, memoize };
const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16));
const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

class Given extends Words {
  used = 0;

  constructor(stream) {
    super();
    this.stream = stream;
  }

  bytes(count) {
    this.used += count;
    return this.stream.slice(this.used - count, this.used);
  }
}

/** As many blocks of the stream of a seed as `bytes` take: made before, because hashing waits and drawing does not. */
async function stream(seed, bytes) {
  const blocks = Array.from({ length: Math.ceil(bytes / 32) }, async (_, number) => {
    const input = new Uint8Array(40).fill(seed, 0, 32);
    new DataView(input.buffer).setUint32(36, number);
    return new Uint8Array(await crypto.subtle.digest("SHA-256", input));
  });
  return new Given(Uint8Array.from((await Promise.all(blocks)).flatMap((block) => [...block])));
}

async function ephemeral(secret) {
  const head = unhex("302e020100300506032b656e04220420");
  const privateKey = await crypto.subtle.importKey("pkcs8", Uint8Array.from([...head, ...secret]), { name: "X25519" }, true, ["deriveBits"]);
  const { x } = await crypto.subtle.exportKey("jwk", privateKey);
  const raw = Uint8Array.from(atob(x.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  return { privateKey, publicKey: await crypto.subtle.importKey("raw", raw, { name: "X25519" }, true, []) };
}

globalThis.differences = async ({ draws, campaigns, messages, tokens }) => {
  const found = [];
  for (const { name, parameters, seed, drawn } of draws) {
    const made = asks.mechanism(name, new Section("randomizer", parameters)) ?? mechanism(name, parameters);
    const words = await stream(seed, drawn.at(-1)[2]);
    for (const [value, report, used] of drawn) {
      if (hex(made.encode(made.randomize(value, words))) !== report || words.used !== used) found.push(`${name} ${used}`);
    }
  }
  for (const [place, { file, latin, trusted, told }] of campaigns.entries()) {
    if (latin || trusted) continue;
    const taken = await parseCampaign(new TextEncoder().encode(file), undefined, ADD_ONS).then((each) => hex(each.digest), () => null);
    if (taken !== (told?.digest ?? null)) found.push(`campaign ${place}`);
  }
  for (const each of messages) {
    const campaign = await parseCampaign(new TextEncoder().encode(each.campaign), undefined, ADD_ONS);
    const answer = campaign.asked?.check(each.value) ?? each.value;
    const plaintext = draw(campaign, each.place, answer, await stream(each.seed, each.used), each.group ?? undefined);
    const [device, pairs] = [await signerOf(await pairOf(unhex(each.device))), each.ephemeral.map(unhex)];
    const next = () => ephemeral(pairs.shift());
    const wire = await sealMessage(campaign, each.round, plaintext, device, unhex(each.id), each.place, next);
    if (hex(wire) !== each.wire) found.push(`message ${each.round}`);
  }
  for (const { message, device, salt, factor, asked, signed, token } of tokens) {
    const { tokens: rule, id } = await parseCampaign(new TextEncoder().encode(message.campaign), undefined, { tokens: anonymousTokens() });
    const [key, once] = [await tokenKey(rule, message.round), await signerOf(await pairOf(unhex(message.device)))];
    const input = await tokenInput(once.key, await challenge(rule, id, message.round), key);
    const request = tokenRequest(key, await key.blind(input, unhex(salt), unhex(factor)));
    const said = await applyFor(id, message.round, request, await signerOf(await pairOf(unhex(device))), key);
    const made = await key.unblind(input, unhex(signed), unhex(factor));
    if (hex(said) !== asked[0] || hex(made) !== token) found.push(`token ${message.round}`);
  }
  return found;
};
