// Write an order with Drizzle: its row, its job and its invoice in one transaction. Then wait for what comes of them.
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { bigint, pgSchema, text } from "drizzle-orm/pg-core";
import pg from "pg";
import { invoice } from "./invoice.js";

const org = "shop";

// The application's own table.
const orders = pgSchema("app").table("orders", {
  id: text().primaryKey(),
  orgId: text("org_id").notNull(),
  customer: text().notNull(),
  net: bigint({ mode: "number" }).notNull(),
});

const pool = new pg.Pool({ connectionString: process.env.DAYBOOK_DATABASE_URL });
const db = drizzle(pool);
type Transaction = Parameters<Parameters<typeof db.transaction>[0]>[0];

// Enqueues a job in the transaction, and returns its id.
async function enqueueJob(tx: Transaction, type: string, payload: object, key: string): Promise<string> {
  const { rows } = await tx.execute<{ job_id: string }>(
    sql`SELECT job_id FROM daybook.enqueue_job(${org}, ${type}, ${JSON.stringify(payload)}::jsonb, idempotency_key => ${key})`);
  return rows[0].job_id;
}

// Writes an invoice and has it posted, in the transaction.
async function postInvoice(tx: Transaction, id: string, content: object): Promise<void> {
  await tx.execute(sql`INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
                       VALUES (${org}, ${id}, 'invoice', 'out', 'EUR', current_date, ${JSON.stringify(content)}::jsonb)`);
  await tx.execute(sql`SELECT * FROM daybook.mark_document_ready(${org}, ${id})`);
}

async function wait(query: ReturnType<typeof sql>): Promise<Record<string, unknown>> {
  for (const until = Date.now() + 30_000; Date.now() < until; await sleep(50)) {
    const { rows } = await db.execute(query);
    if (["completed", "failed", "cancelled"].includes(String(rows[0]?.state))) return rows[0];
  }
  throw new Error("it has not ended within 30 s");
}

const [orderId, netText, undo] = process.argv.slice(2);
const net = Number(netText);
try {
  const jobId = await db.transaction(async (tx) => {
    await tx.insert(orders).values({ id: orderId, orgId: org, customer: "A. Customer", net });
    await postInvoice(tx, `invoice:${orderId}`, invoice(orderId, net));
    const id = await enqueueJob(tx, "order_confirmation", { order_id: orderId }, `confirm/${orderId}`);
    if (undo === "undo") tx.rollback(); // it throws, which undoes all of it
    return id;
  });
  const job = await wait(sql`SELECT state::text, result, last_error_code AS error FROM daybook.jobs WHERE id = ${jobId}`);
  const document = await wait(sql`SELECT state::text FROM daybook.accounting_work_queue WHERE org_id = ${org} AND document_id = ${`invoice:${orderId}`}`);
  console.log(JSON.stringify({ ...job, posted: document.state === "completed" }));
} catch (error) {
  if (undo !== "undo") throw error;
} finally {
  await pool.end();
}
