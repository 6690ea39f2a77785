"""Works jobs as the cases of worker_test.go ask for."""

import os
import time

from daybook_worker import Cancel, Final, JobError, RetryAfter, Snooze, Worker

worker = Worker(os.environ["DAYBOOK_DATABASE_URL"], poll=0.1, grace=float(os.environ["GRACE"]), owner="tests")


def note(job):
    row = (job.job_id, job.payload["note"])
    job.in_tx(lambda conn: conn.execute("INSERT INTO app.effects (job_id, note) VALUES (%s, %s)", row))


def fail(error):
    raise error


def refuse(job):
    note(job)
    job.in_tx(lambda conn: fail(ValueError("refused")))


def nap(job):
    time.sleep(0.3)


def hang_once(job):
    if job.attempt == 1:
        job.stopped.wait()
    note(job)


DO = {
    "complete": lambda job: {
        "attempt": job.attempt, "of": job.max_attempts, "org": job.org_id, "key": job.idempotency_key
    },
    "note": note,
    "refuse": refuse,
    "error": lambda job: fail(ValueError("no")),
    "code": lambda job: fail(JobError("no", "DISK_FULL")),
    "no code": lambda job: fail(JobError("no", "disk full")),
    "reserved": lambda job: fail(JobError("no", "SNOOZED")),
    "final code": lambda job: fail(JobError("no", "NOT_FOUND")),
    "final": lambda job: fail(Final("no")),
    "retry after": lambda job: fail(RetryAfter(120, "no", "NOT_FOUND")),
    "snooze": lambda job: fail(Snooze(300)),
    "cancel": lambda job: fail(Cancel("nothing to do")),
    "no result": lambda job: {"text": "\0"},
    "hang": lambda job: job.stopped.wait(),
    "hang once": hang_once,
    "nap": nap,
}


@worker.handler("quick", max_attempts=3, timeout=2, base=60, cap=600)
def quick(job):
    return DO[job.payload["do"]](job)


@worker.handler("patient", max_attempts=2, timeout=3600)
def patient(job):
    return DO[job.payload["do"]](job)


worker.run()
