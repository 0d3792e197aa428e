/** The vectors of the reference: every draw, mass, refusal, campaign and message alike. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { affordable, charged, parseCampaign, roundAt } from "../dist/campaign.js";
import { asWritten, exactly, expBracket, fraction, krrMasses } from "../dist/exact.js";
import { seal } from "../dist/hpke.js";
import { VerifyingKey, gatewayKey, pairOf, signerOf } from "../dist/keys.js";
import { questionKey } from "../dist/ledger.js";
import { mechanism } from "../dist/mechanisms.js";
import { draw, drawn, longestRequest, readAnswer, sealMessage } from "../dist/message.js";
import { binaryRequest, binaryResponse, encapsulate, padded } from "../dist/ohttp.js";
import { Section } from "../dist/section.js";
import { ADD_ONS, FOLDER, Stream, VECTORS, ephemeral, hex, madeOf, raw, signed, unhex } from "./given.mjs";

const kind = (wanted) => (error) => error.kind === wanted && !error.message.includes("\n");

function decimal(text) {
  const [mantissa, exponent] = text.split("e");
  const scale = 10n ** BigInt(Math.abs(exponent));
  return Number(exponent) < 0 ? fraction(BigInt(mantissa), scale) : fraction(BigInt(mantissa) * scale);
}

test("thresholds are those of the reference, and so are both ends of the brackets that they come from", () => {
  for (const [first, second, ...rest] of VECTORS.masses) {
    const [n, d = "1"] = first.split("/");
    if (rest.length < 2) {
      assert.deepEqual(expBracket(fraction(BigInt(n), BigInt(d)), 75), [decimal(second), decimal(rest[0])], first);
      continue;
    }
    assert.deepEqual(krrMasses(BigInt(n), Number(second)).map(String), rest.slice(0, 2), `${first} ${second}`);
    if (rest.length > 2) assert.deepEqual(expBracket(exactly(Number(second))), rest.slice(2).map(decimal), second);
  }
});

for (const { name, parameters, seed, bytes, drawn: reports } of VECTORS.draws) {
  test(`${name} ${JSON.stringify(parameters)} draws what the reference draws, from as many bytes`, () => {
    const made = madeOf({ name, ...parameters });
    const words = new Stream(new Uint8Array(32).fill(seed));
    assert.equal(made.reportBytes, bytes);
    for (const [value, report, used] of reports) {
      const encoded = made.encode(made.randomize(value, words));
      assert.deepEqual([hex(encoded), words.used], [report, used]);
      assert.equal(hex(made.encode(made.decode(encoded))), report);
    }
  });
}

test("parameters that the reference refuses are refused", () => {
  for (const [name, parameters] of VECTORS.refused) {
    assert.throws(() => mechanism(name, parameters), kind("parameter"), `${name} ${JSON.stringify(parameters)}`);
  }
});

test("values and reports that the reference refuses are refused, and no message repeats a value", () => {
  for (const [name, parameters, value] of VECTORS.values) {
    assert.throws(() => mechanism(name, parameters).check(value), kind("data"), `${name} ${value}`);
  }
  assert.throws(() => mechanism("window", { lower: 0, upper: 1, epsilon: 1, grid: 0.5, window: 1 }).check(4711.5), (e) => !e.message.includes("4711"));
  for (const [name, parameters, data] of VECTORS.reports) {
    assert.throws(() => mechanism(name, parameters).decode(unhex(data)), kind("data"), `${name} ${data}`);
  }
});

test("budgets are counted by the same questions", () => {
  for (const [question, key] of VECTORS.questions) assert.equal(questionKey(question), key);
});

test("campaign files are taken, refused and read as by the reference", async () => {
  let taken = 0;
  for (const { file, latin, trusted, told, left_out: leftOut } of VECTORS.campaigns) {
    const signed = new Uint8Array(Buffer.from(file, latin ? "latin1" : "utf8"));
    const owner = trusted === undefined ? undefined : new VerifyingKey(unhex(trusted));
    if (!told) {
      await assert.rejects(parseCampaign(signed, owner, ADD_ONS), kind(leftOut ? "unsupported" : "config"), file);
      continue;
    }
    const found = await parseCampaign(signed, owner, ADD_ONS).catch((error) => assert.fail(`${error.message}\n${file}`));
    const places = found.classes.length;
    const rounds = found.schedule.start === null ? [] : [0, 1893456000, 1893459599.9, 2e9];
    assert.deepEqual(
      {
        id: found.id,
        version: found.version,
        question: found.question,
        digest: hex(found.digest),
        start: found.schedule.start,
        expires: found.expires,
        charged: charged(found, places && places - 1),
        affordable: found.memoized ? found.schedule.count : affordable(found.promise.deviceBudget, charged(found, places && places - 1), fraction(0n)),
        rounds: rounds.map((now) => roundAt(found.schedule, now)),
        classes: found.classes.map((each) => [each.name, each.epsilon]),
        bytes: found.mechanism.reportBytes,
        owners: found.handedOver.map((each) => String(each.before)),
        longest: found.ohttp && longestRequest(found),
      },
      told,
    );
    taken++;
  }
  assert.ok(taken > 20);
});

for (const each of VECTORS.messages) {
  test(`the message of round ${each.round} has every byte of the reference's`, async () => {
    const campaign = await parseCampaign(new TextEncoder().encode(each.campaign), undefined, ADD_ONS);
    const words = new Stream(new Uint8Array(32).fill(each.seed));
    const answer = campaign.asked?.check(each.value) ?? each.value;
    const plaintext = draw(campaign, each.place, answer, words, each.group ?? undefined);
    assert.deepEqual([hex(plaintext), words.used], [each.plaintext, each.used]);
    assert.equal(drawn(campaign, plaintext).length, each.ephemeral.length - 1);
    const device = await signerOf(await pairOf(unhex(each.device)));
    const pairs = each.ephemeral.map(unhex);
    const next = () => ephemeral(pairs.shift());
    const wire = await sealMessage(campaign, each.round, plaintext, device, unhex(each.id), each.place, next);
    assert.equal(hex(wire), each.wire);
    assert.equal(pairs.length, 0);
  });
}

/** [asks] and the randomizer of a case, as a campaign of them has it. */
function asked({ asks: table, randomizer: { categories, ...given } }) {
  return ADD_ONS.asks.read(new Section("asks", table), madeOf(given), categories ?? []);
}

for (const each of VECTORS.asked) {
  test(`of [asks] for ${each.name} come the symbols of the reference, from as many bytes`, () => {
    const words = new Stream(new Uint8Array(32).fill(VECTORS.asked.indexOf(each)));
    const found = asked(each);
    for (const [held, answers, next] of each.drawn) {
      assert.deepEqual([found.answers(found.check(held), words), Number(words.bits(8))], [answers, next]);
      const named = Object.fromEntries(found.values.map(({ name }, place) => [name, held[place]]));
      assert.deepEqual(found.check(named), found.check(held));
      if (held.length === 1) assert.deepEqual(found.check(held[0]), found.check(held));
    }
  });
}

test("tables [asks] that the reference refuses are refused", () => {
  for (const each of VECTORS.misasked) {
    assert.throws(() => asked(each), (error) => ["config", "parameter"].includes(error.kind) && !error.message.includes("\n"), JSON.stringify(each));
  }
});

test("values that the reference refuses for [asks] are refused, and no message repeats one", () => {
  const found = Object.fromEntries(VECTORS.asked.map((each) => [each.name, asked(each)]));
  for (const [name, given] of VECTORS.unanswered) assert.throws(() => found[name].check(given), kind("data"), `${name} ${given}`);
  for (const given of [4711.5, NaN, "4711.5"]) assert.throws(() => found.grid.check(given), (error) => !error.message.includes("4711"));
  assert.throws(() => found.shares.check(["4711"]), (error) => error.kind === "data" && !error.message.includes("4711"));
});

test("terms are the same however a table is written, and others where anything else is asked", async () => {
  const { campaign } = VECTORS.messages.find((each) => each.campaign.includes('question = "covariance"'));
  const body = campaign.slice(0, campaign.indexOf("# signed"));
  const terms = async (...change) => (await parseCampaign(await signed(body.replace(...change)), undefined, ADD_ONS)).terms;
  const first = await terms("", "");
  assert.equal(await terms('lower = 0.0, upper = 10.0', 'upper = 10, lower = 0'), first);
  assert.equal(await terms("\nversion = 1", "\nversion = 2"), first);
  assert.notEqual(await terms('"covariance"', '"correlation"'), first);
  assert.notEqual(await terms("upper = 10.0", "upper = 11.0"), first);
  assert.notEqual(await terms("settings = {}", "settings = {points = 3}"), first);
});

for (const each of VECTORS.oblivious) {
  test(`the request by a relay to ${each.path.slice(0, 20)} and its answer have every byte of the reference's`, async () => {
    const request = padded(binaryRequest(each.path, each.body === null ? undefined : unhex(each.body)), each.pad);
    const [wire, open] = await encapsulate(gatewayKey("key", each.key), request, await ephemeral(unhex(each.ephemeral)));
    assert.equal(hex(wire), each.wire);
    const { status, headers, content } = binaryResponse(await open(unhex(each.sealed)));
    assert.deepEqual([status, [...headers], hex(content)], [each.status, each.headers, each.content]);
    for (const place of [0, 16, each.sealed.length / 2 - 1]) {
      const forged = unhex(each.sealed);
      forged[place] ^= 1;
      assert.equal(await open(forged), null);
    }
    assert.equal(await open(new Uint8Array(3)), null);
  });
}

test("requests and answers by a relay are those of RFC 9458, Appendix A", async () => {
  const key = { id: 1, bytes: unhex("31e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e798155") };
  const secret = unhex("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73");
  const request = unhex("00034745540568747470730b6578616d706c652e636f6d012f");
  const [wire, open] = await encapsulate(key, request, await ephemeral(secret));
  const enc = "4b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472";
  const sealed = "6374e469135906992e1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525";
  assert.equal(hex(wire), "01002000010001" + enc + sealed);
  const answer = await open(unhex("c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd"));
  assert.equal(hex(answer), "0140c8");
  assert.equal(binaryResponse(answer).status, 200);
});

for (const [name, { gateway }] of Object.entries(JSON.parse(readFileSync(new URL("ohttp.json", FOLDER), "utf8")))) {
  test(`the gateway of ${name} has opened our request, and we open its answer`, async () => {
    const [content, secret] = [Uint8Array.from({ length: 64 }, (_, at) => at), Uint8Array.from({ length: 32 }, (_, at) => 100 + at)];
    const key = gatewayKey("key", Buffer.from(gateway.configuration, "hex").toString("base64url"));
    const [wire, open] = await encapsulate(key, padded(binaryRequest("/v1/reports", content), 448), await ephemeral(secret));
    assert.equal(hex(wire), gateway.sent);
    const answer = binaryResponse(await open(unhex(gateway.answered)));
    assert.deepEqual([answer.status, answer.headers.get("dovetail-answer"), hex(answer.content)], [202, "AAAA", hex(Buffer.from("abc"))]);
  });
}

test("what is no binary answer is refused", () => {
  const [empty, bad] = ["0140c8" + "04" + "0161" + "0162", "0140c8" + "04" + "0120" + "0162"]; // a header named a, and one named " "
  assert.deepEqual([...binaryResponse(unhex(empty)).headers], [["a", "b"]]);
  for (const data of ["", "01", "0140", "0040c8", "014064", "0140c8ff", "0140c80000" + "0161", "0140c8" + "0000000001", bad]) {
    assert.throws(() => binaryResponse(unhex(data)), data);
  }
  const long = binaryResponse(unhex("0140c8" + "00" + "4041" + "61".repeat(65) + "00".repeat(30)));
  assert.equal(long.content.length, 65);
  assert.throws(() => padded(new Uint8Array(9), 8), kind("config"));
});

test("HPKE makes the bytes of RFC 9180, Appendix A.1.1, and refuses points of small order", async () => {
  const [rfc] = JSON.parse(readFileSync(new URL("hpke.json", FOLDER), "utf8"));
  const sealed = await seal(unhex(rfc.pkRm), unhex(rfc.pt), unhex(rfc.info), await ephemeral(unhex(rfc.skEm)), unhex(rfc.aad));
  assert.equal(hex(sealed), rfc.enc + rfc.ct);
  await assert.rejects(seal(new Uint8Array(32), new Uint8Array(1), new Uint8Array(0)));
});

test("another implementation opens what this one seals with a key of its own", async () => {
  const { Aes128Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } = await import("@hpke/core");
  const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });
  const pair = await suite.kem.generateKeyPair();
  const to = new Uint8Array(await suite.kem.serializePublicKey(pair.publicKey));
  for (const length of [0, 1, 148, 5000]) {
    const plaintext = new Uint8Array(length).fill(7);
    const info = new Uint8Array(length % 90).fill(3);
    const sealed = await seal(to, plaintext, info);
    const recipient = await suite.createRecipientContext({ recipientKey: pair.privateKey, enc: sealed.slice(0, 32), info });
    assert.equal(hex(new Uint8Array(await recipient.open(sealed.slice(32)))), hex(plaintext));
  }
});

test("any changed byte of a campaign is refused", async () => {
  const signed = new TextEncoder().encode(VECTORS.campaigns[0].file);
  for (let place = 0; place < signed.length; place += 7) {
    for (const changed of [signed[place] ^ 1, 0x0a, 0xff]) {
      if (changed === signed[place]) continue;
      const forged = signed.slice();
      forged[place] = changed;
      await assert.rejects(parseCampaign(forged), (error) => ["config", "unsupported"].includes(error.kind));
    }
  }
});

test("a decimal costs what is written", () => {
  assert.equal(affordable(1, 0.1, fraction(0n)), 10);
  assert.equal(affordable(1, 0.3, asWritten(2)), 0);
  assert.deepEqual(asWritten(1e-7), fraction(1n, 10n ** 7n));
  assert.deepEqual(asWritten(1.5e21), fraction(15n * 10n ** 20n));
});

test("an answer counts where the shuffler has signed it for this message", async () => {
  const key = await signerOf(await pairOf(new Uint8Array(32).fill(5)));
  const wire = unhex(VECTORS.messages[0].wire);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", wire));
  const [wait, said] = [Uint8Array.of(0, 0, 1, 2), Buffer.from("rate_limited")];
  const signature = await key.sign(new Uint8Array(Buffer.concat([Buffer.from("dovetail answer\0\x01"), digest, wait, said])));
  const data = Buffer.concat([Buffer.from("DVTA\x01"), wait, signature, said]);
  const header = data.toString("base64url");
  assert.deepEqual(await readAnswer(header, wire, key.key), { kind: "rate_limited", after: 258 });
  assert.equal(await readAnswer(header, unhex(VECTORS.messages[1].wire), key.key), null);
  assert.equal(await readAnswer(header, wire, undefined), null);
  assert.equal(await readAnswer(header + "=", wire, key.key), null);
  const unsigned = Buffer.concat([Buffer.from("DVTA\x01"), wait, Buffer.alloc(64), Buffer.from("campaign")]).toString("base64url");
  assert.deepEqual(await readAnswer(unsigned, wire, key.key), { kind: "campaign", after: 0 });
  assert.equal(raw("AB="), null);
});
