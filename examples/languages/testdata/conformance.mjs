// Works jobs as the cases of worker_test.go ask for.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const { Cancel, Final, JobError, RetryAfter, Snooze, Worker } = await import(pathToFileURL(process.env.WORKER_JS).href);
const pg = createRequire(process.env.WORKER_JS)("pg");
const worker = new Worker({
  connectionString: process.env.DAYBOOK_DATABASE_URL, poll: Number(process.env.POLL ?? 0.1),
  grace: Number(process.env.GRACE), parallel: Number(process.env.PARALLEL ?? 10), owner: "tests",
});

const note = (job) =>
  job.inTx((tx) => tx.query("INSERT INTO app.effects (job_id, note) VALUES ($1, $2)", [job.id, job.payload.note]));
const fail = (error) => {
  throw error;
};
const stopped = (job) => new Promise((resolve) => job.signal.addEventListener("abort", resolve));

const elsewhere = async (text, ...values) => {
  const client = new pg.Client(process.env.DAYBOOK_DATABASE_URL);
  await client.connect();
  await client.query(text, values);
  await client.end();
};
const nested = (levels) => {
  let value = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
};

// Steps.
const cut = new Set(); // the jobs whose connection was lost in a step
const again = (job) => job.attempt === 1 && fail(new RetryAfter(0, "again")); // the next attempt begins at once
const effect = (tx, job) =>
  tx.query("INSERT INTO app.effects (job_id, note) VALUES ($1, $2)", [job.id, job.payload.note]);
const effectStep = (job, then = () => {}) => job.stepInTx("effect", async (tx) => {
  await effect(tx, job);
  await then(tx);
  return { attempt: job.attempt };
});
const rounds = (job, f = () => {}) => job.loopInTx("rounds", async (tx, done = 0) => {
  if (done === 2) f(job);
  await effect(tx, job);
  return [done + 1, done < 2];
});
const steps = async (job, f) => [await job.step("first", () => [job.attempt]), await effectStep(job), await rounds(job, f)];
const lose = (job) => async (tx) => {
  if (cut.has(job.id)) return;
  cut.add(job.id);
  await tx.query("SELECT pg_terminate_backend(pg_backend_pid())");
};

const actions = {
  "steps": (job) => steps(job, again),
  "hang behind steps": async (job) => {
    const done = await steps(job);
    if (job.attempt === 1) await stopped(job);
    return done;
  },
  "cut step": async (job) => void await effectStep(job, lose(job)),
  "refuse step": (job) => effectStep(job, () => again(job)),
  "pause in step": (job) => effectStep(job, () => sleep(job.attempt === 1 ? 3000 : 0)),
  "hang in step": (job) => effectStep(job, () => new Promise(() => {})),
  "big step": (job) => job.step("a", () => "x".repeat(1 << 20)),
  "unstorable step": (job) => job.step("a", () => "\0"),
  "step twice": async (job) => {
    await job.step("a", () => 1);
    await job.step("a", () => 2);
  },
  "long step": (job) => job.step("a".repeat(65), () => 1),
  "step of loop": async (job) => {
    if (job.attempt === 2) await job.step("a", () => 1);
    await job.loop("a", (done) => done ? again(job) : [1, true]);
  },
  "renamed step": async (job) => {
    const kept = await job.step(job.attempt === 1 ? "old" : "new", () => job.attempt);
    again(job);
    return { new: kept };
  },
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
  "retry after nan": () => fail(new RetryAfter(NaN, "no")),
  "retry after ages": () => fail(new RetryAfter(1e300, "no")),
  "unprintable": () => fail(Object.create(null)),
  "odd code": () => fail(new JobError("no", 404)),
  "half a pair": () => ({ text: "\ud83d" }),
  "half a pair as key": () => ({ "\ud83d": 1 }),
  "whole pair": () => ({ text: "\ud83d\ude00" }),
  "backslash": () => ({ text: "\\u0000 \\\\ud83d \"{[" }),
  "deep": () => nested(501),
  "deepest": () => nested(500),
  "missing file": (job) => {
    note(job);
    job.inTx(() => readFile("/nowhere/at/all"));
  },
  "looks lost": (job) => job.inTx((tx) => tx.query("DO $$BEGIN RAISE SQLSTATE '08006'; END$$")),
  "other database": (job) => job.inTx(() => new pg.Client("postgresql://127.0.0.1:1/none").connect()),
  "conflict": (job) => job.inTx(async (tx) => {
    const first = !cut.has(job.id);
    cut.add(job.id);
    if (first) await elsewhere("INSERT INTO app.effects (job_id, note) VALUES ($1, 'a')", job.id);
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await tx.query("SELECT FROM app.effects");
    if (first) await elsewhere("UPDATE app.effects SET note = 'b' WHERE job_id = $1", job.id);
    await tx.query("UPDATE app.effects SET note = note || 'c' WHERE job_id = $1", [job.id]);
  }),
  "deaf": () => new Promise(() => {}),
  "slow": () => sleep(3000),
  "slow note": async (job) => {
    await sleep(3000);
    note(job);
  },
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
