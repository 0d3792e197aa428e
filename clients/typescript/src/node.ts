/**
 * A device's memory in files of Node: entry n is written aside, synced, and linked to the name n.
 *
 * EEXIST means that another process was first: the memory is read again, and decided anew. There is no lock, and
 * nothing to clean after a crash. Names never vanish, or a slow process could take one again: what an older entry said
 * is erased by an empty file in its place.
 */

import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { chmod, link, mkdir, open, readFile, readdir, rename, unlink } from "node:fs/promises";
import { homedir } from "node:os";
import { join as path } from "node:path";
import { raw, text } from "./bytes.js";
import { DovetailError } from "./errors.js";
import { makeKey, pairOf } from "./keys.js";
import { type Memory, type Store, begin, checkMemory } from "./ledger.js";

export * from "./index.js";

const KEY = "key";
const PKCS8_HEAD = 16;

/** The memory in this folder, which only its owner can read; made if it is absent. */
export function fileStore(folder: string): Store {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw failed(folder, error);
  }
  const guard = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw isFault(error) ? failed(folder, error) : error;
    }
  };
  return {
    transact: (change) => guard(() => transact(folder, change)),
    key: () => guard(() => keyOf(folder)),
    close: () => undefined,
  };
}

/** A place for the memory of a program: under XDG_STATE_HOME, or ~/.local/state. */
export function stateFolder(program: string): string {
  return path(process.env["XDG_STATE_HOME"] || path(homedir(), ".local", "state"), program, "dovetail");
}

async function transact<T>(folder: string, change: (memory: Memory) => T): Promise<T> {
  for (;;) {
    const [number, before] = await newest(folder);
    const memory = before === null ? begin() : checkMemory(JSON.parse(before) as Memory);
    const found = change(memory);
    const after = JSON.stringify(memory);
    if (after === before) return found;
    if (await write(folder, String(number + 1), after)) {
      if (number) await erase(folder, number);
      return found;
    }
  }
}

/** The number and the text of the newest entry. */
async function newest(folder: string): Promise<[number, string | null]> {
  for (;;) {
    const names = await readdir(folder);
    const number = Math.max(0, ...names.filter((name) => /^[1-9]\d*$/.test(name)).map(Number));
    if (!number) return [0, null];
    const content = await readFile(path(folder, String(number)), "utf8");
    if (content) return [number, content]; // else it was superseded while we looked
  }
}

/** Whether the file now has this name; false if another one had it first. */
async function write(folder: string, name: string, content: string): Promise<boolean> {
  const aside = await prepare(folder, content);
  try {
    await link(aside, path(folder, name));
    await sync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await unlink(aside);
  }
}

async function erase(folder: string, number: number): Promise<void> {
  await rename(await prepare(folder, ""), path(folder, String(number)));
}

async function prepare(folder: string, content: string): Promise<string> {
  const aside = path(folder, `.${randomUUID()}`);
  const file = await open(aside, "wx", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  return aside;
}

/** Make the names in a folder durable. */
async function sync(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function keyOf(folder: string): Promise<CryptoKeyPair> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  for (;;) {
    try {
      const secret = raw((await readFile(path(folder, KEY), "utf8")).trim());
      if (secret?.length !== 32) throw new DovetailError("storage", `${path(folder, KEY)} is not a device key.`);
      await chmod(path(folder, KEY), 0o600);
      return await pairOf(secret);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    const made = await makeKey(true);
    const pkcs8 = new Uint8Array(await crypto.subtle.exportKey("pkcs8", made.privateKey));
    await write(folder, KEY, text(pkcs8.slice(PKCS8_HEAD)) + "\n");
  }
}

function isFault(error: unknown): boolean {
  return error instanceof SyntaxError || typeof (error as NodeJS.ErrnoException).syscall === "string";
}

function failed(folder: string, error: unknown): DovetailError {
  const why = (error as NodeJS.ErrnoException).code ?? "it does not hold what was written";
  return new DovetailError("storage", `${folder} cannot be used (${why}); nothing was sent.`);
}
