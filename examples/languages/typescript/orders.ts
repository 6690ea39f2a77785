// Write an order with pg: its row, its job and its invoice in one transaction. Then wait for what comes of them.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { invoice } from "./invoice.js";

const org = "shop";

// Writes the order and all that follows from it, or nothing, and returns the job's id.
export async function placeOrder(client: pg.ClientBase, orderId: string, net: number, undo: boolean): Promise<string> {
  await client.query("BEGIN");
  try {
    await client.query("INSERT INTO app.orders (id, org_id, customer, net) VALUES ($1, $2, $3, $4)", [orderId, org, "A. Customer", net]);
    // The key makes the call repeatable: a second one leads to the same job.
    const job = await client.query<{ job_id: string }>(
      "SELECT job_id FROM daybook.enqueue_job($1, 'order_confirmation', $2, idempotency_key => $3)",
      [org, { order_id: orderId }, `confirm/${orderId}`],
    );
    const documentId = `invoice:${orderId}`;
    await client.query(
      `INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
       VALUES ($1, $2, 'invoice', 'out', 'EUR', current_date, $3)`,
      [org, documentId, invoice(orderId, net)],
    );
    await client.query("SELECT * FROM daybook.mark_document_ready($1, $2)", [org, documentId]);
    await client.query(undo ? "ROLLBACK" : "COMMIT");
    return job.rows[0].job_id;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}

const ended = ["completed", "failed", "cancelled"];

// Waits until the first row of a query is in a final state, and returns the row. Call it outside of the transaction that enqueued.
export async function wait<Row extends { state: string }>(client: pg.ClientBase, query: string, values: unknown[]): Promise<Row> {
  const until = Date.now() + 30_000;
  for (let pause = 20; Date.now() < until; pause = Math.min(2 * pause, 1000)) {
    const { rows } = await client.query<Row>(query, values);
    if (rows.length > 0 && ended.includes(rows[0].state)) return rows[0];
    await sleep(pause);
  }
  throw new Error(`${values.join(" ")} has not ended within 30 s`);
}

const [orderId, net, undo] = process.argv.slice(2);
const client = new pg.Client({ connectionString: process.env.DAYBOOK_DATABASE_URL });
await client.connect();
try {
  const jobId = await placeOrder(client, orderId, Number(net), undo === "undo");
  if (undo !== "undo") {
    const job = await wait<{ state: string; result: unknown; error: string | null }>(
      client, "SELECT state::text, result, last_error_code AS error FROM daybook.jobs WHERE id = $1", [jobId]);
    const document = await wait<{ state: string }>(
      client, "SELECT state::text FROM daybook.accounting_work_queue WHERE org_id = $1 AND document_id = $2", [org, `invoice:${orderId}`]);
    console.log(JSON.stringify({ ...job, posted: document.state === "completed" }));
  }
} finally {
  await client.end();
}
