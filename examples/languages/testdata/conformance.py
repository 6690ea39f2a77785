"""Works jobs as the cases of worker_test.go ask for."""

import math
import os
import sys
import time

import psycopg
from daybook_worker import Cancel, Final, JobError, RetryAfter, Snooze, Worker

cut = set()  # the jobs whose connection was lost in a step, or whose transaction has lost
worker = Worker(os.environ["DAYBOOK_DATABASE_URL"], parallel=int(os.environ.get("PARALLEL", 10)),
                poll=float(os.environ.get("POLL", 0.1)), grace=float(os.environ["GRACE"]), owner="tests")


def note(job):
    row = (job.job_id, job.payload["note"])
    job.in_tx(lambda conn: conn.execute("INSERT INTO app.effects (job_id, note) VALUES (%s, %s)", row))


def fail(error):
    raise error


def refuse(job):
    note(job)
    job.in_tx(lambda conn: fail(ValueError("refused")))


class Bare(JobError):
    def __init__(self):
        pass

    def __str__(self):
        return "bare"


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def elsewhere(query, *args):
    with psycopg.connect(os.environ["DAYBOOK_DATABASE_URL"], autocommit=True) as conn:
        conn.execute(query, args)


def conflict(job, always=False):
    def lose(conn):
        first = always or job.job_id not in cut
        cut.add(job.job_id)
        if first:
            elsewhere("INSERT INTO app.effects (job_id, note) VALUES (%s, 'a')", job.job_id)
        conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        conn.execute("SELECT FROM app.effects")
        if first:
            elsewhere("UPDATE app.effects SET note = 'b' WHERE job_id = %s", job.job_id)
        conn.execute("UPDATE app.effects SET note = note || 'c' WHERE job_id = %s", (job.job_id,))
    job.in_tx(lose)


def missing_file(job):
    note(job)
    job.in_tx(lambda conn: open("/nowhere/at/all"))


def nap(job):
    time.sleep(0.3)


def hang_once(job):
    if job.attempt == 1:
        job.stopped.wait()
    note(job)


# Steps.


def effect(conn, job):
    conn.execute("INSERT INTO app.effects (job_id, note) VALUES (%s, %s)", (job.job_id, job.payload["note"]))


def again(job):
    """Fails the first attempt. The next one begins at once."""
    if job.attempt == 1:
        raise RetryAfter(0, "again")


def effect_step(job, then=lambda conn: None):
    def work(conn):
        effect(conn, job)
        then(conn)
        return {"attempt": job.attempt}
    return job.step_in_tx("effect", work)


def rounds(job, f=lambda job: None):
    def one(conn, done):
        if done == 2:
            f(job)
        effect(conn, job)
        return (done or 0) + 1, (done or 0) < 2
    return job.loop_in_tx("rounds", one)


def steps(job):
    first = job.step("first", lambda: (job.attempt,))
    second = effect_step(job)
    third = rounds(job, again)
    return [first, second, third]


def hang_behind_steps(job):
    done = [job.step("first", lambda: (job.attempt,)), effect_step(job), rounds(job)]
    if job.attempt == 1:
        job.stopped.wait()
    return done


def cut_step(job):
    def lose(conn):
        if job.job_id not in cut:
            cut.add(job.job_id)
            conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    effect_step(job, then=lose)


def refuse_step(job):
    return effect_step(job, then=lambda conn: again(job))


def pause_in_step(job):
    return effect_step(job, then=lambda conn: time.sleep(3 if job.attempt == 1 else 0))


def step_twice(job):
    job.step("a", lambda: 1)
    job.step("a", lambda: 2)


def step_of_loop(job):
    if job.attempt == 2:
        job.step("a", lambda: 1)
    job.loop("a", lambda done: again(job) if done else (1, True))


def renamed(job):
    new = job.step("old" if job.attempt == 1 else "new", lambda: job.attempt)
    again(job)
    return {"new": new}


DO = {
    "steps": steps,
    "hang behind steps": hang_behind_steps,
    "cut step": cut_step,
    "refuse step": refuse_step,
    "pause in step": pause_in_step,
    "big step": lambda job: job.step("a", lambda: "x" * (1 << 20)),
    "unstorable step": lambda job: job.step("a", lambda: "\0"),
    "step twice": step_twice,
    "long step": lambda job: job.step("a" * 65, lambda: 1),
    "step of loop": step_of_loop,
    "renamed step": renamed,
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
    "retry after nan": lambda job: fail(RetryAfter(math.nan, "no")),
    "retry after ages": lambda job: fail(RetryAfter(1e300, "no")),
    "unprintable": lambda job: fail(Unprintable()),
    "odd text": lambda job: fail(JobError("\udcff \0")),
    "odd code": lambda job: fail(JobError("no", 404)),
    "missing file": missing_file,
    "conflict": conflict,
    "conflicts": lambda job: conflict(job, always=True),
    "looks lost": lambda job: job.in_tx(lambda conn: conn.execute("DO $$BEGIN RAISE SQLSTATE '08006'; END$$")),
    "rolls back": lambda job: job.in_tx(lambda conn: fail(psycopg.Rollback())),
    "rolls back in step": lambda job: effect_step(job, then=lambda conn: fail(psycopg.Rollback())),
    "bare": lambda job: fail(Bare()),
    "other database": lambda job: job.in_tx(lambda conn: psycopg.connect("host=127.0.0.1 port=1")),
    "exits": lambda job: sys.exit(1),
    "half a pair": lambda job: {"text": "\ud83d"},
    "half a pair as key": lambda job: {"\ud83d": 1},
    "whole pair": lambda job: {"text": "\U0001f600"},
    "backslash": lambda job: {"text": r"\u0000 \\ud83d " + '"{['},
    "deep": lambda job: nested(501),
    "deepest": lambda job: nested(500),
    "hang in step": lambda job: effect_step(job, then=lambda conn: time.sleep(3600)),
    "hang": lambda job: job.stopped.wait(),
    "hang once": hang_once,
    "slow": lambda job: time.sleep(3),
    "slow note": lambda job: (time.sleep(3), note(job))[1],
    "deaf": lambda job: time.sleep(3600 if job.attempt == 1 else 0),
    "nap": nap,
}


@worker.handler("quick", max_attempts=3, timeout=2, base=60, cap=600)
def quick(job):
    return DO[job.payload["do"]](job)


@worker.handler("patient", max_attempts=2, timeout=3600)
def patient(job):
    return DO[job.payload["do"]](job)


worker.run()
