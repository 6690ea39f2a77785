import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Set;

/** Writes an order with JDBC: its row, its job and its invoice in one transaction. Then waits for what comes of them. */
public final class Orders {
  private static final String ORG = "shop";
  private static final Set<String> ENDED = Set.of("completed", "failed", "cancelled");

  /** Writes the order and all that follows from it, in the connection's transaction, and returns the job's id. */
  static String placeOrder(Connection connection, String orderId, long net) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement("INSERT INTO app.orders (id, org_id, customer, net) VALUES (?, ?, ?, ?)")) {
      insert.setString(1, orderId);
      insert.setString(2, ORG);
      insert.setString(3, "A. Customer");
      insert.setLong(4, net);
      insert.executeUpdate();
    }
    postInvoice(connection, orderId, net);
    // The key makes the call repeatable: a second one leads to the same job.
    return one(connection, "SELECT job_id FROM daybook.enqueue_job(?, 'order_confirmation', ?::jsonb, idempotency_key => ?)",
        ORG, "{\"order_id\": \"" + orderId + "\"}", "confirm/" + orderId);
  }

  private static void postInvoice(Connection connection, String orderId, long net) throws SQLException {
    long tax = net * 19 / 100;
    String content = """
        {"number": "%s", "country": "DE", "total": %d, "payable": %d,
         "lines": [{"kind": "item", "description": "Goods", "net": %d, "rate": 19, "category": "VAT"}],
         "taxes": [{"category": "VAT", "rate": 19, "base": %d, "amount": %d}]}""".formatted(orderId, net + tax, net + tax, net, net, tax);
    one(connection, """
        INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
        VALUES (?, ?, 'invoice', 'out', 'EUR', current_date, ?::jsonb) RETURNING id""", ORG, "invoice:" + orderId, content);
    one(connection, "SELECT job_id FROM daybook.mark_document_ready(?, ?)", ORG, "invoice:" + orderId);
  }

  /** Runs a statement and returns the first column of its first row. */
  private static String one(Connection connection, String statement, String... values) throws SQLException {
    try (PreparedStatement prepared = connection.prepareStatement(statement)) {
      for (int i = 0; i < values.length; i++) {
        prepared.setString(i + 1, values[i]);
      }
      try (ResultSet rows = prepared.executeQuery()) {
        return rows.next() ? rows.getString(1) : null;
      }
    }
  }

  /** Waits until a statement returns a final state. Call it outside of the transaction that enqueued. */
  private static String await(Connection connection, String statement, String... values) throws Exception {
    long until = System.nanoTime() + 30_000_000_000L;
    for (long pause = 20; System.nanoTime() < until; pause = Math.min(2 * pause, 1000)) {
      String state = one(connection, statement, values);
      if (state != null && ENDED.contains(state)) {
        return state;
      }
      Thread.sleep(pause);
    }
    throw new IllegalStateException(String.join(" ", values) + " has not ended within 30 s");
  }

  public static void main(String[] args) throws Exception {
    String orderId = args[0];
    boolean undo = args.length > 2 && args[2].equals("undo");
    try (Connection connection = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
      connection.setAutoCommit(false);
      String jobId = placeOrder(connection, orderId, Long.parseLong(args[1]));
      if (undo) {
        connection.rollback();
        return;
      }
      connection.commit();
      connection.setAutoCommit(true);
      String state = await(connection, "SELECT state::text FROM daybook.jobs WHERE id = ?", jobId);
      String posted = await(connection, "SELECT state::text FROM daybook.accounting_work_queue WHERE org_id = ? AND document_id = ?", ORG, "invoice:" + orderId);
      String result = one(connection, "SELECT result::text FROM daybook.jobs WHERE id = ?", jobId);
      System.out.printf("{\"state\": \"%s\", \"result\": %s, \"error\": null, \"posted\": %b}%n", state, result, posted.equals("completed"));
    }
  }
}
