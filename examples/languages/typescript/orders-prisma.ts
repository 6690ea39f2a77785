// Write an order with Prisma: its row, its job and its invoice in one transaction. Then wait for what comes of them.
import { setTimeout as sleep } from "node:timers/promises";
import { PrismaPg } from "@prisma/adapter-pg";
import { Prisma, PrismaClient } from "./generated/client.js";
import { invoice } from "./invoice.js";

const org = "shop";

// The time zone is named because the adapter takes the times that it reads for UTC.
const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: process.env.DAYBOOK_DATABASE_URL, options: "-c timezone=UTC" }),
});

// Enqueues a job in the transaction, and returns its id.
async function enqueueJob(tx: Prisma.TransactionClient, type: string, payload: object, key: string): Promise<string> {
  const [job] = await tx.$queryRaw<{ job_id: string }[]>`
    SELECT job_id FROM daybook.enqueue_job(${org}, ${type}, ${payload}, idempotency_key => ${key})`;
  return job.job_id;
}

// Writes an invoice and has it posted, in the transaction.
async function postInvoice(tx: Prisma.TransactionClient, id: string, content: object): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
    VALUES (${org}, ${id}, 'invoice', 'out', 'EUR', current_date, ${content})`;
  await tx.$queryRaw`SELECT * FROM daybook.mark_document_ready(${org}, ${id})`;
}

type Outcome = { state: string; result?: unknown; error?: string | null; finished_at?: Date };

// Waits until the first row of a query is in a final state, and returns the row.
async function wait(query: Prisma.Sql): Promise<Outcome> {
  for (const until = Date.now() + 30_000; Date.now() < until; await sleep(50)) {
    const [row] = await prisma.$queryRaw<Outcome[]>(query);
    if (["completed", "failed", "cancelled"].includes(row?.state)) return row;
  }
  throw new Error("it has not ended within 30 s");
}

const [orderId, netText, undo] = process.argv.slice(2);
const net = Number(netText);
try {
  const jobId = await prisma.$transaction(async (tx) => {
    await tx.order.create({ data: { id: orderId, orgId: org, customer: "A. Customer", net } });
    await postInvoice(tx, `invoice:${orderId}`, invoice(orderId, net));
    const id = await enqueueJob(tx, "order_confirmation", { order_id: orderId }, `confirm/${orderId}`);
    if (undo === "undo") throw new Error("undone"); // which undoes all of it
    return id;
  });
  const job = await wait(Prisma.sql`SELECT state::text, result, last_error_code AS error, finished_at FROM daybook.jobs WHERE id = ${jobId}`);
  const document = await wait(
    Prisma.sql`SELECT state::text FROM daybook.accounting_work_queue WHERE org_id = ${org} AND document_id = ${`invoice:${orderId}`}`);
  console.log(JSON.stringify({ ...job, posted: document.state === "completed" }));
} catch (error) {
  if (undo !== "undo") throw error;
} finally {
  await prisma.$disconnect();
}
