// A process of graphile-worker for the benchmarks. BENCH_NODE holds its configuration as JSON.
//
// With "migrate" it makes the schema and ends. Otherwise it says "ready", waits for a line on its standard input, works jobs that
// do nothing, and tells what peer.mjs says. It ends when its standard input does, in the orderly way.
import { Logger, run, runMigrations } from "graphile-worker";
import { begun, config, counting, done, ended, told } from "./peer.mjs";

const quiet = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") {
    process.stderr.write(`${message}\n`);
  }
});

if (config.migrate) {
  await runMigrations({ connectionString: config.databaseUrl, logger: quiet });
  process.exit(0);
}

const preset = {
  worker: {
    connectionString: config.databaseUrl,
    concurrentJobs: config.concurrency,
    maxPoolSize: config.concurrency + 1,
    localQueue: { size: config.localQueue },
    completeJobBatchDelay: config.completeDelay,
    failJobBatchDelay: config.completeDelay,
    logger: quiet,
  },
};

await told();
counting();
const runner = await run({
  preset,
  noHandleSignals: true,
  taskList: {
    noop: ({ number }) => {
      begun(number);
      done(1);
    },
  },
});
await ended;
await runner.stop();
process.exit(0);
