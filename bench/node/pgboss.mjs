// A process of pg-boss for the benchmarks. BENCH_NODE holds its configuration as JSON.
//
// With "migrate" it makes the schema and the queue, and ends. With "waits" it says "ready" and waits for a line on its standard
// input before it starts pg-boss, else it says "ready" when it works. It ends when its standard input does, in the orderly way.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { PgBoss } from "pg-boss";
import { begun, config, counting, done, ended, finished, ready, told } from "./peer.mjs";

const boss = new PgBoss({
  connectionString: config.databaseUrl,
  application_name: config.name,
  max: config.pool,
  // https://pgboss.io/api/workers, "Low-latency dispatch with LISTEN/NOTIFY". A queue that is drained needs none.
  useListenNotify: !config.counts,
  // https://pgboss.io/api/queues, "Heartbeat vs expiration": a dead worker is found after heartbeatSeconds and up to
  // monitorIntervalSeconds. By default both intervals are a minute.
  ...(config.monitor > 0 && { superviseIntervalSeconds: config.monitor, monitorIntervalSeconds: config.monitor }),
});
boss.on("error", (error) => process.stderr.write(`${error.stack ?? error.message}\n`));

if (config.migrate) {
  await boss.start();
  await boss.createQueue("bench", { notify: true });
  await boss.stop();
  process.exit(0);
}

// The same statement as Daybook's handlers and River's.
const post = `
INSERT INTO ledger (job, account, amount, currency)
SELECT n, account, amount, 'EUR'
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS j (n, net, tax),
       LATERAL (VALUES ('1200', net + tax), ('4400', -net), ('3800', -tax)) v (account, amount)`;

const effects = new pg.Pool({ connectionString: config.databaseUrl, max: 8 });
let invocations = 0;

// fault does as the handlers of the other queues under fault: it takes some time and writes a row, again and again until that is done.
const fault = async ({ data: { number, takes = 0 }, retryCount }) => {
  const invocation = (BigInt(process.pid) << 32n) + BigInt(++invocations);
  begun(number);
  if (!config.idle) {
    await sleep(10 + (retryCount === 0 ? takes : 0));
    for (;;) {
      try {
        await effects.query("INSERT INTO effects (job, invocation) VALUES ($1, $2) ON CONFLICT DO NOTHING", [number, invocation]);
        break;
      } catch {
        await sleep(50);
      }
    }
  }
  finished(number);
};

const handlers = {
  noop: async (jobs) => {
    jobs.forEach((job) => begun(job.data.number));
    done(jobs.length);
  },
  post: async (jobs, tx) => {
    jobs.forEach((job) => begun(job.data.number));
    const column = (name) => jobs.map((job) => job.data[name]);
    await tx.executeSql(post, [column("number"), column("net"), column("tax")]);
    done(jobs.length);
  },
  // A statement a job, as functions that share a transaction have.
  postEach: async (jobs, tx) => {
    for (const { data } of jobs) {
      begun(data.number);
      await tx.executeSql(post, [[data.number], [data.net], [data.tax]]);
    }
    done(jobs.length);
  },
  fault: (jobs) => Promise.all(jobs.map(fault)),
};

if (config.waits) {
  await told();
}
if (config.counts) {
  counting();
}
await boss.start();
await boss.work(
  "bench",
  {
    batchSize: config.batch,
    localConcurrency: config.concurrency,
    // https://pgboss.io/api/workers: it fetches on without a pause as long as batches are full.
    burstWhenBatchFull: true,
    // A job that is tried again is not announced: it is found by the next poll.
    pollingIntervalSeconds: 0.5,
    ...(config.polling > 0 && { notifyPollingIntervalSeconds: config.polling }),
    // Without its timeout each transaction has a statement less.
    ...(config.handler.startsWith("post") && { transactional: true, transactionTimeoutSeconds: 0 }),
  },
  handlers[config.handler],
);
if (!config.waits) {
  ready();
}
await ended;
await boss.stop({ timeout: 20_000 });
await effects.end();
process.exit(0);
