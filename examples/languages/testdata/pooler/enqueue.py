"""Enqueue jobs by eight clients at a time, with psycopg or psycopg2. Prints how many failed."""

import json
import os
import sys
import threading

URL, CLIENTS, EACH = os.environ["DAYBOOK_DATABASE_URL"], 8, 25
ENQUEUE = "SELECT job_id FROM daybook.enqueue_job(%s, 'order_confirmation', %s::jsonb)"


def connect(mode):
    if mode == "psycopg2":
        import psycopg2

        return psycopg2.connect(URL)
    import psycopg

    return psycopg.connect(URL, **({"prepare_threshold": None} if mode == "prepare_threshold=None" else {}))


def client(mode, failed):
    conn = connect(mode)
    for n in range(EACH):
        try:
            conn.cursor().execute(ENQUEUE, ("shop", json.dumps({"order_id": str(n)})))
            conn.commit()
        except Exception as error:
            failed.append(error)
            conn.rollback()
    conn.close()


def main():
    failed = []
    threads = [threading.Thread(target=client, args=(sys.argv[1], failed)) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(failed))
    for error in failed[:1]:
        print(error, file=sys.stderr)


main()
