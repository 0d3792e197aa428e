/** The device: one report a round whatever happens, budgets, versions, hand-overs, and memories that several share. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { asks } from "../dist/asks.js";
import { dummies } from "../dist/dummies.js";
import { event, refusal } from "../dist/delivery.js";
import { pairOf, signerOf } from "../dist/keys.js";
import { memoize } from "../dist/memoize.js";
import { Device, account, fileStore, httpTransport, inMemory, limit } from "../dist/node.js";
import { START, campaignFile, handOverLine, shuffler, unhex } from "./given.mjs";

const kind = (wanted) => (error) => error.kind === wanted && !error.message.includes("\n");
const later = refusal("unreachable");

async function device(changes = {}, options = {}) {
  const transport = options.transport ?? shuffler();
  const store = options.store ?? inMemory();
  let now = START + 10;
  const made = await Device.open(await campaignFile(changes), { store, transport, now: () => now, ...options });
  return { made, transport, store, wait: (seconds) => void (now += seconds) };
}

test("a second answer of a round is not drawn, and the same bytes are sent until they have arrived", async () => {
  const { made, transport, wait } = await device({}, { transport: shuffler(later, later) });
  const first = await made.submit(0);
  assert.deepEqual([first.state, first.reason, first.drawn], ["waiting", "unreachable", true]);
  assert.equal((await made.pending(1)).length, 1);
  const second = await made.submit(3);
  assert.deepEqual([second.state, second.round, second.drawn], ["waiting", 1, false]);
  for (let tries = 0; tries < 3; tries++) {
    wait(1800);
    await made.flush();
  }
  assert.equal(new Set(transport.sent).size, 1);
  assert.equal(transport.sent.length, 3);
  assert.equal(await made.pending(1), null);
});

test("a report that waits holds back the next round, so that an outage costs one report", async () => {
  const { made, store, transport, wait } = await device({}, { transport: shuffler(later, later) });
  await made.submit(1);
  wait(3600);
  assert.equal((await made.submit(2)).round, 1);
  wait(10);
  assert.equal((await made.submit(2)).round, 2);
  assert.equal(transport.sent.length, 4);
  assert.equal((await account(store)).campaigns[0].reports.length, 2);
});

test("what was refused for good is never sent again, and what it said is erased", async () => {
  const { made, store, transport } = await device({}, { transport: shuffler(refusal("second_report")) });
  assert.deepEqual([(await made.submit(1)).reason, (await made.submit(1)).state], ["second_report", "refused"]);
  assert.equal(transport.sent.length, 1);
  const kept = await store.transact((memory) => memory.campaigns.meters.reports[1]);
  assert.deepEqual([kept.plaintext, kept.wire, kept.id], ["", "", ""]);
});

test("budgets are exact in decimals, and hold over campaigns, questions and whatever is asked", async () => {
  const store = inMemory();
  const tenth = { epsilon: "epsilon = 0.1", device_budget: "device_budget = 0.3" };
  const { made, wait } = await device(tenth, { store });
  for (let round = 1; round <= 3; round++) {
    assert.equal((await made.submit(0)).drawn, true);
    wait(3600);
  }
  await assert.rejects(made.submit(0), kind("budget"));
  assert.equal((await account(store)).spent, 0.3);
  const other = { id: 'id = "others"', epsilon: "epsilon = 4.8" };
  const { made: second } = await device(other, { store });
  await assert.rejects(second.submit(0), /at most 5 nats on one question, of which 0.3 are spent/);
  const { made: third } = await device({ ...other, id: 'id = "thirds"', question: 'question = "Else?"' }, { store });
  assert.equal((await third.submit(0)).state, "accepted");
  const { made: fourth } = await device({ ...other, id: 'id = "4"', question: 'question = "More?"' }, { store });
  await limit(store, { total: 9.8 });
  await assert.rejects(fourth.submit(0), /at most 9.8 nats in all, of which 5.1 are spent/);
  await limit(store, { total: 9.9 });
  assert.equal((await fourth.submit(0)).state, "accepted");
  await assert.rejects(limit(store, { total: 0 }), kind("parameter"));
});

test("a newer version with other keys is followed with the same report, one that asks something else is not", async () => {
  const newer = { version: "version = 2", count: "count = 24" };
  const transport = shuffler(event("outdated", "campaign"));
  transport.newer = await campaignFile(newer);
  const { made, store } = await device({}, { transport });
  assert.equal((await made.submit(2)).state, "accepted");
  assert.equal(made.campaign.version, 2);
  assert.equal(transport.sent.length, 2);
  assert.notEqual(transport.sent[0], transport.sent[1]);
  await assert.rejects(device({}, { store }).then(({ made: old }) => old.submit(1, { round: 30 })), kind("parameter"));
  const { made: again } = await device({}, { store });
  assert.equal(again.campaign.version, 2);

  const changed = shuffler(event("outdated", "campaign"));
  changed.newer = await campaignFile({ ...newer, epsilon: "epsilon = 2.0" });
  const { made: other } = await device({}, { transport: changed });
  assert.equal((await other.submit(2)).reason, "changed");
  await assert.rejects(other.submit(2), kind("config"));
  await assert.rejects(device({ ...newer, question: 'question = "X?"' }, { store }), kind("config"));
});

test("a version that would show the address is not followed, nor one whose requests are too long for their length", async () => {
  const key = Buffer.concat([unhex("010020"), Buffer.alloc(32, 9), unhex("000400010001")]).toString("base64url");
  const route = (pad) => `[ohttp]\nrelay = "https://relay.example.org"\nkeys = ["${key}"]\npad = ${pad}\n`;
  const transport = shuffler(event("outdated", "campaign"));
  transport.newer = await campaignFile({ version: "version = 2" });
  const signed = await campaignFile({}, undefined, route(448));
  const made = await Device.open(signed, { store: inMemory(), transport, now: () => START });
  assert.equal((await made.submit(2)).reason, "changed");
  assert.equal(made.campaign.version, 1);
  const options = { store: inMemory(), now: () => START };
  assert.equal((await Device.open(signed, options)).campaign.ohttp.pad, 448); // by the relay, without a transport
  await assert.rejects(Device.open(await campaignFile({}, undefined, route(200)), { ...options, store: inMemory() }), /longest request/);
});

const BODY = `[asks]
question = "covariance"
values = [{name = "height", lower = 140, upper = 200}, {name = "weight", lower = 50, upper = 100}]
symbols = [[{of = ["height"], rounding = "even", points = 2}, {of = ["weight"], rounding = "even", points = 2}]]
`;

test("the values of a person are taken by name or in order, and a wrong one draws and costs nothing", async () => {
  const [store, transport] = [inMemory(), shuffler(event("outdated", "campaign"))];
  const options = { store, transport, asks, now: () => START };
  const made = await Device.open(await campaignFile({}, undefined, BODY), options);
  for (const wrong of [3, [172], { height: 172, weight: "68" }, { height: 172, weight: 468 }]) {
    await assert.rejects(made.submit(wrong), kind("data"));
  }
  assert.equal((await account(store)).spent, 0);
  transport.newer = await campaignFile({ version: "version = 2" }, undefined, BODY.replace("covariance", "correlation"));
  assert.equal((await made.submit({ weight: 68, height: 172 }, { round: 1 })).reason, "changed"); // other [asks] are not followed
  const next = await Device.open(await campaignFile({ id: 'id = "next"' }, undefined, BODY), options);
  const { state, report } = await next.submit([172, 68], { round: 1 });
  assert.deepEqual([state, report.length, typeof report[0]], ["accepted", 1, "bigint"]);
});

const SHUFFLED = { delta: 'delta = 1e-2\ntrust = "shuffler"' };
const DUMMIES = `[dummies]\nepsilon = 1.0\ndelta = 1e-6\nvariance = "1715/4"\n`;

test("[asks], tokens, [memoize] and dummies of the shuffler without their modules are left out by name", async () => {
  for (const [changes, ending] of [
    [{}, BODY],
    [{}, '[tokens]\nissuer = "https://issuer.example.org"\n'],
    [SHUFFLED, `${DUMMIES}reach = 30\n`],
    [{}, MEMOIZED],
    [{ name: 'name = "budget_laplace"' }, ""],
  ]) {
    const opened = Device.open(await campaignFile(changes, undefined, ending), { store: inMemory() });
    await assert.rejects(opened, (error) => error.kind === "unsupported" && /(^budget_laplace is not in this package; the device in Python answers this campaign|^\[(\w+)\] needs dovetail-device\/\2)\.$/.test(error.message));
  }
});

test("where the shuffler's dummies alone hide answers a device asks for that trust, and pays for all symbols of a batch", async () => {
  const open = { ...SHUFFLED, name: 'name = "none"', epsilon: "" };
  const options = { transport: shuffler(), asks, dummies, now: () => START };
  const several = BODY.replace("]]", "], [{of = [\"height\"], rounding = \"spline\", points = 3}]]");
  const digits = BODY.replace('{of = ["height"], rounding = "even", points = 2}, {of = ["weight"], rounding = "even", points = 2}', '{of = ["height"], rounding = "digits", points = 9}');
  for (const [k, ending, symbols, price] of [
    [4, `${DUMMIES}reach = 30\n`, 1, 1],
    [7, `${DUMMIES}reach = 30\n${several}`, 2, 2],
    [6, `${DUMMIES}reaches = [30, 20]\n${digits}`, 2, 1],
  ]) {
    const [file, store] = [await campaignFile({ ...open, k: `k = ${k}` }, undefined, ending), inMemory()];
    for (const trust of [undefined, "users"]) await assert.rejects(Device.open(file, { ...options, store, trust }), /trust: "shuffler"/);
    await assert.rejects(Device.open(file, { ...options, store, trust: "shuffler", maxEpsilon: 700 }), /of epsilon Infinity/);
    const made = await Device.open(file, { ...options, store, trust: "shuffler" });
    const { report } = await made.submit(ending.includes("[asks]") ? [172, 68] : 3, { round: 1 });
    assert.deepEqual([report.length, (await account(store)).spent], [symbols, price]);
  }
  const krr = await campaignFile(SHUFFLED, undefined, `${DUMMIES}reach = 30\n`);
  assert.equal((await (await Device.open(krr, { ...options, store: inMemory() })).submit(3, { round: 1 })).state, "accepted");
});

const TOGETHER = `[asks]
question = "joint"
[[asks.each]]
question = "shares"
values = [{name = "way", categories = ["walk", "bike", "car"]}]
symbols = [[{of = ["way"], rounding = "list", points = 3}]]
[[asks.each]]
question = "number"
values = [{name = "minutes", lower = 0, upper = 60}]
`;
const PARTS = 'parts = [{name = "krr", k = 3, epsilon = 0.1}, {name = "laplace", lower = 0, upper = 60, grid = 2, epsilon = 0.2}]';

test("several questions are answered in one report, which costs their sum, and one wrong answer draws nothing", async () => {
  const [store, transport] = [inMemory(), shuffler()];
  const file = await campaignFile({ name: 'name = "joint"', k: PARTS, epsilon: "" }, undefined, TOGETHER);
  const made = await Device.open(file, { store, transport, asks, now: () => START });
  for (const wrong of [["walk"], ["walk", 61], ["run", 5], { way: "walk" }, { way: "walk", minutes: null }]) {
    await assert.rejects(made.submit(wrong), kind("data"));
  }
  assert.equal((await account(store)).spent, 0);
  const { state, report } = await made.submit({ minutes: 25, way: "bike" }, { round: 1 });
  assert.deepEqual([state, transport.sent.length, report.length, report[0].length], ["accepted", 1, 1, 2]);
  assert.equal((await account(store)).spent, 0.3);
});

test("among dummies the answers to several questions are one symbol, which says them all and costs one batch", async () => {
  const each = TOGETHER.replace('lower = 0, upper = 60}]', 'lower = 0, upper = 60}]\nsymbols = [[{of = ["minutes"], rounding = "bins", bins = 4, points = 2}]]');
  const open = { ...SHUFFLED, name: 'name = "none"', epsilon: "", k: "k = 6" };
  const [store, transport] = [inMemory(), shuffler()];
  const made = await Device.open(await campaignFile(open, undefined, `${DUMMIES}reach = 30\n${each}`), { store, transport, asks, dummies, trust: "shuffler", now: () => START });
  for (const wrong of [["walk"], ["walk", 61], ["run", 5], { way: "walk" }]) await assert.rejects(made.submit(wrong), kind("data"));
  const { state, report } = await made.submit({ minutes: 40, way: "bike" }, { round: 1 });
  assert.deepEqual([state, report, (await account(store)).spent], ["accepted", [3n], 1]);
  await assert.rejects(Device.open(await campaignFile({ ...open, k: "k = 5" }, undefined, `${DUMMIES}reach = 30\n${each}`), { store, asks, dummies }), /other symbols/);
  const single = each.slice(0, each.lastIndexOf("[[asks.each]]"));
  await assert.rejects(Device.open(await campaignFile({ ...open, k: "k = 3" }, undefined, `${DUMMIES}reach = 30\n${single}`), { store, asks, dummies }), /at least 2 questions/);
});

test("of several questions one is drawn, which costs the largest epsilon, whatever a person holds", async () => {
  const file = await campaignFile({ name: 'name = "one"\nweights = [1, 3]', k: PARTS, epsilon: "" }, undefined, TOGETHER.replace("joint", "one"));
  const drawn = [0, 0];
  for (let person = 0; person < 100; person++) {
    const [store, transport] = [inMemory(), shuffler()];
    const made = await Device.open(file, { store, transport, asks, now: () => START });
    const { report } = await made.submit({ minutes: 25, way: "bike" }, { round: 1 });
    drawn[Number(report[0][0])]++;
    assert.equal((await account(store)).spent, 0.2);
  }
  assert.ok(drawn[0] > 0 && drawn[1] > 40, String(drawn)); // either fails with a chance below 1e-11
});

const MEMOIZED = "[memoize]\nconstant_values = true\n";

test("where a campaign repeats one report it is drawn and paid for once, whatever is answered later and whoever opens it", async (context) => {
  const [place, transport] = [folder(context), shuffler()];
  let now = START + 10;
  const open = async (changes = {}, ending = MEMOIZED) =>
    Device.open(await campaignFile(changes, undefined, ending), { store: fileStore(place), transport, memoize, now: () => now });
  const plaintexts = [];
  for (let round = 1; round <= 12; round++, now += 3600) {
    transport.answers.push(later); // so that it can be looked at
    const made = await open({ version: `version = ${round}` }); // keys may change, and what was drawn stays
    const receipt = await made.submit(round % 4);
    assert.deepEqual([receipt.round, receipt.drawn, receipt.report?.length], [round, round === 1, round === 1 ? 1 : undefined]);
    plaintexts.push(String(await made.pending(round)));
    now += 10;
    assert.equal((await made.flush())[0].state, "accepted");
  }
  assert.equal(new Set(plaintexts).size, 1); // fresh ones would be with a chance of 1e-7
  assert.equal(new Set(transport.sent).size, 12);
  const { spent, campaigns } = await account(fileStore(place));
  assert.deepEqual([spent, campaigns[0].reports.length], [1, 12]);
  const other = await open({ id: 'id = "other"' });
  assert.equal((await other.submit(1)).drawn, true); // another campaign is another report
  assert.equal((await account(fileStore(place))).spent, 2);
});

test("a version that repeats reports is not followed where none was repeated, and odd tables and rounds that mix are refused", async () => {
  const transport = shuffler(event("outdated", "campaign"));
  transport.newer = await campaignFile({ version: "version = 2" }, undefined, MEMOIZED);
  const { made } = await device({}, { transport, memoize });
  assert.equal((await made.submit(2)).reason, "changed");
  for (const table of ["[memoize]\n", "[memoize]\nconstant_values = false\n", `${MEMOIZED}time = "week"\n`]) {
    const file = await campaignFile({ id: 'id = "odd"' }, undefined, table);
    await assert.rejects(Device.open(file, { store: inMemory(), memoize }), kind("config"));
  }
  for (const changes of [{ minimum: 'minimum = 100\nsmall = "merge"' }, { minimum: 'minimum = 100\nlate = "next"' }]) {
    await assert.rejects(Device.open(await campaignFile(changes, undefined, MEMOIZED), { store: inMemory(), memoize }), kind("config"));
  }
});

test("owners are pinned, a signed hand-over is followed, and only where the person allows it", async () => {
  const [store, next] = [inMemory(), new Uint8Array(32).fill(9)];
  await device({}, { store });
  const stranger = await campaignFile({ id: 'id = "other"' }, next);
  const options = { store, transport: shuffler(), now: () => START };
  await assert.rejects(Device.open(stranger, options), /not consented/);
  const another = new Uint8Array(32).fill(8);
  const named = [String((await signerOf(await pairOf(another))).key)];
  const second = await campaignFile({ id: 'id = "second"' }, another);
  await assert.rejects(Device.open(stranger, { ...options, owners: named }), /not consented/);
  assert.equal((await Device.open(second, { ...options, owners: named })).campaign.id, "second");
  await assert.rejects(Device.open(await campaignFile({ version: "version = 2" }, next), options), /pinned/);
  const line = await handOverLine(next);
  const handed = await campaignFile({ version: "version = 2" }, next, line);
  await assert.rejects(Device.open(handed, { ...options, handOver: false }), /follow no hand-over/);
  assert.equal((await Device.open(handed, options)).campaign.version, 2);
  assert.equal((await Device.open(stranger, options)).campaign.id, "other");
  await assert.rejects(Device.open(await campaignFile({ version: "version = 2", count: "count = 25" }, next, line), options), /two different files/);
});

test("a wrong clock is noticed, and then the shuffler says which round runs", async () => {
  const transport = shuffler(refusal("too_early"));
  transport.running = 3;
  const { made } = await device({}, { transport });
  assert.deepEqual([(await made.submit(1)).reason, (await made.submit(1)).round], ["too_early", 3]);
  const { made: far } = await device({}, { now: () => START - 5 });
  await assert.rejects(far.submit(1), kind("round"));
});

test("nothing is drawn for an expired campaign, a round that is over, a value out of range or too large an epsilon", async () => {
  const { made, store, transport, wait } = await device({ minimum: 'minimum = 100\nsmall = "drop"' });
  wait(2 * 3600);
  await assert.rejects(made.submit(1, { round: 1 }), kind("round"));
  await assert.rejects(made.submit(4), kind("data"));
  await assert.rejects(made.submit("north"), kind("data"));
  await assert.rejects(made.submit(1, { group: "north" }), kind("data"));
  await assert.rejects(device({}, { maxEpsilon: 0.5 }), kind("config"));
  const { made: late } = await device({ question: 'question = "Q"\nexpires = 2030-01-02T00:00:00Z' }, { now: () => START + 90000 });
  await assert.rejects(late.submit(1), /expired/);
  assert.deepEqual([transport.sent.length, (await account(store)).spent], [0, 0]);
});

test("plain HTTP leaves the machine only where somebody says so, and no password stands in an address", () => {
  assert.throws(() => httpTransport("http://example.org"), kind("config"));
  assert.throws(() => httpTransport("https://u:secret@example.org"), (error) => !error.message.includes("secret"));
  assert.throws(() => httpTransport("ftp://example.org"), kind("config"));
  for (const url of ["https://example.org", "http://127.0.0.1:1", "http://[::1]:1"]) httpTransport(url);
  httpTransport("http://example.org", { insecureHttp: true });
});

function folder(context) {
  const made = mkdtempSync(join(tmpdir(), "dovetail-"));
  context.after(() => rmSync(made, { recursive: true }));
  return made;
}

test("a memory in files is private, keeps its key, and is refused where it is damaged", async (context) => {
  const place = join(folder(context), "deep", "er");
  const { made } = await device({}, { store: fileStore(place) });
  await made.submit(1);
  const { made: again } = await device({}, { store: fileStore(place) });
  assert.equal(again.key, made.key);
  assert.equal((await again.submit(2)).drawn, false);
  const names = readdirSync(place).filter((name) => /^\d+$/.test(name)).sort((one, other) => one - other);
  assert.ok(names.slice(0, -1).every((name) => statSync(join(place, name)).size === 0), "older entries are erased");
  for (const name of readdirSync(place)) assert.equal(statSync(join(place, name)).mode & 0o077, 0);
  writeFileSync(join(place, names.at(-1)), "{");
  await assert.rejects(again.submit(3), kind("storage"));
  assert.throws(() => fileStore(join(place, "key", "x")), kind("storage"));
});

test("processes that share a memory draw one report for each round, also where some are killed", async (context) => {
  const place = folder(context);
  const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
  const told = new Map();
  const run = (number) =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, [worker, place, number % 2 ? 1 : 0], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      let text = "";
      child.stdout.on("data", (chunk) => (text += chunk));
      child.on("close", (code, signal) => resolve({ lines: text.split("\n").filter(Boolean), code, signal }));
    });
  const first = await run(1); // alone, so that one is killed however fast the others are
  const ended = [first, ...(await Promise.all([0, 2, 3, 4, 5].map(run)))];
  assert.ok(ended.some(({ signal }) => signal === "SIGKILL"), "nobody was killed");
  assert.ok(ended.some(({ code }) => code === 0), "nobody came to the end");
  for (const { lines } of ended) {
    for (const line of lines) {
      const [round, sent] = line.split(" ");
      told.set(round, (told.get(round) ?? new Set()).add(sent));
    }
  }
  assert.equal(told.size, 12);
  for (const [round, sent] of told) assert.equal(sent.size, 1, `round ${round} was told ${sent.size} things`);
  const { spent, campaigns } = await account(fileStore(place));
  assert.deepEqual([spent, campaigns[0].reports.length], [1.2, 12]);
  assert.ok(readFileSync(join(place, "key"), "utf8").length > 40);
});
