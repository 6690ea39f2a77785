"""Works Daybook's background jobs in Python, by SQL. It needs psycopg 3 and Daybook's schema, and nothing else.

    worker = Worker("postgresql://…")

    @worker.handler("welcome", max_attempts=4, timeout=30)
    def welcome(job):
        letter = job.step("write", lambda: write(job.payload))  # kept: the next attempt does not write it again
        job.in_tx(lambda conn: conn.execute("INSERT INTO greeted VALUES (%s)", (job.payload["email"],)))
        return {"sent": letter}

    worker.run()

A job is worked at least once. What in_tx is given commits together with the job's completion, or not at all.
"""

import contextlib
import logging
import os
import secrets
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, Optional

import psycopg
from psycopg.rows import dict_row

from .errors import Cancel, Final, JobError, RetryAfter, Snooze
from .steps import Steps, as_json

__all__ = ["Cancel", "Final", "Job", "JobError", "RetryAfter", "Snooze", "Worker"]

log = logging.getLogger("daybook")

RENEW_EVERY = 1.0  # seconds; a lease lasts for 10
OUTAGE_PATIENCE = 30.0  # seconds for which the end of an attempt is sent again while the database is not there
CLOSED = ("57P01", "57P02", "57P03")  # the server ends, has crashed, or starts


@dataclass
class Job:
    """One attempt at a job. idempotency_key is the job's key, or its id: the same in all attempts."""

    job_id: str
    org_id: str
    type: str
    payload: dict
    attempt: int
    max_attempts: int
    fence: int
    idempotency_key: str
    priority: int
    queue: Optional[str]
    enqueued_at: datetime
    traceparent: Optional[str]
    steps: int  # how many earlier attempts have kept
    # Set when the attempt has ended without the handler: by its timeout, a request to cancel the job,
    # the stop of the worker, or because its lease is lost. What the handler does then is not kept.
    stopped: threading.Event = field(default_factory=threading.Event)
    _in_tx: list = field(default_factory=list)
    _steps: Optional[Steps] = None

    def in_tx(self, f: Callable[[psycopg.Connection], Any]) -> None:
        """Has f run in the transaction that completes the job, with its connection. An error fails the attempt."""
        self._in_tx.append(f)

    def step(self, name: str, f: Callable[[], Any]) -> Any:
        """Runs f, keeps its result as JSON, and returns it; the attempts after this one get it without running f.

        f runs at least once: again if the worker dies before the result is kept. A name, of 1 to 64 bytes, is for one
        step, whatever their order. A worker whose lease is lost keeps nothing, and gets an error.
        """
        return self._steps.run(name, lambda conn, done: (f(), False))

    def step_in_tx(self, name: str, f: Callable[[psycopg.Connection], Any]) -> Any:
        """Is step for what f writes by the connection: that and the result commit together, exactly once."""
        return self._steps.run(name, lambda conn, done: (f(conn), False), in_tx=True)

    def loop(self, name: str, f: Callable[[Any], tuple[Any, bool]]) -> Any:
        """Is a step of many rounds. f gets where the loop stands, at first None; it returns where it stands now, which
        is kept, and whether there is more to do. Returns where it ended."""
        return self._steps.run(name, lambda conn, done: f(done), loop=True)

    def loop_in_tx(self, name: str, f: Callable[[psycopg.Connection, Any], tuple[Any, bool]]) -> Any:
        """Is loop whose rounds are exactly once, as step_in_tx is."""
        return self._steps.run(name, f, in_tx=True, loop=True)


@dataclass
class _Handler:
    work: Callable[[Job], Any]
    max_attempts: int
    timeout: float
    base: float
    factor: float
    most: float
    version: int


class Worker:
    """Claims jobs of the types that it has handlers for, and works up to parallel of them side by side, in threads.

    It works the jobs of one fleet; "" is the one without a name. poll is the pause, in seconds, between two looks while
    nothing is due. grace is how long run waits, when it is stopped, for jobs that run; then they are given back,
    uncounted. The role of the database needs the rights of daybook_worker.
    """

    def __init__(self, dsn: str, *, fleet: str = "", parallel: int = 10, owner: str = "", poll: float = 1.0,
                 grace: float = 30.0):
        self.name = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._dsn, self._fleet, self._parallel, self._owner = dsn, fleet, parallel, owner
        self._poll, self._grace = poll, grace
        self._handlers: dict[str, _Handler] = {}
        self._stopping = threading.Event()
        # _changed guards what is below, and says that a job has ended or the worker is to stop.
        self._changed = threading.Condition()
        self._running: dict[tuple, tuple[Job, float]] = {}  # by id and fence: the job, and when its time is over
        self._idle: list[psycopg.Connection] = []

    def handler(self, type: str, *, max_attempts: int = 3, timeout: float = 30.0, base: float = 30.0,
                factor: float = 2.0, cap: float = 21600.0, version: int = 0):
        """Registers a function for a type. What it returns, as JSON, is the job's result.

        timeout is of an attempt, in seconds. The next one begins after base seconds, each later one after factor times
        as many, at most cap. version is the handler's, for jobs that name the lowest that may work them.
        """
        def register(work):
            if type in self._handlers:
                raise ValueError(f"type {type} has a handler")
            self._handlers[type] = _Handler(work, max_attempts, timeout, base, factor, cap, version)
            return work
        return register

    def stop(self) -> None:
        """Has run return: it claims nothing more, and waits for the jobs that run. SIGTERM and SIGINT do the same."""
        self._stopping.set()

    def run(self) -> None:
        """Works jobs until stop. While the database is not there, it tries again."""
        if not self._handlers:
            raise ValueError("the worker has no handler: register one before it runs")
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())
        self._enduring(self._start)
        threading.Thread(target=self._renewing, daemon=True).start()
        while not self._stopping.is_set():
            free = self._parallel - len(self._running)
            try:
                jobs = self._claim(free) if free > 0 else []
            except psycopg.Error as e:
                if not _unavailable(e):
                    raise
                log.warning("claim jobs: %s", e)
                jobs = []
            for job in jobs:
                self._begin(job)
            if not jobs:
                with self._changed:
                    self._changed.wait_for(self._stopping.is_set, min(self._poll, 0.2) if free < 1 else self._poll)
        self._drain()

    def _drain(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._running, self._grace)
            left = [job for job, _ in self._running.values()]
        self._enduring(lambda: self._call("SELECT daybook.stop_job_worker(%s)", self.name))
        for job in left:
            job.stopped.set()

    # The database.

    @contextlib.contextmanager
    def _connection(self):
        """Lends a connection to one thread. One that an error may have broken is not used again."""
        with self._changed:
            conn = self._idle.pop() if self._idle else None
        if conn is None:
            conn = psycopg.connect(self._dsn, autocommit=True, application_name="daybook worker", connect_timeout=5)
            conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        try:
            yield conn
        except BaseException:
            conn.close()
            raise
        with self._changed:
            self._idle.append(conn)

    def _call(self, query: str, *args) -> list:
        with self._connection() as conn, conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, args).fetchall()

    def _enduring(self, f: Callable[[], Any]) -> Any:
        """Calls f again for a while if the database is not there."""
        until, pause = time.monotonic() + OUTAGE_PATIENCE, 0.1
        while True:
            try:
                return f()
            except psycopg.Error as e:
                if not _unavailable(e) or time.monotonic() > until:
                    raise
                log.warning("the database is not there: %s", e)
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _start(self) -> None:
        types, all = list(self._handlers), self._handlers.values()
        self._call(
            "SELECT daybook.start_job_worker(%s, %s, %s, %s, %s, %s, %s, %s)", self.name, types, self._fleet,
            [h.version for h in all], [h.max_attempts for h in all], [float(h.timeout) for h in all], self._owner,
            self._parallel)

    def _claim(self, most: int) -> list:
        rows = self._call("SELECT * FROM daybook.claim_jobs(%s, %s)", self.name, min(most, 1000))
        jobs = [Job(**row) for row in rows]
        for job in jobs:
            job._steps = Steps(self, job)
        return jobs

    # Attempts.

    def _begin(self, job: Job) -> None:
        with self._changed:
            self._running[job.job_id, job.fence] = job, time.monotonic() + self._handlers[job.type].timeout
        threading.Thread(target=self._work, args=(job,), daemon=True).start()

    def _work(self, job: Job) -> None:
        try:
            try:
                if "$encrypted" in job.payload:
                    raise JobError("this worker cannot decrypt payloads", "KEY_UNKNOWN")
                result, unstored = as_json(self._handlers[job.type].work(job))
                job._steps.close()
                with self._changed:  # what is done in time may be put on record later
                    _, until = self._running[job.job_id, job.fence]
                    self._running[job.job_id, job.fence] = job, until + OUTAGE_PATIENCE
                self._enduring(lambda: self._complete(job, result, unstored))
            except Exception as e:
                self._end(job, e)
        except Exception:
            log.exception("job %s: the end of the attempt is not on record: its lease expires", job.job_id)
        finally:
            with self._changed:
                self._running.pop((job.job_id, job.fence), None)
                self._changed.notify_all()

    def _complete(self, job: Job, result: Optional[str], unstored: Optional[str]) -> None:
        with self._connection() as conn, conn.transaction():
            for f in job._in_tx:
                f(conn)
            conn.execute("SELECT daybook.complete_job(%s, %s, %s, %s)", (job.job_id, job.fence, result, unstored))

    def _end(self, job: Job, e: BaseException) -> None:
        """Ends an attempt that did not complete its job, as its error says."""
        h, state = self._handlers[job.type], None
        if isinstance(e, Snooze):
            state = self._enduring(lambda: self._call(
                "SELECT daybook.snooze_job(%s, %s, make_interval(secs => %s), %s) AS state",
                job.job_id, job.fence, e.seconds, str(e)))
        else:
            code = "JOB_CANCELLED" if isinstance(e, Cancel) else e.code if isinstance(e, JobError) else None
            text = str(e) if isinstance(e, (JobError, Cancel)) else f"{type(e).__name__}: {e}"
            state = self._enduring(lambda: self._call(
                "SELECT daybook.fail_job(%s, %s, %s, %s, make_interval(secs => %s), %s, %s, %s, %s) AS state",
                job.job_id, job.fence, code, text.replace("\0", ""),
                e.seconds if isinstance(e, RetryAfter) else None, isinstance(e, Final), h.base, h.factor, h.most))
        log.log(logging.INFO if isinstance(e, (Snooze, Cancel)) else logging.WARNING, "job %s, attempt %d: %s: now %s",
                job.job_id, job.attempt, e, state[0]["state"] or "another claim's")

    def _renewing(self) -> None:
        while True:
            try:
                with self._changed:
                    ids = [job.job_id for job, _ in self._running.values() if not job.stopped.is_set()]
                held = {(r["job_id"], r["fence"]): r["cancel_requested"]
                        for r in self._call("SELECT * FROM daybook.renew_jobs(%s, %s)", self.name, ids)}
                self._look(held)
            except Exception as e:
                log.warning("renew leases: %s", e)
            time.sleep(RENEW_EVERY)

    def _look(self, held: dict) -> None:
        """Ends attempts whose time is over or whose jobs are to be cancelled. Tells handlers that have lost theirs."""
        with self._changed:
            # A job that was claimed after the leases were read is not in held; its time has just begun.
            running = [(key, job, until) for key, (job, until) in self._running.items() if not job.stopped.is_set()]
        for key, job, until in running:
            timeout = self._handlers[job.type].timeout
            if held.get(key):
                self._end(job, Cancel("it was cancelled during the attempt"))
            elif time.monotonic() > until:
                self._end(job, JobError(f"not finished within {timeout:g} s", "TIMEOUT"))
            elif key in held or until - timeout > time.monotonic() - 3 * RENEW_EVERY:
                continue
            job.stopped.set()


def _unavailable(e: psycopg.Error) -> bool:
    state = e.sqlstate
    return isinstance(e, psycopg.OperationalError) and (state is None or state[:2] == "08" or state in CLOSED)
