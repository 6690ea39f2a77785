"""Work the jobs order_confirmation: note the confirmation in the transaction that completes the job.

PYTHONPATH is ../../clients/python. SIGTERM ends the worker when the jobs that run have ended.
"""

import logging
import os

from daybook_worker import Final, Worker

worker = Worker(os.environ["DAYBOOK_DATABASE_URL"], owner="orders")


@worker.handler("order_confirmation", max_attempts=5, timeout=10)
def confirm(job):
    if "order_id" not in job.payload:
        raise Final("the payload has no order_id", "PAYLOAD_INVALID")
    order = job.payload["order_id"]
    job.in_tx(lambda conn: conn.execute("UPDATE app.orders SET confirmed = true WHERE id = %s", (order,)))
    return {"confirmed": order}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.run()
