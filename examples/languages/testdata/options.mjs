// Checks which options the worker takes, and that it can be run again.
import assert from "node:assert";
import { pathToFileURL } from "node:url";

const { Worker } = await import(pathToFileURL(process.env.WORKER_JS).href);
const connectionString = "postgresql://127.0.0.1:1/none";
const handler = (policy) => new Worker({ connectionString }).handle("t", policy, () => {});

const worker = (options) => new Worker({ connectionString, ...options });
const policy = ["maxAttempts", "timeout", "base", "factor", "cap"];

for (const key of [...policy, "version"]) handler({ [key]: undefined });
worker({ grace: 0 });
handler({ version: 0 });
for (const value of [0, -1, NaN, Infinity, "5"]) {
  for (const key of ["parallel", "poll"]) assert.throws(() => worker({ [key]: value }), new RegExp(key));
  for (const key of policy) assert.throws(() => handler({ [key]: value }), new RegExp(key));
}
for (const value of [-1, NaN]) {
  assert.throws(() => worker({ grace: value }), /grace must be a number of at least 0/);
  assert.throws(() => handler({ version: value }), /version/);
}
// An option that is undefined has its default, and does not take its place.
for (const key of ["parallel", "poll", "grace", "fleet", "owner", "log"]) {
  assert.deepStrictEqual(worker({ [key]: undefined }).options, worker({}).options);
}
// A worker that was stopped may be run again, and ends at once.
const stopped = worker({ log: { warn() {}, error() {} } });
stopped.handle("t", {}, () => {});
stopped.stop();
await stopped.run();
await stopped.run();
