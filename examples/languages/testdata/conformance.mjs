// Works jobs as the cases of worker_test.go ask for.
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const { Cancel, Final, JobError, RetryAfter, Snooze, Worker } = await import(pathToFileURL(process.env.WORKER_JS).href);
const worker = new Worker({
  connectionString: process.env.DAYBOOK_DATABASE_URL, poll: 0.1, grace: Number(process.env.GRACE), owner: "tests",
});

const note = (job) =>
  job.inTx((tx) => tx.query("INSERT INTO app.effects (job_id, note) VALUES ($1, $2)", [job.id, job.payload.note]));
const fail = (error) => {
  throw error;
};
const stopped = (job) => new Promise((resolve) => job.signal.addEventListener("abort", resolve));
const actions = {
  "complete": (job) => ({ attempt: job.attempt, of: job.maxAttempts, org: job.orgId, key: job.idempotencyKey }),
  "note": note,
  "refuse": (job) => {
    note(job);
    job.inTx(() => fail(new TypeError("refused")));
  },
  "error": () => fail(new TypeError("no")),
  "code": () => fail(new JobError("no", "DISK_FULL")),
  "no code": () => fail(new JobError("no", "disk full")),
  "reserved": () => fail(new JobError("no", "SNOOZED")),
  "final code": () => fail(new JobError("no", "NOT_FOUND")),
  "final": () => fail(new Final("no")),
  "retry after": () => fail(new RetryAfter(120, "no", "NOT_FOUND")),
  "snooze": () => fail(new Snooze(300)),
  "cancel": () => fail(new Cancel("nothing to do")),
  "no result": () => ({ text: "\0" }),
  "hang": stopped,
  "hang once": async (job) => {
    if (job.attempt === 1) await stopped(job);
    note(job);
  },
  "nap": () => sleep(300),
};
worker.handle("quick", { maxAttempts: 3, timeout: 2, base: 60, cap: 600 }, (job) => actions[job.payload.do](job));
worker.handle("patient", { maxAttempts: 2, timeout: 3600 }, (job) => actions[job.payload.do](job));
await worker.run();
