/** Privacy Pass and binary HTTP of others, for tests: functions, or a program that answers each line of JSON. */

import { createPrivateKey, createPublicKey } from "node:crypto";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { TOKEN_TYPES, Token, TokenChallenge, publicVerif } from "@cloudflare/privacypass-ts";
import { BHttpDecoder, BHttpEncoder } from "bhttp-js";
import { hex, unhex } from "./given.mjs";

const { BlindRSAMode, Client, Issuer, TokenRequest } = publicVerif;
const PSS = { name: "RSA-PSS", hash: "SHA-384" };

/** A client that has asked for a token; of what it draws, the nonce is given, as ours names a one-time key. */
export async function client(challenge, spki, nonce) {
  const made = new Client(BlindRSAMode.PSS);
  crypto.getRandomValues = (array) => {
    delete crypto.getRandomValues; // the first that is drawn; salt and factor stay the client's own
    array.set(nonce);
    return array;
  };
  const request = await made.createTokenRequest(TokenChallenge.deserialize(challenge), spki);
  const finish = async (signed) => (await made.finalize(made.deserializeTokenResponse(signed))).serialize();
  return { request: request.serialize(), finish };
}

/** An issuer with this key, PEM. */
export async function issuer(pem) {
  const secret = createPrivateKey(pem);
  const keys = [secret.export({ format: "der", type: "pkcs8" }), createPublicKey(secret).export({ format: "der", type: "spki" })];
  const [pkcs8, spki] = keys.map((der) => new Uint8Array(der));
  const made = new Issuer(
    BlindRSAMode.PSS,
    "issuer.example.org",
    await crypto.subtle.importKey("pkcs8", pkcs8, PSS, true, ["sign"]),
    await crypto.subtle.importKey("spki", spki, PSS, true, ["verify"]),
  );
  return {
    sign: async (request) => (await made.issue(TokenRequest.deserialize(TOKEN_TYPES.BLIND_RSA, request))).serialize(),
    verifies: (token) => made.verify(Token.deserialize(TOKEN_TYPES.BLIND_RSA, token)),
  };
}

const own = ({ method, body, headers }) => ({ method, headers, ...(body && { body: unhex(body) }) });
const read = async ({ method, url, status, headers }, content) => ({
  ...(method ? { method, url } : { status }),
  headers: [...headers],
  content: hex(new Uint8Array(await content)),
});

/** A request {method, url, headers, body} or a response {status, headers, body}, body in hex, as others write it. */
export function encode(message) {
  const writer = new BHttpEncoder();
  if (message.url) return writer.encodeRequest(new Request(message.url, own(message)));
  return writer.encodeResponse(new Response(unhex(message.body), { status: message.status, headers: message.headers }));
}

/** What others read in these bytes. */
export function decode(bytes) {
  const reader = new BHttpDecoder();
  const found = bytes[0] ? reader.decodeResponse(bytes) : reader.decodeRequest(bytes);
  return read(found, found.arrayBuffer());
}

let asking;
const answers = {
  async blind({ challenge, key, nonce }) {
    asking = await client(unhex(challenge), unhex(key), unhex(nonce));
    return hex(asking.request);
  },
  finish: async (signed) => hex(await asking.finish(unhex(signed))),
  sign: async ({ pem, request }) => hex(await (await issuer(pem)).sign(unhex(request))),
  encode: async (message) => hex(await encode(message)),
  decode: (bytes) => decode(unhex(bytes)),
};

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  for await (const line of createInterface({ input: process.stdin })) {
    const [[what, given]] = Object.entries(JSON.parse(line));
    console.log(JSON.stringify(await answers[what](given)));
  }
}
