/** Transactions of a worker, and whether the database is to blame when one fails. */
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const answersWithin = 5000; // milliseconds in which a server that is there lets a transaction begin
const mostTries = 10; // of a transaction with the application's code, which may itself be what ends its session

/** What is said of a transaction that did not commit although nothing is wrong with what it did. */
export class Unavailable extends Error {
  /** counted: it may be the transaction's own doing, which is done again a few times only. */
  constructor(readonly why: unknown, readonly counted: boolean) {
    super(String(why));
  }
}

export class Database {
  private readonly pools: pg.Pool[] = [];
  private readonly sockets = new Set<Socket>();

  constructor(private readonly connectionString: string, private readonly log: Pick<Console, "warn">) {}

  pool(max: number): pg.Pool {
    const pool = new pg.Pool({
      connectionString: this.connectionString, application_name: "daybook worker", max,
      connectionTimeoutMillis: answersWithin, keepAlive: true, keepAliveInitialDelayMillis: 10_000,
      stream: () => this.socket(),
    });
    pool.on("connect", (client) => client.on("error", () => {})); // the next statement fails with it
    pool.on("error", (e) => this.log.warn(`daybook: ${e.message}`));
    this.pools.push(pool);
    return pool;
  }

  private socket(): Socket {
    const socket = new Socket();
    this.sockets.add(socket);
    return socket.once("close", () => this.sockets.delete(socket));
  }

  /** Closes all connections, without waiting for a server that says nothing any more. */
  close(): void {
    for (const pool of this.pools) pool.end().catch(() => {}); // one may be closed already
    for (const socket of this.sockets) socket.destroySoon();
  }

  /** Runs f in a transaction, which ends with the signal over: whatever f waits for, its connection is closed. */
  async transaction<T>(
    pool: pg.Pool, over: AbortSignal, f: (tx: pg.ClientBase) => Promise<T>, settings = "",
  ): Promise<T> {
    over.throwIfAborted();
    const tx = await begin(pool, over, settings);
    let result: T, committing = false;
    try {
      result = await unless(over, f(tx));
      committing = true;
      await unless(over, tx.query("COMMIT"));
    } catch (e) {
      const state = over.aborted ? "good" : committing ? isLost(e) ? "lost" : "failed" : await stateOf(tx);
      tx.release(true); // which closes it, and so rolls back
      const lost = state === "lost", blamed = lost || state === "failed" && isFault(e);
      throw blamed ? new Unavailable(e, lost || !isFault(e, own)) : e;
    }
    tx.release();
    return result;
  }

  /** Runs a statement of the worker's own, which may take so many milliseconds, whatever limits its role has. */
  async ask(pool: pg.Pool, limit: number, text: string, ...values: unknown[]): Promise<any[]> {
    const over = silence(limit + 500); // the server's own answer comes first, if there is one
    try {
      return await this.transaction(pool, over, async (tx) => (await tx.query(text, values)).rows,
        `; SET LOCAL statement_timeout = ${limit}; SET LOCAL lock_timeout = 0`);
    } catch (e) {
      if (over.aborted || e instanceof pg.DatabaseError && e.code === "57014") throw new Unavailable(e, false);
      throw e;
    }
  }

  /** Calls f again if the database was to blame, while that is wanted. theirs: f has the application's code. */
  async enduring<T>(f: () => Promise<T>, wanted: () => boolean, theirs = false): Promise<T> {
    for (let wait = 100, tries = 0; ; wait = Math.min(2 * wait, 2000)) {
      try {
        return await f();
      } catch (e) {
        if (!(e instanceof Unavailable)) throw e;
        if (theirs && e.counted) tries++;
        if (tries === mostTries || !wanted()) throw e.why;
        this.log.warn(`daybook: tried again: ${e.message}`);
      }
      await sleep(wait);
    }
  }
}

async function begin(pool: pg.Pool, over: AbortSignal, settings: string): Promise<pg.PoolClient> {
  let tx: pg.PoolClient | undefined;
  try {
    tx = await pool.connect();
    await unless(over, unless(silence(answersWithin), tx.query("BEGIN ISOLATION LEVEL READ COMMITTED" + settings)));
    return tx;
  } catch (e) {
    tx?.release(true);
    throw isFault(e) || isLost(e) ? new Unavailable(e, false) : e;
  }
}

/** Is aborted when so many milliseconds have gone by. */
function silence(limit: number): AbortSignal {
  const over = new AbortController();
  setTimeout(() => over.abort(new Error(`no answer within ${limit} ms`)), limit).unref();
  return over.signal;
}

/** What p gives, or the signal's reason as soon as it is aborted. */
function unless<T>(signal: AbortSignal, p: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    p.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/**
 * How a transaction is after an error. Errors of other things look like its own, so it is asked itself: if it is good,
 * the error is not its own.
 */
async function stateOf(tx: pg.ClientBase): Promise<"good" | "failed" | "lost"> {
  try {
    await unless(silence(answersWithin), tx.query("SELECT 1"));
    return "good";
  } catch (state) {
    return state instanceof pg.DatabaseError && state.code === "25P02" ? "failed" : "lost";
  }
}

/** Whether an error of a connection says that it is lost, or was not made: pg has no type for that. */
function isLost(e: unknown): boolean {
  const { code, message } = (e ?? {}) as { code?: unknown; message?: unknown };
  return /^E[A-Z]+$/.test(String(code)) ||
    /^(no answer within|Connection terminated|timeout e|Client (has|was) )/.test(String(message));
}

type Fault = [state: string, routine?: string, words?: string];

/**
 * What PostgreSQL says of itself, by how the SQLSTATE begins, and where that is not enough, by its routine or words.
 * Daybook's own workers have the same table.
 */
const faults: Fault[] = [
  // The session has plans, statements or types that were made for what is no longer so: a new one has not.
  ["0A000", "RevalidateCachedQuery"], ["0A000", "", "cached plan"], ["26000"], ["42P05"], ["08P01"],
  ["42804", "plpgsql_param_eval_"], ["42804", "ExecEvalFieldSelect"], ["42804", "ExecEvalWholeRowVar"],
  ["42804", "CheckVarSlotCompatibility"],
  ["XX000", "", "cache lookup failed"], ["XX000", "", "could not open relation with OID"],
  // The transaction lost against another one.
  ["40001"], ["40P01"], ["72000"], ["XX000", "", "tuple concurrently"],
  // The server has no room, shuts down, starts, only reads, or has ended the session.
  ["53"], ["58"], ["08"], ["57P"], ["25006"], ["25P03"],
];
/** Of those, what only this server says of itself. The others may be what the transaction does: asks another server. */
const own: Fault[] = [["57P"], ["25006"], ["53100"], ["53300"], ["58"]];

function isFault(e: unknown, among = faults): boolean {
  for (; e instanceof Error; e = e.cause) {
    if (!(e instanceof pg.DatabaseError)) continue;
    const { code = "", routine = "", message } = e;
    return among.some(([s, r = "", w = ""]) => code.startsWith(s) && routine.startsWith(r) && message.includes(w));
  }
  return false;
}
