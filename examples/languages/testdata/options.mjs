// Checks which options the worker takes.
import assert from "node:assert";
import { pathToFileURL } from "node:url";

const { Worker } = await import(pathToFileURL(process.env.WORKER_JS).href);
const connectionString = "postgresql://127.0.0.1:1/none";
const handler = (policy) => new Worker({ connectionString }).handle("t", policy, () => {});

for (const key of ["parallel", "poll", "grace", "fleet", "owner", "log"]) new Worker({ connectionString, [key]: undefined });
for (const key of ["maxAttempts", "timeout", "base", "factor", "cap", "version"]) handler({ [key]: undefined });
new Worker({ connectionString, grace: 0 });
handler({ version: 0 });
for (const value of [0, -1, NaN, Infinity, "5"]) {
  for (const key of ["parallel", "poll"]) assert.throws(() => new Worker({ connectionString, [key]: value }), new RegExp(key));
  for (const key of ["maxAttempts", "timeout", "base", "factor", "cap"]) assert.throws(() => handler({ [key]: value }), new RegExp(key));
}
for (const value of [-1, NaN]) {
  assert.throws(() => new Worker({ connectionString, grace: value }), /grace must be a number of at least 0/);
  assert.throws(() => handler({ version: value }), /version/);
}
// An option that is undefined has its default, and does not take its place.
const defaults = new Worker({ connectionString }), undefineds = new Worker({ connectionString, parallel: undefined, log: undefined });
assert.deepStrictEqual(undefineds.options, defaults.options);
