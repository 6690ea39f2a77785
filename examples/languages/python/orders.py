"""Write an order with psycopg: its row, its job and its invoice in one transaction. Then wait for what comes of them."""

import json
import os
import sys
import time

import psycopg
from psycopg.types.json import Jsonb

ORG = "shop"


def place_order(conn, order_id, net, undo=False):
    """Write the order and all that follows from it, or nothing. Returns the job's id."""
    with conn.transaction(force_rollback=undo):
        conn.execute(
            "INSERT INTO app.orders (id, org_id, customer, net) VALUES (%s, %s, %s, %s)",
            (order_id, ORG, "A. Customer", net),
        )
        # The key makes the call repeatable: a second one leads to the same job.
        job_id, duplicate = conn.execute(
            """SELECT job_id, duplicate
                 FROM daybook.enqueue_job(%s, 'order_confirmation', %s,
                      idempotency_key => %s, links => %s)""",
            (ORG, Jsonb({"order_id": order_id}), f"confirm/{order_id}", Jsonb([{"kind": "order", "id": order_id}])),
        ).fetchone()
        tax = net * 19 // 100
        invoice = {
            "number": order_id,
            "country": "DE",
            "lines": [{"kind": "item", "description": "Goods", "net": net, "rate": 19, "category": "VAT"}],
            "taxes": [{"category": "VAT", "rate": 19, "base": net, "amount": tax}],
            "total": net + tax,
            "payable": net + tax,
        }
        conn.execute(
            """INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
               VALUES (%s, %s, 'invoice', 'out', 'EUR', current_date, %s)""",
            (ORG, f"invoice:{order_id}", Jsonb(invoice)),
        )
        conn.execute("SELECT * FROM daybook.mark_document_ready(%s, %s)", (ORG, f"invoice:{order_id}"))
    return job_id


def wait_for_job(conn, job_id, timeout=30.0):
    """Return the job's state and result when it has ended. Call it outside of the transaction that enqueued."""
    until, pause = time.monotonic() + timeout, 0.02
    while time.monotonic() < until:
        row = conn.execute(
            "SELECT state::text, result, last_error_code FROM daybook.jobs WHERE id = %s", (job_id,)
        ).fetchone()
        if row is None:
            raise LookupError(f"there is no job {job_id}")
        if row[0] in ("completed", "failed", "cancelled"):
            return {"state": row[0], "result": row[1], "error": row[2]}
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
    raise TimeoutError(f"job {job_id} has not ended within {timeout} s")


def wait_for_posting(conn, document_id, timeout=30.0):
    """Return True when the document's newest version is posted."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        state = conn.execute(
            "SELECT state::text FROM daybook.accounting_work_queue WHERE org_id = %s AND document_id = %s",
            (ORG, document_id),
        ).fetchone()[0]
        if state in ("completed", "failed", "cancelled"):
            return state == "completed"
        time.sleep(0.05)
    raise TimeoutError(f"{document_id} was not posted within {timeout} s")


def main():
    order_id, net, undo = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["undo"]
    with psycopg.connect(os.environ["DAYBOOK_DATABASE_URL"], autocommit=True) as conn:
        job_id = place_order(conn, order_id, net, undo)
        if undo:
            return
        outcome = wait_for_job(conn, job_id)
        outcome["posted"] = wait_for_posting(conn, f"invoice:{order_id}")
        print(json.dumps(outcome))


if __name__ == "__main__":
    main()
