import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicInteger;

/** Enqueues jobs by eight clients at a time, with JDBC. Prints how many failed. */
public final class Enqueue {
  private static final AtomicInteger FAILED = new AtomicInteger();

  private static void client(String address) {
    int done = 0;
    try (Connection connection = DriverManager.getConnection(address)) {
      connection.setAutoCommit(false);
      try (PreparedStatement enqueue =
          connection.prepareStatement("SELECT job_id FROM daybook.enqueue_job(?, 'order_confirmation', ?::jsonb)")) {
        for (; done < 25; done++) {
          enqueue.setString(1, "shop");
          enqueue.setString(2, "{\"order_id\": \"" + done + "\"}");
          enqueue.execute();
          connection.commit();
        }
      }
    } catch (SQLException e) {
      System.err.println(e.getMessage());
    }
    FAILED.addAndGet(25 - done); // the first failure ends a client
  }

  public static void main(String[] args) throws InterruptedException {
    String address = System.getenv("JDBC_URL") + (args[0].equals("default") ? "" : "&" + args[0]);
    Thread[] clients = new Thread[8];
    for (int i = 0; i < clients.length; i++) {
      clients[i] = new Thread(() -> client(address));
      clients[i].start();
    }
    for (Thread client : clients) {
      client.join();
    }
    System.out.println(FAILED.get());
  }
}
