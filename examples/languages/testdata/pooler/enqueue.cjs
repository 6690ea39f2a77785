// Enqueues jobs by eight clients at a time, with node-postgres. Prints how many failed.
const { Client } = require("pg");

const named = process.argv[2] === "named";

async function client() {
  const connection = new Client({ connectionString: process.env.DAYBOOK_DATABASE_URL });
  await connection.connect();
  let failed = 0;
  for (let n = 0; n < 25; n++) {
    try {
      await connection.query("BEGIN");
      await connection.query({
        name: named ? "enqueue" : undefined, // a named statement is prepared
        text: "SELECT job_id FROM daybook.enqueue_job($1, 'order_confirmation', $2)",
        values: ["shop", { order_id: String(n) }],
      });
      await connection.query("COMMIT");
    } catch {
      failed++;
      await connection.query("ROLLBACK");
    }
  }
  await connection.end();
  return failed;
}

Promise.all(Array.from({ length: 8 }, client)).then((all) => console.log(all.reduce((a, b) => a + b)));
