/** A device's memory in IndexedDB: one transaction for each step, and a key that nobody reads out. */

import { DovetailError, unsupported } from "./errors.js";
import { makeKey } from "./keys.js";
import { type Memory, type Store, begin, checkMemory } from "./ledger.js";

export * from "./index.js";

const [MEMORY, KEY, TABLE] = ["memory", "key", "device"];

/** The memory of this origin. localStorage is never used: it has no transaction over tabs, and keys can be read out. */
export async function indexedDbStore(name = "dovetail"): Promise<Store> {
  if (!globalThis.isSecureContext || !globalThis.crypto?.subtle) {
    throw unsupported("this page was not opened over https, so the browser gives it no cryptography; nothing can be answered here.");
  }
  const database = await open(name);

  /** Run `step` in one durable transaction; what it throws undoes everything. */
  const run = <T>(step: (table: IDBObjectStore, done: (found: T) => void, fail: (error: unknown) => void) => void): Promise<T> =>
    new Promise((resolve, reject) => {
      let [found, thrown]: [T | undefined, unknown] = [undefined, undefined];
      try {
        const transaction = database.transaction(TABLE!, "readwrite", { durability: "strict" });
        const fail = (error: unknown) => {
          thrown = error;
          transaction.abort();
        };
        transaction.oncomplete = () => resolve(found as T);
        transaction.onabort = () => reject(thrown ?? failed(transaction.error));
        step(transaction.objectStore(TABLE!), (value) => void (found = value), fail);
      } catch (error) {
        reject(failed(error));
      }
    });

  return {
    transact: <T>(change: (memory: Memory) => T) =>
      run<T>((table, done, fail) => {
        const request = table.get(MEMORY!) as IDBRequest<Memory | undefined>;
        request.onsuccess = () => {
          try {
            const memory = request.result === undefined ? begin() : checkMemory(request.result);
            done(change(memory));
            table.put(memory, MEMORY);
          } catch (error) {
            fail(error);
          }
        };
      }),
    key: async () => {
      const made = await makeKey(); // before the step that waits for nothing; thrown away where there is one
      return run<CryptoKeyPair>((table, done) => {
        const request = table.get(KEY!) as IDBRequest<CryptoKeyPair | undefined>;
        request.onsuccess = () => {
          done(request.result ?? made);
          if (!request.result) table.add(made, KEY);
        };
      });
    },
    alone: (work) => (navigator.locks ? (navigator.locks.request(`dovetail ${name}`, work) as ReturnType<typeof work>) : work()),
    close: () => database.close(),
  };
}

function open(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    try {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => void request.result.createObjectStore(TABLE!);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(failed(request.error));
      request.onblocked = () => reject(failed(null));
    } catch (error) {
      reject(failed(error));
    }
  });
}

function failed(error: unknown): DovetailError {
  const why = error instanceof Error ? error.name : "blocked";
  return new DovetailError("storage", `this browser keeps nothing for this page (${why}), so it could answer twice without knowing; nothing was sent.`);
}
