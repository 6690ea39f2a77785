// Works the jobs order_confirmation: notes the confirmation in the transaction that completes the job. SIGTERM ends the
// worker when the jobs that run have ended.
import { Final, Worker } from "daybook-client/worker";

const worker = new Worker({ connectionString: process.env.DAYBOOK_DATABASE_URL, owner: "orders" });

worker.handle("order_confirmation", { maxAttempts: 5, timeout: 10 }, async (job) => {
  if (!("order_id" in job.payload)) throw new Final("the payload has no order_id", "PAYLOAD_INVALID");
  job.inTx((tx) => tx.query("UPDATE app.orders SET confirmed = true WHERE id = $1", [job.payload.order_id]));
  return { confirmed: job.payload.order_id };
});

await worker.run();
