/**
 * The page of a survey, as `dovetail survey build` puts it into one file: it asks, explains, randomizes and sends.
 *
 * It knows nothing at run time but the data beside it: signed campaigns, words of one language, and three addresses.
 */

import { Device, DovetailError, type Receipt, account, indexedDbStore, parseCampaign } from "./browser.js";
import { asks } from "./asks.js";
import { type Tokens, anonymousTokens } from "./tokens.js";

interface Question {
  /** Its place in `campaigns`, and that of its answer in what the campaign's report says. */
  readonly campaign: number;
  readonly part: number;
  readonly question: string;
  readonly answers: readonly string[];
  /** Of 100 people with each answer, how many send which. */
  readonly sent: readonly (readonly number[])[];
  readonly factor: string;
}

interface Survey {
  readonly campaigns: readonly string[];
  readonly questions: readonly Question[];
  readonly factor: string;
  readonly operators: "one" | "two";
  readonly access: "open" | "invitations" | "tokens";
  readonly desk: string;
  readonly results: string;
  readonly words: Readonly<Record<string, string>>;
}

const survey = JSON.parse(document.getElementById("data")!.textContent!) as Survey;
const main = document.getElementById("survey")!;

function say(key: string, values: Readonly<Record<string, string>> = {}): string {
  return (survey.words[key] ?? key).replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "");
}

type Child = Node | string;

function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The invitation, out of the address at once; the history of this tab keeps it until it is used. */
function takeCode(): string | null {
  const found = /^#i=([\w-]{22})$/.exec(location.hash)?.[1];
  if (found) history.replaceState({ code: found }, "", location.pathname + location.search);
  const kept: unknown = (history.state as { code?: unknown } | null)?.code;
  return typeof kept === "string" ? kept : null;
}

const code = survey.access === "open" ? null : takeCode();
const status = element("p", { role: "status", "aria-live": "polite", id: "status" });
let devices: Device[] = [];
let enrolled = survey.access !== "invitations";
const REFUSALS: Readonly<Record<string, string>> = { issued: "used_invitation", unentitled: "unknown_invitation" };
let refused = ""; // why the issuer gave no token when it was last asked

/** Tokens that the invitation buys; where there are none, nothing is asked of any issuer. */
function tokens(): Tokens | undefined {
  if (survey.access !== "tokens") return undefined;
  const bought = anonymousTokens(code === null ? {} : { entitlement: code });
  const pass: Tokens["pass"] = async (...asked) => {
    const found = await bought.pass(...asked);
    refused = found.receipt.reason;
    return found;
  };
  return { ...bought, pass };
}

/** Tell the desk whose key this invitation belongs to; false where it cannot be asked now. */
async function enrol(): Promise<boolean> {
  if (enrolled) return true;
  if (code === null) throw new DovetailError("config", say("no_invitation"));
  let answer: Response;
  try {
    const body = JSON.stringify({ code, device: devices[0]!.key });
    answer = await fetch(`${survey.desk}/v1/enrol`, { method: "POST", body, credentials: "omit", referrerPolicy: "no-referrer" });
  } catch {
    return false;
  }
  if (answer.status === 403) throw new DovetailError("config", say("unknown_invitation"));
  if (answer.status === 409) throw new DovetailError("config", say("used_invitation"));
  return (enrolled = answer.ok);
}

function explain(error: unknown): string {
  if (!(error instanceof DovetailError)) return say("error_fault");
  if (error.kind === "token" && refused in REFUSALS) return say(REFUSALS[refused]!);
  return survey.words[`error_${error.kind}`] && error.kind !== "config" ? say(`error_${error.kind}`) : error.message;
}

/** One sentence for what became of all answers together. */
function outcome(receipts: readonly Receipt[]): string {
  const refused = receipts.find(({ state }) => state === "refused");
  if (refused) return say("refused", { why: refused.why });
  return say(receipts.every(({ state }) => state === "accepted") ? "accepted" : "waiting");
}

let timer: ReturnType<typeof setTimeout> | undefined;

function report(receipts: readonly Receipt[]): void {
  status.textContent = outcome(receipts);
  const waits = receipts.filter(({ state }) => state === "waiting").map(({ wait }) => wait);
  clearTimeout(timer);
  if (waits.length) timer = setTimeout(() => void again(), 1000 * Math.min(60, Math.max(1, ...waits)));
}

/** Send what waits. */
async function again(): Promise<void> {
  try {
    await enrol();
    const receipts: Receipt[] = [];
    for (const device of devices) receipts.push(...(await device.flush()));
    if (receipts.length) report(receipts);
  } catch (error) {
    status.textContent = explain(error);
  }
}

function promise({ answers, sent, factor }: Question): HTMLElement {
  const head = element("tr", {}, element("th", { scope: "col" }, say("table_answer")));
  head.append(...answers.map((answer) => element("th", { scope: "col" }, say("table_sent", { answer }))));
  const rows = answers.map((answer, place) => {
    const cells = sent[place]!.map((count) => element("td", {}, new Intl.NumberFormat(document.documentElement.lang).format(count)));
    return element("tr", {}, element("th", { scope: "row" }, answer), ...cells);
  });
  const caption = element("caption", {}, say("table"));
  const table = element("table", {}, caption, element("thead", {}, head), element("tbody", {}, ...rows));
  const wide = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": say("table") }, table);
  return element("details", {}, element("summary", {}, say("how")), element("p", {}, say("odds", { factor })), wide);
}

function fieldset(question: Question, place: number): HTMLElement {
  const options = question.answers.map((answer, number) =>
    element("label", {}, element("input", { type: "radio", name: `q${place}`, value: String(number), required: "" }), element("span", {}, answer)),
  );
  return element("fieldset", {}, element("legend", {}, question.question), ...options, promise(question));
}

function form(): HTMLFormElement {
  const consent = element("input", { type: "checkbox", id: "consent", required: "" });
  const made = element(
    "form",
    { novalidate: "" },
    ...survey.questions.map(fieldset),
    element("label", { class: "consent" }, consent, element("span", {}, say("consent"))),
    element("button", { type: "submit" }, say("send")),
  );
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const answers = survey.questions.map((_, place) => new FormData(made).get(`q${place}`));
    const missing = answers.indexOf(null);
    if (missing >= 0 || !consent.checked) {
      status.textContent = say(missing >= 0 ? "answer_all" : "consent_first");
      (missing >= 0 ? made.querySelector<HTMLElement>(`[name=q${missing}]`) : consent)?.focus();
      return;
    }
    void send(made, answers.map(Number));
  });
  return made;
}

async function send(made: HTMLFormElement, answers: readonly number[]): Promise<void> {
  const button = made.querySelector("button")!;
  button.disabled = true;
  status.textContent = say("sending");
  try {
    if (survey.access !== "open" && code === null) throw new DovetailError("config", say("no_invitation"));
    await enrol();
    const receipts: Receipt[] = [];
    for (const [place, device] of devices.entries()) {
      const own = answers.filter((_, number) => survey.questions[number]!.campaign === place);
      receipts.push(await device.submit(own.length > 1 ? own : own[0]));
    }
    made.replaceWith(thanks(receipts, answers));
    status.focus();
    report(receipts);
    void navigator.storage?.persist?.().catch(() => false);
  } catch (error) {
    button.disabled = false;
    status.textContent = explain(error);
  }
}

/** After the answer: what was sent stands behind a button, for who sees a lie is tempted to answer again. */
function thanks(receipts: readonly Receipt[], answers: readonly number[]): HTMLElement {
  const lines = survey.questions.map(({ question, answers: names, campaign, part }, place) => {
    const report = receipts[campaign]!.report?.[0];
    const sent = Array.isArray(report) ? report[part] : report;
    if (typeof sent !== "bigint") return element("li", {}, say("not_drawn", { question }));
    return element("li", {}, say("shown", { question, answer: names[answers[place]!]!, sent: names[Number(sent)]! }));
  });
  const shown = element("details", {}, element("summary", {}, say("show")), element("ul", {}, ...lines), element("p", {}, say("deniable")));
  return element("section", {}, element("h2", {}, say("thanks")), shown, after());
}

function after(): HTMLElement {
  const link = element("a", { href: survey.results, rel: "noreferrer" }, say("results"));
  return element("p", {}, say("keep"), " ", link);
}

/** What this browser remembers to have sent, for the person whose browser it is. */
async function ledger(store: Parameters<typeof account>[0]): Promise<HTMLElement> {
  const list = element("ul");
  const details = element("details", {}, element("summary", {}, say("ledger")), list);
  details.addEventListener("toggle", () => {
    void account(store).then(({ campaigns, spent, total, since }) => {
      const asked = (id: string) => devices.find(({ campaign }) => campaign.id === id)?.campaign.question ?? id;
      const lines = campaigns.flatMap(({ id, reports }) =>
        reports.map(({ state }) => element("li", {}, `${asked(id)} ${say(`state_${state}`)}`)),
      );
      const numbers = new Intl.NumberFormat(document.documentElement.lang);
      const sum = say("ledger_sum", { spent: numbers.format(spent), total: numbers.format(total), since });
      list.replaceChildren(...lines, element("li", {}, sum));
    });
  });
  return details;
}

async function begin(): Promise<void> {
  main.append(
    element("p", { class: "lead" }, say("intro")),
    element("p", {}, say("host")),
    element("p", {}, say(survey.questions.length > 1 ? "odds_all" : "odds", { factor: survey.factor })),
    element("p", {}, say(`operators_${survey.operators}`)),
  );
  if (survey.access !== "invitations") main.append(element("p", {}, say(survey.access)));
  status.tabIndex = -1;
  main.append(status);
  try {
    const store = await indexedDbStore();
    const files = survey.campaigns.map((campaign) => new TextEncoder().encode(campaign));
    devices = [];
    for (const file of files) {
      // nothing is drawn before the person consents; another survey of this site may have another owner
      const bought = tokens();
      const owners = [String((await parseCampaign(file, undefined, { tokens: bought, asks })).owner)];
      devices.push(await Device.open(file, { store, owners, asks, handOver: false, ...(bought && { tokens: bought }) }));
    }
    const { campaigns } = await account(store);
    const ids = devices.map((device) => device.campaign.id);
    const answered = ids.every((id) => campaigns.find((each) => each.id === id)?.reports.length);
    main.insertBefore(answered ? element("section", {}, element("h2", {}, say("thanks")), after()) : form(), status);
    main.append(await ledger(store));
    if (answered) {
      status.textContent = say("answered");
      await again();
    } else if (survey.access !== "open" && code === null) status.textContent = say("no_invitation");
    addEventListener("online", () => void again());
  } catch (error) {
    status.textContent = explain(error);
  }
}

void begin();
