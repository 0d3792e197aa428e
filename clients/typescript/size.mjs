/** How long the package is with its one dependency, bundled, minified and compressed; fails above a limit. */

import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const CORE = `
export { parseCampaign } from "./campaign.js";
export { draw, readAnswer, sealMessage } from "./message.js";
export { makeKey, signerOf } from "./keys.js";
export { SystemEntropy } from "./words.js";`;
const WHOLE = 'export * from "./browser.js";';
const ASKS = 'export * from "./browser.js"; export * from "./asks.js";';
const DUMMIES = 'export * from "./browser.js"; export * from "./dummies.js";';
const MEMOIZE = 'export * from "./browser.js"; export * from "./memoize.js";';
const TOKENS = 'export * from "./browser.js"; export * from "./tokens.js";';
for (const [what, contents, limit] of [
  ["from campaign file to message", CORE, 16_200],
  ["with memory, outbox, HTTP and relays", WHOLE, 23_900],
  ["with questions in [asks] besides", ASKS, 27_650],
  ["with dummies of the shuffler besides", DUMMIES, 24_300],
  ["with [memoize] besides", MEMOIZE, 24_100],
  ["with tokens besides", TOKENS, 26_500],
]) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: "src", loader: "ts" },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
  });
  const bytes = gzipSync(outputFiles[0].contents, { level: 9 }).length;
  console.log(`${what}: ${bytes} bytes of at most ${limit}`);
  if (bytes > limit) process.exitCode = 1;
}
