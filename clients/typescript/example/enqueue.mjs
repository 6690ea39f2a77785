// Enqueues a job by the HTTP API and waits until it has ended: node example/enqueue.mjs ORDER
import { createDaybook, DaybookError, waitForJob } from "../dist/index.js";

const client = createDaybook({ baseUrl: process.env.DAYBOOK_URL, token: process.env.DAYBOOK_TOKEN });
const body = { type: "order_confirmation", payload: { order_id: process.argv[2] }, idempotencyKey: `confirm/${process.argv[2]}` };
const { data: job } = await client.POST("/api/jobs/enqueue", { body });
const ended = await waitForJob(client, job.id);
let refused;
try {
  await client.POST("/api/jobs/enqueue", { body: { ...body, payload: { order_id: "another" } } });
} catch (error) {
  if (!(error instanceof DaybookError)) throw error;
  refused = error.code;
}
console.log(JSON.stringify({ state: ended.state, result: ended.result, refused }));
