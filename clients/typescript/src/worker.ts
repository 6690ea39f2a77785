/**
 * Works Daybook's background jobs in TypeScript, by SQL, with pg.
 *
 *     const worker = new Worker({ connectionString: "postgresql://…" });
 *     worker.handle("welcome", { maxAttempts: 4, timeout: 30 }, async (job) => {
 *       const letter = await job.step("write", () => write(job.payload)); // kept: the next attempt does not write it
 *       job.inTx((tx) => tx.query("INSERT INTO greeted VALUES ($1)", [job.payload.email]));
 *       return { sent: letter };
 *     });
 *     await worker.run();
 *
 * A job is worked at least once. What inTx is given commits together with the job's completion, or not at all.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { Database, Unavailable } from "./database.js";
import { Cancel, delay, Final, JobError, RetryAfter, Snooze, textOf } from "./errors.js";
import { asJSON, Steps } from "./steps.js";

export { Cancel, Final, JobError, RetryAfter, Snooze };

// In milliseconds. A lease lasts for 10 seconds.
const renewEvery = 1000;
const renewWithin = 3000; // so that there is time for a second try, by another connection
const askWithin = 5000; // for what else the worker asks the database
const completeWithin = 30_000; // for each try, when the handler has returned in time
const returnWithin = 5000; // for a handler to return after its attempt is over
const longestTimer = 2 ** 31 - 1; // a longer one is over at once

const now = () => performance.now(); // which no change of the clock moves

/** What runs in the transaction that completes a job. */
export type InTx = (tx: pg.ClientBase) => unknown;

/** One attempt at a job. idempotencyKey is the job's key, or its id: the same in all attempts. */
export interface Job<P = any> {
  readonly id: string;
  readonly orgId: string;
  readonly type: string;
  readonly payload: P;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly idempotencyKey: string;
  readonly priority: number;
  readonly queue: string | null;
  readonly enqueuedAt: Date;
  readonly traceparent: string | null;
  /**
   * Aborted when the attempt is over: by an error, its timeout, a request to cancel the job, the stop of the worker, or
   * because its lease is lost. What the handler does then is not kept, and its steps' transactions are rolled back.
   */
  readonly signal: AbortSignal;
  /** Has f run in the transaction that completes the job. An error of it fails the attempt. */
  inTx(f: InTx): void;
  /**
   * Runs f, keeps its result as JSON, and returns it; the attempts after this one get it without running f. f runs at
   * least once: again if the worker dies before the result is kept. A name, of 1 to 64 bytes, is for one step, whatever
   * their order. A worker whose lease is lost keeps nothing, and gets an error.
   */
  step<T>(name: string, f: () => T | Promise<T>): Promise<T>;
  /** Is step for what f writes by tx: that and the result commit together, exactly once. */
  stepInTx<T>(name: string, f: (tx: pg.ClientBase) => T | Promise<T>): Promise<T>;
  /**
   * Is a step of many rounds. f gets where the loop stands, at first undefined; it returns where it stands now, which
   * is kept, and whether there is more to do. Returns where it ended.
   */
  loop<T>(name: string, f: (done?: T) => Stand<T> | Promise<Stand<T>>): Promise<T>;
  /** Is loop whose rounds are exactly once, as stepInTx is. */
  loopInTx<T>(name: string, f: (tx: pg.ClientBase, done?: T) => Stand<T> | Promise<Stand<T>>): Promise<T>;
}

/** Where a loop stands after a round, and whether there is more to do. */
export type Stand<T> = [now: T, more: boolean];

/** How a type is worked. What is left out has its default. */
export interface Policy {
  /** How many attempts a job has that says nothing else; default 3. */
  maxAttempts?: number;
  /** How long an attempt may take, in seconds; default 30. */
  timeout?: number;
  /** The second attempt's delay in seconds, what each further one is multiplied by, the longest: 30, 2, 21600. */
  base?: number;
  factor?: number;
  cap?: number;
  /** The handler's version, for jobs that name the lowest that may work them; default 0. */
  version?: number;
}

export interface WorkerOptions {
  /** Where the database is, as pg takes it. The role needs the rights of daybook_worker. */
  connectionString: string;
  /** The fleet whose jobs are worked; default: the one without a name. */
  fleet?: string;
  /**
   * How many jobs are worked side by side; default 10. A handler that has not returned although its attempt is over
   * keeps no job from being worked, until there are as many of them again.
   */
  parallel?: number;
  /** The team or contact responsible for the types. */
  owner?: string;
  /** The pause between two looks while nothing is due, in seconds; default 1. */
  poll?: number;
  /** How long run waits for jobs when it is stopped, in seconds; default 30. Then they are given back, uncounted. */
  grace?: number;
  /** Where is told what does not go well; default console. */
  log?: Pick<Console, "warn" | "error">;
}

interface Running {
  job: Job;
  fence: string;
  until: number;
  inTx: InTx[];
  steps: Steps;
  abort: AbortController; // the attempt is over
}

interface Handler extends Required<Policy> {
  work: (job: Job) => unknown;
}

/** Claims jobs of the types that it has handlers for, and works several of them side by side. */
export class Worker {
  readonly name = `${hostname()}/${process.pid}/${randomBytes(4).toString("hex")}`;
  private readonly handlers = new Map<string, Handler>();
  private readonly leased = new Set<Running>(); // attempts whose end is not on record: their leases are renewed
  private readonly busy = new Set<Running>(); // attempts whose handlers have not returned
  private readonly options: Required<WorkerOptions>;
  private readonly db: Database;
  private readonly pool: pg.Pool; // for what handlers do, and the ends of their attempts
  private readonly claims: pg.Pool; // of one connection each, which nothing else holds up
  private readonly renewals: pg.Pool;
  private stopping = false;
  private wake = () => {};

  constructor(options: WorkerOptions) {
    const log: Required<WorkerOptions>["log"] = console;
    const defaults = { connectionString: "", fleet: "", parallel: 10, owner: "", poll: 1, grace: 30, log };
    this.options = chosen(defaults, options, ["grace"]);
    this.db = new Database(this.options.connectionString, this.options.log);
    this.pool = this.db.pool(this.options.parallel);
    this.claims = this.db.pool(1);
    this.renewals = this.db.pool(1);
  }

  /** Registers a function for a type. What it returns, as JSON, is the job's result. */
  handle<P = any>(type: string, policy: Policy, work: (job: Job<P>) => unknown): void {
    if (this.handlers.has(type)) throw new Error(`type ${type} has a handler`);
    const defaults = { maxAttempts: 3, timeout: 30, base: 30, factor: 2, cap: 21600, version: 0 };
    this.handlers.set(type, { ...chosen(defaults, policy, ["version"]), work });
  }

  /** Has run return: it claims nothing more, and waits for the jobs that run. SIGTERM and SIGINT do the same. */
  stop = (): void => {
    this.stopping = true;
    this.wake();
  };

  /** Works jobs until stop. While the database is not there, it tries again. */
  async run(): Promise<void> {
    if (this.handlers.size === 0) throw new Error("the worker has no handler: register one before it runs");
    process.on("SIGTERM", this.stop).on("SIGINT", this.stop);
    const ended = new AbortController();
    try {
      if (!await this.start()) return;
      const renewing = this.renewing(ended.signal);
      try {
        while (!this.stopping) await this.round();
      } finally {
        await this.drain();
        ended.abort();
        await renewing;
      }
    } finally {
      process.off("SIGTERM", this.stop).off("SIGINT", this.stop);
      this.db.close();
    }
  }

  private async round(): Promise<void> {
    const { parallel } = this.options, free = Math.min(parallel - this.leased.size, 2 * parallel - this.busy.size);
    const jobs = free > 0 ? await this.claim(free).catch((e) => this.outage("claim jobs", e)) : [];
    for (const running of jobs) void this.work(running);
    if (jobs.length === 0 && !this.stopping) await this.pause(this.options.poll * 1000);
  }

  /** Waits until a job has ended, the worker is to stop, or for so long. */
  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(milliseconds, longestTimer));
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Waits for the attempts that are under way, and gives back those that are not over after the grace period. */
  private async drain(): Promise<void> {
    const until = now() + this.options.grace * 1000;
    while (this.leased.size > 0 && now() < until) await this.pause(until - now());
    const last = now() + askWithin;
    const stop = () => this.ask(this.claims, "SELECT daybook.stop_job_worker($1)", this.name);
    await this.db.enduring(stop, () => now() < last)
      .catch((e) => this.options.log.error(`daybook: the worker's stop is not on record: its leases expire: ${e}`));
    this.leased.clear();
    for (const { abort } of this.busy) abort.abort(new Error("the worker stops"));
  }

  // The database.

  private ask(pool: pg.Pool, text: string, ...values: unknown[]): Promise<any[]> {
    return this.db.ask(pool, askWithin, text, ...values);
  }

  private outage(what: string, e: unknown): [] {
    if (!(e instanceof Unavailable)) throw e;
    this.options.log.warn(`daybook: ${what}: ${e.message}`);
    return [];
  }

  /** Puts the worker on record. False: it is to stop before the database is there. */
  private async start(): Promise<boolean> {
    const all = [...this.handlers.values()];
    const start = () => this.ask(this.claims, "SELECT daybook.start_job_worker($1, $2, $3, $4, $5, $6, $7, $8)",
      this.name, [...this.handlers.keys()], this.options.fleet, all.map((h) => h.version),
      all.map((h) => h.maxAttempts), all.map((h) => h.timeout),
      this.options.owner, this.options.parallel);
    try {
      await this.db.enduring(start, () => !this.stopping);
      return true;
    } catch (e) {
      if (!this.stopping) throw e;
      return false;
    }
  }

  private async claim(most: number): Promise<Running[]> {
    const rows = await this.ask(this.claims, "SELECT * FROM daybook.claim_jobs($1, $2)", this.name,
      Math.min(most, 1000));
    return rows.map((r) => {
      const inTx: InTx[] = [], abort = new AbortController();
      const steps = new Steps({
        jobId: r.job_id, fence: r.fence, number: r.attempt, signal: abort.signal, steps: r.steps,
        transaction: (f) => this.db.transaction(this.pool, abort.signal, f),
        enduring: (f, theirs) => this.db.enduring(f, () => this.leased.has(running), theirs),
        warn: (text) => this.options.log.warn(`daybook: job ${r.job_id}: ${text}`),
      });
      const job: Job = {
        id: r.job_id, orgId: r.org_id, type: r.type, payload: r.payload, attempt: r.attempt,
        maxAttempts: r.max_attempts, idempotencyKey: r.idempotency_key, priority: r.priority, queue: r.queue,
        enqueuedAt: r.enqueued_at, traceparent: r.traceparent, signal: abort.signal, inTx: (f) => void inTx.push(f),
        step: (name, f) => steps.run(name, async () => [await f(), false], {}),
        stepInTx: (name, f) => steps.run(name, async (tx) => [await f(tx!), false], { inTx: true }),
        loop: (name, f) => steps.run(name, (_, done) => f(done), { loop: true }),
        loopInTx: (name, f) => steps.run(name, (tx, done) => f(tx!, done), { inTx: true, loop: true }),
      };
      const until = now() + this.handlers.get(r.type)!.timeout * 1000;
      const running: Running = { job, fence: r.fence, until, inTx, steps, abort };
      return running;
    });
  }

  // Attempts.

  private async work(running: Running): Promise<void> {
    const { job, steps } = running;
    this.leased.add(running);
    this.busy.add(running);
    try {
      if ("$encrypted" in job.payload) throw new JobError("this worker cannot decrypt payloads", "KEY_UNKNOWN");
      const [result, unstored] = asJSON(await this.handlers.get(job.type)!.work(job));
      await steps.close();
      await this.complete(running, result, unstored);
    } catch (e) {
      await this.end(running, e);
    } finally {
      this.busy.delete(running);
      this.wake();
    }
  }

  private async complete(running: Running, result: string | null, unstored: string | null): Promise<void> {
    const { job, fence, inTx, abort } = running;
    await this.db.enduring(() => {
      running.until = Math.max(running.until, now() + completeWithin);
      return this.db.transaction(this.pool, abort.signal, async (tx) => {
        for (const f of inTx) await f(tx);
        await tx.query("SELECT daybook.complete_job($1, $2, $3, $4)", [job.id, fence, result, unstored]);
      });
    }, () => this.leased.has(running), inTx.length > 0);
    this.leased.delete(running);
  }

  /** Ends an attempt that did not complete its job, as its error says: once, whatever else it may end by. */
  private async end(running: Running, e: unknown): Promise<void> {
    const { job, abort } = running;
    if (abort.signal.aborted) return;
    abort.abort(e);
    try {
      const said = await this.db.enduring(() => this.ended(running, e), () => this.leased.has(running));
      if (said) this.options.log.warn(`daybook: job ${job.id}, attempt ${job.attempt}: ${said}`);
    } catch (failed) {
      this.options.log.error(`daybook: job ${job.id}: the attempt's end is not on record, and its lease expires: ` +
        textOf(failed));
    } finally {
      this.leased.delete(running);
      this.wake();
    }
  }

  /** Puts the end of an attempt on record, and returns what is to be told of it. */
  private async ended({ job, fence }: Running, e: unknown): Promise<string | undefined> {
    const h = this.handlers.get(job.type)!;
    if (e instanceof Snooze) {
      await this.ask(this.pool, "SELECT daybook.snooze_job($1, $2, make_interval(secs => $3), $4)",
        job.id, fence, e.seconds, e.message);
      return;
    }
    const code = e instanceof Cancel ? "JOB_CANCELLED" : e instanceof JobError ? textOf(e.code) : null;
    const text = textOf(e instanceof JobError || e instanceof Cancel ? e.message : e);
    const [{ state }] = await this.ask(this.pool,
      "SELECT daybook.fail_job($1, $2, $3, $4, make_interval(secs => $5), $6, $7, $8, $9) AS state", job.id,
      fence, code, text, e instanceof RetryAfter ? delay(e.seconds) : null, e instanceof Final, h.base, h.factor,
      h.cap);
    return e instanceof Cancel ? undefined : `${text}: now ${state ?? "another claim's"}`;
  }

  private async renewing(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      await this.renew().catch((e) => this.options.log.warn(`daybook: renew leases: ${e.message}`));
      await sleep(renewEvery, undefined, { signal: ended }).catch(() => {});
    }
  }

  private async renew(): Promise<void> {
    const leased = [...this.leased];
    const rows = await this.db.ask(this.renewals, renewWithin, "SELECT * FROM daybook.renew_jobs($1, $2)", this.name,
      leased.map((r) => r.job.id));
    const held = new Map(rows.map((r) => [`${r.job_id} ${r.fence}`, r.cancel_requested]));
    for (const running of leased) {
      if (this.leased.has(running)) this.look(running, held.get(`${running.job.id} ${running.fence}`));
    }
  }

  /** Ends an attempt whose time is over, whose job is to be cancelled, or that has lost its lease (undefined). */
  private look(running: Running, toCancel?: boolean): void {
    const { job, until, steps, abort } = running, { timeout } = this.handlers.get(job.type)!;
    if (toCancel === undefined) {
      this.leased.delete(running);
      this.wake();
      if (!abort.signal.aborted && !steps.closed) { // else it may just have been completed
        this.options.log.warn(`daybook: job ${job.id}, attempt ${job.attempt}: its lease is lost`);
      }
      abort.abort(new Error("its lease is lost"));
    } else if (abort.signal.aborted) {
      return; // its end is about to be on record
    } else if (toCancel) {
      void this.end(running, new Cancel("it was cancelled during the attempt"));
    } else if (now() > until) {
      void this.end(running, new JobError(`not finished within ${timeout} s`, "TIMEOUT"));
    }
    if (abort.signal.aborted) setTimeout(() => this.tellOf(running), returnWithin).unref();
  }

  private tellOf(running: Running): void {
    if (!this.busy.has(running)) return;
    const { job } = running;
    this.options.log.error(`daybook: job ${job.id}, attempt ${job.attempt}: the attempt is over, but its handler of ` +
      `type ${job.type} has not returned ${returnWithin / 1000} s after its signal`);
  }
}

/** What is given, and the defaults of the rest. Numbers are positive; those that are named may be 0. */
function chosen<T extends object>(defaults: T, given: Partial<T>, mayBeZero: (keyof T)[]): T {
  const all = { ...defaults };
  for (const key of Object.keys(defaults) as (keyof T & string)[]) {
    const value: unknown = given[key] ?? defaults[key], zero = mayBeZero.includes(key);
    const good = Number.isFinite(value) && ((value as number) > 0 || zero && value === 0);
    if (typeof defaults[key] === "number" && !good) {
      throw new RangeError(`${key} must be a number ${zero ? "of at least" : "above"} 0, and is ${textOf(value)}: ` +
        `leave it out for its default, ${defaults[key]}`);
    }
    all[key] = value as T[typeof key];
  }
  return all;
}
