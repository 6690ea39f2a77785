// A process of graphile-worker for the benchmarks. BENCH_GRAPHILE holds its configuration as JSON.
//
// With "migrate" it makes the schema and ends. Otherwise it says "ready", waits for a line on its standard input, works jobs that
// do nothing, and says how many it has done whenever that number has changed. It ends when its standard input does, in the orderly way.
import { createInterface } from "node:readline";
import { Logger, run, runMigrations } from "graphile-worker";

const config = JSON.parse(process.env.BENCH_GRAPHILE);
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

const lines = createInterface({ input: process.stdin });
process.stdout.write("ready\n");
await new Promise((resolve) => lines.once("line", resolve));

let done = 0;
let told = 0;
const tell = () => {
  if (done !== told) {
    told = done;
    process.stdout.write(`${done}\n`);
  }
};
const telling = setInterval(tell, 5);
const runner = await run({
  preset,
  noHandleSignals: true,
  taskList: {
    noop: () => {
      done++;
    },
  },
});
await new Promise((resolve) => lines.once("close", resolve));
clearInterval(telling);
await runner.stop();
tell();
process.exit(0);
