/** Others' Privacy Pass and binary HTTP at the other end, in both directions. */

import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "node:test";
import { pairOf, sha256, signerOf } from "../dist/keys.js";
import { binaryRequest, binaryResponse, padded } from "../dist/ohttp.js";
import { challenge, tokenInput, tokenKey, tokenRequest } from "../dist/tokens.js";
import { client, decode, encode, issuer } from "./foreign.mjs";
import { FOLDER, hex, unhex } from "./given.mjs";

const { pkS, skS } = JSON.parse(readFileSync(new URL("tokens.json", FOLDER), "utf8")).rfc9578[1];
const RULE = { issuer: "issuer.example.org", url: "https://issuer.example.org", keys: [Buffer.from(pkS, "hex").toString("base64url")] };
const PEM = createPrivateKey(Buffer.from(skS, "hex")).export({ format: "pem", type: "pkcs8" });
const ONE = unhex("01".padStart(512, "0")); // blinds nothing: to unblind by it is to verify
const once = async () => (await signerOf(await pairOf(crypto.getRandomValues(new Uint8Array(32))))).key;

test("a foreign issuer signs what we ask with, and takes the token", async () => {
  const [key, there, device] = [await tokenKey(RULE, 1), await issuer(PEM), await once()];
  const input = await tokenInput(device, await challenge(RULE, "meters", 1), key);
  const factor = key.drawFactor();
  const blinded = await key.blind(input, crypto.getRandomValues(new Uint8Array(48)), factor);
  const token = await key.unblind(input, await there.sign(tokenRequest(key, blinded)), factor);
  assert.equal(token?.length, 256);
  const shown = new Uint8Array([...input, ...token]);
  assert.equal(await there.verifies(shown), true);
  shown[40] ^= 1;
  assert.equal(await there.verifies(shown), false);
});

test("a foreign client reads our challenge, and its token is one of ours", async () => {
  const [key, there, device] = [await tokenKey(RULE, 1), await issuer(PEM), await once()];
  const said = await challenge(RULE, "meters", 1);
  const asked = await client(said, unhex(pkS), await sha256(device.bytes));
  assert.equal(hex(asked.request.slice(0, 3)), hex(tokenRequest(key, ONE).slice(0, 3)));
  const token = await asked.finish(await there.sign(asked.request));
  const input = await tokenInput(device, said, key);
  assert.equal(hex(token.slice(0, input.length)), hex(input));
  const authenticator = token.slice(input.length);
  assert.equal(hex(await key.unblind(input, authenticator, ONE)), hex(authenticator));
  assert.equal(await key.unblind(await tokenInput(await once(), said, key), authenticator, ONE), null);
});

const URL_OF = "https://shuffler/v1/reports";
const TYPED = { "content-type": "application/octet-stream" };
const SIZES = [1, 63, 64, 16383, 16384, 70000]; // lengths of one, two and four bytes
const content = (size) => Buffer.alloc(size, 7).toString("hex");

test("others write our requests as we do, and read ours", async () => {
  const cases = [{ url: "https://shuffler/v1/campaigns/meters/round", method: "GET" }];
  for (const size of SIZES) cases.push({ url: URL_OF, method: "POST", headers: TYPED, body: content(size) });
  for (const each of cases) {
    const theirs = await encode(each);
    const ours = binaryRequest(new URL(each.url).pathname, each.body && unhex(each.body));
    assert.equal(hex(padded(ours, theirs.length + 9)), hex(padded(theirs, theirs.length + 9)));
    const headers = Object.entries(each.headers ?? {});
    const expected = { method: each.method, url: each.url, headers, content: each.body ?? "" };
    for (const bytes of [ours, padded(ours, 99999)]) assert.deepEqual(await decode(bytes), expected);
  }
});

test("we read the responses that others write", async () => {
  for (const size of [0, ...SIZES]) {
    const headers = { "content-type": "application/problem+json", "retry-after": "5" };
    const theirs = await encode({ status: 429, headers, body: content(size) });
    const found = binaryResponse(padded(theirs, theirs.length + 9));
    assert.deepEqual([found.status, [...found.headers], hex(found.content)], [429, Object.entries(headers), content(size)]);
  }
});
