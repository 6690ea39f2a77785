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
import pg from "pg";
import { asJSON, JobError, Steps } from "./steps.js";

export { JobError };

const renewEvery = 1000; // milliseconds; a lease lasts for 10 seconds
const outagePatience = 30_000; // milliseconds for which a statement is sent again while the database is not there

/** Makes the job a dead letter, even if attempts are left. */
export class Final extends JobError {}

/** Fails the attempt. The next one, if one is left, begins after so many seconds. */
export class RetryAfter extends JobError {
  constructor(readonly seconds: number, message: string, code = "HANDLER_ERROR") {
    super(message, code);
  }
}

/** Puts the job off for so many seconds, at least one. No attempt is counted. */
export class Snooze extends Error {
  readonly seconds: number;
  constructor(seconds: number) {
    super(`snoozed for ${Math.max(seconds, 1)} s`);
    this.seconds = Math.max(seconds, 1);
  }
}

/** Ends the job as cancelled, because there is nothing left to do. */
export class Cancel extends Error {}

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
   * Aborted when the attempt has ended without the handler: by its timeout, a request to cancel the job, the stop of
   * the worker, or because its lease is lost. What the handler does then is not kept.
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

/** How a type is worked. The zero value of each is its default. */
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
  /** How many jobs are worked side by side; default 10. */
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
  abort: AbortController;
}

interface Handler extends Required<Policy> {
  work: (job: Job) => unknown;
}

/** Claims jobs of the types that it has handlers for, and works several of them side by side. */
export class Worker {
  readonly name = `${hostname()}/${process.pid}/${randomBytes(4).toString("hex")}`;
  private readonly handlers = new Map<string, Handler>();
  private readonly running = new Map<string, Running>();
  private readonly options: Required<WorkerOptions>;
  private readonly pool: pg.Pool; // for what handlers do
  private readonly own: pg.Pool; // for leases, which handlers that hold many connections do not hold up
  private stopping = false;
  private wake = () => {};

  constructor(options: WorkerOptions) {
    this.options = { fleet: "", parallel: 10, owner: "", poll: 1, grace: 30, log: console, ...options };
    this.pool = this.connections(this.options.parallel);
    this.own = this.connections(3);
  }

  private connections(max: number): pg.Pool {
    const pool = new pg.Pool({
      connectionString: this.options.connectionString, application_name: "daybook worker", max,
      connectionTimeoutMillis: 5000,
    });
    pool.on("connect", (client) => client.on("error", () => {})); // the next statement fails with it
    pool.on("error", (e) => this.options.log.warn(`daybook: ${e.message}`));
    return pool;
  }

  /** Registers a function for a type. What it returns, as JSON, is the job's result. */
  handle<P = any>(type: string, policy: Policy, work: (job: Job<P>) => unknown): void {
    if (this.handlers.has(type)) throw new Error(`type ${type} has a handler`);
    const defaults = { maxAttempts: 3, timeout: 30, base: 30, factor: 2, cap: 21600, version: 0 };
    this.handlers.set(type, { ...defaults, ...policy, work });
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
    try {
      await this.enduring(() => this.start());
      const renewing = this.renewing();
      try {
        while (!this.stopping) await this.round();
      } finally {
        await this.drain();
        await renewing.stop();
      }
    } finally {
      process.off("SIGTERM", this.stop).off("SIGINT", this.stop);
      await Promise.all([this.pool.end(), this.own.end()]);
    }
  }

  private async round(): Promise<void> {
    const free = this.options.parallel - this.running.size;
    const jobs = free > 0 ? await this.claim(free).catch((e) => this.outage("claim jobs", e)) : [];
    for (const running of jobs) void this.work(running);
    if (jobs.length === 0) await this.pause(this.options.poll * 1000);
  }

  /** Waits until a job has ended, the worker is to stop, or for so long. */
  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private async drain(): Promise<void> {
    const until = Date.now() + this.options.grace * 1000;
    while (this.running.size > 0 && Date.now() < until) await this.pause(until - Date.now());
    await this.enduring(() => this.query("SELECT daybook.stop_job_worker($1)", this.name));
    for (const { abort } of this.running.values()) abort.abort(new Error("the worker stops"));
  }

  // The database.

  private async transaction<T>(f: (tx: pg.ClientBase) => Promise<T>, pool = this.pool): Promise<T> {
    const client = await pool.connect();
    let failed: Error | undefined;
    try {
      await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
      const result = await f(client);
      await client.query("COMMIT");
      return result;
    } catch (e) {
      failed = e as Error;
      throw e;
    } finally {
      client.release(failed); // with an error it is closed, which rolls back
    }
  }

  private query(text: string, ...values: unknown[]): Promise<any[]> {
    return this.transaction(async (tx) => (await tx.query(text, values)).rows, this.own);
  }

  /** Calls f again for a while if the database is not there. */
  private async enduring<T>(f: () => Promise<T>): Promise<T> {
    const until = Date.now() + outagePatience;
    for (let wait = 100; ; wait = Math.min(2 * wait, 2000)) {
      try {
        return await f();
      } catch (e) {
        if (!isUnavailable(e) || Date.now() > until) throw e;
        this.options.log.warn(`daybook: the database is not there: ${e}`);
      }
      await sleep(wait);
    }
  }

  private outage(what: string, e: unknown): [] {
    if (!isUnavailable(e)) throw e;
    this.options.log.warn(`daybook: ${what}: ${e}`);
    return [];
  }

  private start(): Promise<unknown> {
    const all = [...this.handlers.values()];
    return this.query("SELECT daybook.start_job_worker($1, $2, $3, $4, $5, $6, $7, $8)", this.name,
      [...this.handlers.keys()], this.options.fleet, all.map((h) => h.version),
      all.map((h) => h.maxAttempts), all.map((h) => h.timeout),
      this.options.owner, this.options.parallel);
  }

  private async claim(most: number): Promise<Running[]> {
    const rows = await this.query("SELECT * FROM daybook.claim_jobs($1, $2)", this.name, Math.min(most, 1000));
    return rows.map((r) => {
      const inTx: InTx[] = [], abort = new AbortController();
      const steps = new Steps({
        jobId: r.job_id, fence: r.fence, number: r.attempt, signal: abort.signal, steps: r.steps,
        transaction: (f) => this.transaction(f), enduring: (f) => this.enduring(f),
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
      return { job, fence: r.fence, until: Date.now() + this.handlers.get(r.type)!.timeout * 1000, inTx, steps, abort };
    });
  }

  // Attempts.

  private async work(running: Running): Promise<void> {
    const { job, fence, inTx, steps } = running, key = `${job.id} ${fence}`;
    this.running.set(key, running);
    try {
      try {
        if ("$encrypted" in job.payload) throw new JobError("this worker cannot decrypt payloads", "KEY_UNKNOWN");
        const [result, unstored] = asJSON(await this.handlers.get(job.type)!.work(job));
        await steps.close();
        running.until += outagePatience; // what is done in time may be put on record later
        await this.enduring(() => this.transaction(async (tx) => {
          for (const f of inTx) await f(tx);
          await tx.query("SELECT daybook.complete_job($1, $2, $3, $4)", [job.id, fence, result, unstored]);
        }));
      } catch (e) {
        await this.end(running, e);
      }
    } catch (e) {
      this.options.log.error(`daybook: job ${job.id}: the attempt's end is not on record: its lease expires: ${e}`);
    } finally {
      this.running.delete(key);
      this.wake();
    }
  }

  /** Ends an attempt that did not complete its job, as its error says. */
  private async end({ job, fence }: Running, e: unknown): Promise<void> {
    const h = this.handlers.get(job.type)!;
    if (e instanceof Snooze) {
      await this.enduring(() => this.query("SELECT daybook.snooze_job($1, $2, make_interval(secs => $3), $4)",
        job.id, fence, e.seconds, e.message));
      return;
    }
    const own = e instanceof JobError || e instanceof Cancel;
    const code = e instanceof Cancel ? "JOB_CANCELLED" : e instanceof JobError ? e.code : null;
    const text = (own ? e.message : String(e)).replaceAll("\0", "");
    const [{ state }] = await this.enduring(() =>
      this.query("SELECT daybook.fail_job($1, $2, $3, $4, make_interval(secs => $5), $6, $7, $8, $9) AS state", job.id,
        fence, code, text, e instanceof RetryAfter ? e.seconds : null, e instanceof Final, h.base, h.factor, h.cap));
    if (e instanceof Cancel) return;
    this.options.log.warn(`daybook: job ${job.id}, attempt ${job.attempt}: ${text}: now ${state ?? "another claim's"}`);
  }

  private renewing(): { stop: () => Promise<void> } {
    const ended = new AbortController();
    const loop = (async () => {
      while (!ended.signal.aborted) {
        try {
          const held = await this.query("SELECT * FROM daybook.renew_jobs($1)", this.name);
          await this.look(new Map(held.map((r) => [`${r.job_id} ${r.fence}`, r.cancel_requested])));
        } catch (e) {
          this.options.log.warn(`daybook: renew leases: ${e}`);
        }
        await sleep(renewEvery, undefined, { signal: ended.signal }).catch(() => {});
      }
    })();
    return { stop: () => (ended.abort(), loop) };
  }

  /** Ends attempts whose time is over or whose jobs are to be cancelled, and tells handlers that have lost theirs. */
  private async look(held: Map<string, boolean>): Promise<void> {
    for (const [key, running] of this.running) {
      const { job, until, abort } = running, timeout = this.handlers.get(job.type)!.timeout;
      if (abort.signal.aborted) continue;
      let why = "its lease is lost";
      if (held.get(key)) {
        why = "it was cancelled during the attempt";
        await this.end(running, new Cancel(why));
      } else if (Date.now() > until) {
        why = `not finished within ${timeout} s`;
        await this.end(running, new JobError(why, "TIMEOUT"));
      } else if (held.has(key) || until - timeout * 1000 > Date.now() - 3 * renewEvery) {
        continue; // what was claimed after the leases were read is not among them
      }
      abort.abort(new Error(why));
    }
  }
}

/** Whether the connection failed: pg has no type for that, but texts of its own and the socket's codes. */
function isUnavailable(e: unknown): boolean {
  if (e instanceof pg.DatabaseError) return /^(08|57P0[123])/.test(e.code ?? "");
  const { code, message } = (e ?? {}) as { code?: unknown; message?: unknown };
  const own = /^(Connection terminated|timeout exceeded|Client (has|was) )/;
  return /^E[A-Z]+$/.test(String(code)) || own.test(String(message));
}
