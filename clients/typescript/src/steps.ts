/** Keeps the steps of an attempt at a job, by SQL. */
import pg from "pg";
import { JobError } from "./errors.js";

/** What the steps of an attempt need of the worker that has claimed the job. */
export interface Attempt {
  readonly jobId: string;
  readonly fence: string;
  readonly number: number;
  readonly signal: AbortSignal;
  /** How many steps earlier attempts have kept. */
  readonly steps: number;
  transaction<T>(f: (tx: pg.ClientBase) => Promise<T>): Promise<T>;
  /** Calls f again when the database was to blame. theirs: it has the application's code. */
  enduring<T>(f: () => Promise<T>, theirs?: boolean): Promise<T>;
  warn(text: string): void;
}

/** A round of a step: it gets where the step stands, and returns where it stands now and whether there is more. */
type Round = (tx: pg.ClientBase | undefined, done: any) => unknown;

interface Step {
  name: string;
  attempt: number;
  result: any;
  done: boolean;
  times: number;
  place?: number;
}

/** The steps of one attempt. What earlier ones have kept is read when the first step is asked for. */
export class Steps {
  private kept?: Promise<Map<string, Step>>;
  private readonly asked = new Map<string, boolean>(); // by name: whether it was kept before
  closed = false; // the handler has returned

  constructor(private readonly attempt: Attempt) {}

  async run(name: string, f: Round, { inTx = false, loop = false }): Promise<any> {
    this.kept ??= this.attempt.steps > 0 ? this.attempt.enduring(() => this.read()) : Promise.resolve(new Map());
    const kept = await this.kept;
    let step = this.begin(name, kept.get(name));
    try {
      if (step.times > 0 && !step.done && !loop) {
        throw stepError(name, "STEP_CHANGED",
          `attempt ${step.attempt} has kept it as a loop that has not ended: give the step another name`);
      }
      while (!step.done) {
        if (this.attempt.signal.aborted) throw stepError(name, "HANDLER_ERROR", "the attempt is over");
        step = await this.round(step, f, inTx);
        kept.set(name, step);
      }
      return step.result;
    } catch (e) {
      this.asked.delete(name); // the handler may ask for it again
      throw e;
    }
  }

  private begin(name: string, kept?: Step): Step {
    const bytes = Buffer.byteLength(name);
    if (this.closed) throw stepError(name, "STEP_INVALID", "the handler has returned");
    if (bytes < 1 || bytes > 64 || name.includes("\0")) {
      throw stepError(name, "STEP_INVALID", "its name must have 1 to 64 bytes, and no U+0000");
    }
    if (this.asked.has(name)) {
      throw stepError(name, "STEP_INVALID", "asked for before: give each step a name of its own");
    }
    if (kept?.result?.$encrypted) throw stepError(name, "KEY_UNKNOWN", "this worker cannot decrypt what was kept");
    this.asked.set(name, kept !== undefined);
    const step = kept ?? { name, attempt: this.attempt.number, result: undefined, done: false, times: 0 };
    return { ...step, place: this.asked.size };
  }

  private async read(): Promise<Map<string, Step>> {
    const { rows } = await this.attempt.transaction((tx) => tx.query(
      "SELECT name, attempt, result, done, times FROM daybook.job_steps WHERE job_id = $1", [this.attempt.jobId]));
    return new Map(rows.map((step: Step) => [step.name, step]));
  }

  /** Runs a round of a step and keeps it. In a transaction it is run again if the connection was lost. */
  private async round(step: Step, f: Round, inTx: boolean): Promise<Step> {
    const began = performance.now(), result = inTx ? undefined : await f(undefined, step.result);
    let tried = false;
    return this.attempt.enduring(async () => {
      if (inTx && tried) {
        const there = (await this.read()).get(step.name);
        if (there && there.times > step.times) return { ...step, ...there }; // the COMMIT was done, its answer lost
      }
      tried = true;
      return this.attempt.transaction(async (tx) => {
        const [now, more] = (inTx ? await f(tx, step.result) : result) as [unknown, boolean];
        const took = (performance.now() - began) / 1000;
        return this.keep(tx, { ...step, times: step.times + 1, done: !more }, now, took, !inTx);
      });
    }, inTx);
  }

  private async keep(tx: pg.ClientBase, step: Step, result: unknown, took: number, again: boolean): Promise<Step> {
    const [text, unstored] = asJSON(result ?? null);
    if (text === null) throw stepError(step.name, "STEP_NOT_STORED", unstored ?? "the result is no JSON");
    const { jobId, fence, number } = this.attempt;
    try {
      await tx.query("SELECT daybook.keep_step($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        [jobId, fence, step.name, text, step.done, step.times, step.place, took, again]);
    } catch (e) {
      if (!(e instanceof pg.DatabaseError)) throw e;
      const unread = /^(22|54)/.test(e.code ?? ""); // it is no JSON to the database
      if (!unread && e.code !== "DB010") throw e;
      throw stepError(step.name, unread ? "STEP_NOT_STORED" : e.detail ?? "STEP_INVALID", e.message);
    }
    return { ...step, attempt: number, result: JSON.parse(text) };
  }

  /** Refuses steps from now on: the handler has returned. Tells of those that it should have asked for. */
  async close(): Promise<void> {
    this.closed = true;
    const kept = [...(await this.kept?.catch(() => undefined) ?? new Map()).keys()];
    const unused = kept.filter((name) => !this.asked.has(name)).sort();
    if (unused.length === 0) return;
    const run = [...this.asked].filter(([, before]) => !before).map(([name]) => name);
    this.attempt.warn("an earlier attempt has kept steps that this one did not ask for: were they renamed or " +
      `removed? kept: ${unused.join(", ")}; run: ${run.join(", ")}`);
  }
}

function stepError(name: string, code: string, why: string): JobError {
  return new JobError(`step ${JSON.stringify(name.slice(0, 100))}: ${why}`, code);
}

const mostLevels = 500; // of arrays and objects in a result, as for workers in Go

/** A result as JSON, or why there is none. */
export function asJSON(result: unknown): [string | null, string | null] {
  try {
    const text = JSON.stringify(result) ?? null, problem = text === null ? null : problemOf(text);
    return problem === null ? [text, null] : [null, problem];
  } catch (e) {
    return [null, `the result is no JSON: ${e}`];
  }
}

/** Why the database cannot hold what JSON.stringify has written, which escapes only what it must; null: it can. */
function problemOf(text: string): string | null {
  let quoted = false, level = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '"') quoted = !quoted;
    else if (quoted && c === "\\") {
      if (/^u(0000|d[89a-f])/.test(text.slice(i + 1, i + 6))) {
        return "the result has a character that the database cannot hold: U+0000, or half a surrogate pair";
      }
      i++; // what is escaped is no quote and no backslash of its own
    } else if (!quoted && (c === "[" || c === "{")) {
      if (++level > mostLevels) return `the result is nested deeper than ${mostLevels} levels`;
    } else if (!quoted && (c === "]" || c === "}")) level--;
  }
  return null;
}
