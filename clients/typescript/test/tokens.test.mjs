/** Tokens: the bytes of the RFCs and of the reference, and a device that fetches, keeps and shows them once. */

import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { encodePss, keyOf } from "../dist/blind_rsa.js";
import { unpack } from "../dist/bytes.js";
import { parseCampaign } from "../dist/campaign.js";
import { event } from "../dist/delivery.js";
import { pairOf, sha256, signerOf } from "../dist/keys.js";
import { longestRequest, sealMessage } from "../dist/message.js";
import { Device, fileStore, inMemory } from "../dist/node.js";
import { anonymousTokens, applyFor, challenge, httpIssuer, tokenInput, tokenKey, tokenRequest } from "../dist/tokens.js";
import { FOLDER, START, VECTORS, campaignFile, ephemeral, hex, raw, shuffler, unhex } from "./given.mjs";

const RFC = JSON.parse(readFileSync(new URL("tokens.json", FOLDER), "utf8"));
const kind = (wanted) => (error) => error.kind === wanted && !error.message.includes("\n");
const bytes = (digits) => unhex(digits.replace(/^0x/, "").padStart(digits.length + (digits.length % 2), "0"));
const b64 = (data) => Buffer.from(data).toString("base64url");

function power(base, exponent, modulus) {
  let found = 1n;
  for (; exponent; exponent >>= 1n, base = (base * base) % modulus) if (exponent & 1n) found = (found * base) % modulus;
  return found;
}

/** (a^-1) mod n for n = p q: the vectors of RFC 9474 name the inverse of the factor. */
function inverse(a, n) {
  let [r, s, x, y] = [n, a % n, 0n, 1n];
  while (s) [r, s, x, y] = [s, r % s, y, x - (r / s) * y];
  return ((x % n) + n) % n;
}

const packed = (number, size) => unhex(number.toString(16).padStart(2 * size, "0"));

for (const each of RFC.rfc9474.vectors) {
  test(`${each.variant} of RFC 9474 has every byte`, async () => {
    const modulus = bytes(RFC.rfc9474.key.n);
    const [key, message, salt] = [keyOf(modulus), unhex(each.prepared_msg), unhex(each.salt ?? "")];
    const factor = packed(inverse(unpack(bytes(each.inv)), unpack(modulus)), modulus.length);
    assert.equal(hex(await encodePss(message, modulus.length, salt)), each.encoded_msg);
    assert.equal(hex(await key.blind(message, salt, factor)), each.blinded_msg);
    assert.equal(hex(await key.unblind(message, unhex(each.blind_sig), factor, salt.length)), each.sig);
    assert.equal(await key.unblind(message, unhex(each.sig), factor, salt.length), null);
  });
}

/** The rule of a campaign of one round with this SPKI. */
const ruleOf = (...spki) => ({ issuer: "issuer.example.org", url: "https://issuer.example.org", keys: spki.map((each) => b64(unhex(each))) });

for (const [place, held] of RFC.rfc9578.entries()) {
  test(`the tokens of key ${place} of RFC 9578's vectors have every byte`, async () => {
    const key = await tokenKey(ruleOf(held.pkS), 1);
    assert.equal(key.hasSmallFactor(), false);
    for (const each of held.vectors) {
      const said = await sha256(unhex(each.token_challenge));
      const input = new Uint8Array(Buffer.concat([unhex("0002"), unhex(each.nonce), said, key.id]));
      const factor = packed(unpack(bytes(each.blind)), 256);
      assert.equal(hex(tokenRequest(key, await key.blind(input, unhex(each.salt), factor))), each.token_request);
      const token = await key.unblind(input, unhex(each.token_response), factor);
      assert.equal(hex(input) + hex(token), each.token);
    }
  });
}

for (const each of VECTORS.tokens) {
  test(`the token of round ${each.message.round} is asked for, made and shown as by the reference`, async () => {
    const { message } = each;
    const campaign = await parseCampaign(new TextEncoder().encode(message.campaign), undefined, { tokens: anonymousTokens() });
    const [device, once] = [await signerOf(await pairOf(unhex(each.device))), await signerOf(await pairOf(unhex(message.device)))];
    const [rule, key] = [campaign.tokens, await tokenKey(campaign.tokens, message.round)];
    const said = await challenge(rule, campaign.id, message.round);
    assert.equal(hex(said), each.challenge);
    const input = await tokenInput(once.key, said, key);
    const request = tokenRequest(key, await key.blind(input, unhex(each.salt), unhex(each.factor)));
    const ways = [device, ...each.entitlements.map(raw)];
    for (const [place, by] of ways.entries()) {
      assert.equal(hex(await applyFor(campaign.id, message.round, request, by, key)), each.asked[place]);
    }
    const token = await key.unblind(input, unhex(each.signed), unhex(each.factor));
    assert.equal(hex(token), each.token);
    const pairs = message.ephemeral.map(unhex);
    const next = () => ephemeral(pairs.shift());
    const wire = await sealMessage(campaign, message.round, unhex(message.plaintext), once, unhex(message.id), message.place, next, token);
    assert.equal(hex(wire), message.wire);
    assert.equal(longestRequest(campaign), each.longest);
    const wrong = new Uint8Array(each.signed.length / 2);
    for (const signed of [unhex(each.token), wrong, new Uint8Array(0)]) assert.equal(await key.unblind(input, signed, unhex(each.factor)), null);
  });
}

test("a message that shares a factor with the key is not blinded", async () => {
  const modulus = packed((1n << 2047n) + 1n, 256); // 3 divides it
  const key = keyOf(modulus);
  const [message, factor] = [new TextEncoder().encode("message"), packed(2n, 256)];
  let shared = 0;
  for (let place = 0; place < 20; place++) {
    const salt = new Uint8Array(48).fill(place);
    const meets = unpack(await encodePss(message, 256, salt)) % 3n === 0n;
    const blinded = await key.blind(message, salt, factor);
    if (meets) assert.equal(blinded, null);
    shared += Number(blinded === null);
  }
  assert.ok(shared > 0 && shared < 20);
});

const ISSUERS = RFC.rfc9578.slice(1, 4);
const SECRETS = ISSUERS.map(({ skS }) => {
  const { n, d } = createPrivateKey(unhex(skS)).export({ format: "jwk" });
  return [unpack(raw(d)), unpack(raw(n))];
});

function section(spki = ISSUERS.map((each) => each.pkS), url = "https://issuer.example.org", name = "issuer.example.org") {
  const keys = spki.map((each) => `"${b64(unhex(each))}"`).join(", ");
  return `[tokens]\nissuer = "${name}"\nurl = "${url}"\nkeys = [${keys}]\n`;
}

const TOKEN = { count: "count = 3", delta: 'delta = 1e-06\nauthentication = "token"' };

/** An issuer that signs with the key of the round that is asked for, or answers as it is told first. */
function issuer(...answers) {
  const asked = [];
  return {
    asked,
    urls: [],
    answers,
    shift: 0,
    async ask(url, application) {
      this.urls.push(url);
      asked.push(hex(application));
      const told = answers.shift();
      if (told !== undefined) return told;
      const named = 6 + application[5];
      const round = Number(unpack(application.slice(named, named + 4)));
      const [d, n] = SECRETS[(round - 1 + this.shift) % 3];
      return packed(power(unpack(application.slice(-256)), d, n), 256);
    },
  };
}

async function device({ way = issuer(), store = inMemory(), transport = shuffler(), changes = {}, ending = section(), ...more } = {}) {
  let now = START + 10;
  const options = { store, transport, now: () => now, tokens: anonymousTokens({ issuer: way, ...more }) };
  const made = await Device.open(await campaignFile({ ...TOKEN, ...changes }, undefined, ending), options);
  const held = async (round) => (await store.transact((memory) => memory.campaigns.meters.tokens))[round];
  return { made, way, store, transport, held, wait: (seconds) => void (now += seconds) };
}

test("tokens are fetched before they are needed, and each is shown once with a key of its own", async () => {
  const { made, way, transport, held, wait } = await device();
  const told = await made.fetchTokens(1);
  assert.deepEqual(told.map(({ round, state, reason }) => [round, state, reason]), [[1, "held", ""], [2, "held", ""]]);
  assert.equal(way.asked.length, 2);
  assert.deepEqual([(await held(1)).salt, (await held(1)).factor], ["", ""], "what hid the request is erased");
  assert.equal((await made.submit(1)).state, "accepted");
  assert.equal((await made.submit(2)).drawn, false);
  wait(3600);
  assert.equal((await made.submit(1)).round, 2);
  assert.equal(way.asked.length, 2, "nobody is asked at the time of a report");
  assert.equal(new Set(transport.sent.map((wire) => wire.length / 2)).size, 1);
  assert.equal(transport.sent[0].length / 2, 253 + 256);
  assert.deepEqual([(await held(1)).state, (await held(1)).secret, (await held(1)).token], ["spent", "", ""]);
  assert.deepEqual((await made.fetchTokens(9)).map(({ state }) => state), ["spent", "held"]);
});

test("whatever is killed asks with the same bytes again, and the memory holds no token after its report", async (context) => {
  const place = mkdtempSync(join(tmpdir(), "dovetail-"));
  context.after(() => rmSync(place, { recursive: true }));
  const way = issuer("unavailable", new Uint8Array(9));
  const first = await device({ way, store: fileStore(place) });
  const [waits] = await first.made.fetchTokens(0);
  assert.deepEqual([waits.state, waits.reason, waits.why], ["asked", "unavailable", "the issuer does not answer"]);
  const again = await device({ way, store: fileStore(place) });
  const drawn = await again.made.submit(1);
  assert.deepEqual([drawn.state, drawn.reason, drawn.drawn], ["accepted", "", true]);
  assert.equal(new Set(way.asked).size, 1);
  const kept = readdirSync(place).filter((name) => /^\d+$/.test(name)).map((name) => readFileSync(join(place, name), "utf8")).join("");
  assert.ok(kept.includes('"spent"') && !/"(secret|token|factor)":"[^"]/.test(kept));
});

test("a report is drawn while the issuer does not answer, and waits for its token", async () => {
  const way = issuer("unavailable", "unavailable", "rate_limited");
  const { made, transport, wait } = await device({ way });
  const first = await made.submit(1);
  assert.deepEqual([first.state, first.reason, first.why, first.drawn], ["waiting", "token", "it has no token", true]);
  assert.equal(transport.sent.length, 0);
  wait(1800);
  await made.flush();
  wait(1799);
  assert.deepEqual((await made.flush()).map(({ state }) => state), ["accepted"]);
  assert.equal(new Set(way.asked).size, 1);
  assert.equal(transport.sent.length, 1);
});

test("where the issuer refuses, nothing is drawn, and it is asked again only where that can help", async () => {
  for (const [answer, again] of [["unentitled", true], ["too_early", true], ["not_found", true], ["malformed", true], ["issued", false], ["late", false]]) {
    const way = issuer(answer);
    const { made, store, transport } = await device({ way });
    await assert.rejects(made.submit(1), kind("token"));
    assert.deepEqual((await store.transact((memory) => memory.campaigns.meters.reports))[1], undefined);
    if (again) assert.equal((await made.submit(1)).state, "accepted");
    else await assert.rejects(made.submit(1), kind("token"));
    assert.deepEqual([way.asked.length, transport.sent.length], again ? [2, 1] : [1, 0], answer);
  }
});

test("an issuer that signs with a key of somebody's own is not believed, and is never asked again", async () => {
  const way = issuer();
  way.shift = 1;
  const { made, held } = await device({ way });
  await assert.rejects(made.submit(1), /could tell this device from others/);
  await assert.rejects(made.submit(1), kind("token"));
  assert.deepEqual([way.asked.length, (await held(1)).state, (await held(1)).reason], [1, "refused", "forged"]);
});

test("nothing that was drawn for another key of a round is asked or shown with it", async () => {
  const { made, store } = await device({ way: issuer("unavailable") });
  await made.fetchTokens(0);
  const [one, two, three] = ISSUERS.map((each) => each.pkS);
  const way = issuer();
  const known = (await store.transact((memory) => memory)).campaigns.meters.tokens;
  const fresh = await device({ way, ending: section([two, one, three]) });
  await fresh.store.transact((memory) => void (memory.campaigns.meters.tokens = known));
  await assert.rejects(fresh.made.submit(1), /another issuer or key/);
  assert.deepEqual([way.asked.length, (await fresh.held(1)).secret], [0, ""]);
});

test("a newer version may name another address of the issuer, and other keys are other terms", async () => {
  const newer = async (ending) => {
    const transport = shuffler(event("outdated", "campaign"));
    transport.newer = await campaignFile({ ...TOKEN, version: "version = 2" }, undefined, ending);
    return device({ transport });
  };
  const { made, way, wait } = await newer(section(undefined, "https://elsewhere.example.org/x"));
  assert.equal((await made.submit(1)).state, "accepted");
  wait(3600);
  assert.equal((await made.submit(1)).state, "accepted");
  assert.deepEqual(way.urls, ["https://issuer.example.org", "https://elsewhere.example.org/x"]);
  const other = await newer(section([...ISSUERS].reverse().map((each) => each.pkS)));
  assert.equal((await other.made.submit(1)).reason, "changed");
});

test("a code or a voucher asks instead of the device's key, and anything else is neither", async () => {
  const code = b64(new Uint8Array(16).fill(7));
  const { made, way } = await device({ entitlement: ` ${code}\n` });
  await made.fetchTokens(0);
  assert.ok(way.asked[0].includes("01" + "07".repeat(16)) && !way.asked[0].includes(hex(raw(made.key.slice(8)))));
  for (const entitlement of ["", "AAAA", "!"]) assert.throws(() => anonymousTokens({ entitlement }), kind("config"));
});

test("campaigns with tokens are refused without what fetches them, and what does not go with them always", async () => {
  const signed = await campaignFile(TOKEN, undefined, section());
  await assert.rejects(Device.open(signed, { store: inMemory(), transport: shuffler() }), kind("unsupported"));
  const [one, two, three] = ISSUERS.map((each) => each.pkS);
  const even = one.slice(0, -12) + "00" + one.slice(-10);
  const small = packed(3n * ((1n << 2046n) + 1n), 256);
  const made = one.slice(0, 162) + hex(small) + one.slice(-10);
  assert.equal(made.length, one.length);
  for (const [changes, ending] of [
    [{}, ""],
    [{ delta: "delta = 1e-06" }, section()],
    [{ minimum: 'minimum = 100\nsmall = "merge"' }, section()],
    [{ minimum: 'minimum = 100\nlate = "next"' }, section()],
    [{}, section([one, two])],
    [{}, section([one, two, two])],
    [{}, section([one, two, even])],
    [{}, section([one, two, made])],
    [{}, section([one, two, three.slice(0, -2)])],
    [{}, section([one, two, three + "00"])],
    [{}, section([one, two, "ff" + three.slice(2)])],
    [{}, section(undefined, "ftp://issuer.example.org")],
    [{}, section(undefined, "https://issuer.example.org?x")],
    [{}, section(undefined, undefined, "ü")],
    [{}, section(undefined, undefined, "x".repeat(256))],
    [{}, section() + "more = 1\n"],
  ]) {
    await assert.rejects(device({ changes, ending }), kind("config"), ending);
  }
});

test("the issuer is asked over https beyond this machine, and what is no issuer's answer is none", async () => {
  await assert.rejects(httpIssuer().ask("http://issuer.example.org", new Uint8Array(1)), kind("config"));
  assert.equal(await httpIssuer({ timeout: 5 }).ask("http://127.0.0.1:1", new Uint8Array(1)), "unavailable");
});
