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

import logging
import math
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

from .database import PATIENCE, Database
from .errors import Cancel, Final, JobError, RetryAfter, Snooze, storable, told
from .faults import Unavailable
from .steps import Steps, as_json

__all__ = ["Cancel", "Final", "Job", "JobError", "RetryAfter", "Snooze", "Worker"]

log = logging.getLogger("daybook")

LEASE = 10.0  # seconds
RENEW_EVERY = 1.0

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
    _until: float = 0.0  # when its time is over
    _held: bool = True  # its lease is to be renewed
    _threads: int = 1  # that of the handler, and that which ends the attempt beside it
    _lent: list = field(default_factory=list)  # the connections that it uses

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
    cap: float
    version: int


class Worker:
    """Claims jobs of the types that it has handlers for, and works up to parallel of them side by side, in threads.

    It works the jobs of one fleet; "" is the one without a name. poll is the pause, in seconds, between two looks while
    nothing is due. grace is how long run waits, when it is stopped, for jobs that run; then they are given back,
    uncounted. A handler that has not returned although its attempt is over keeps no job from being worked, until there
    are as many of them again. The role of the database needs the rights of daybook_worker.
    """

    def __init__(self, dsn: str, *, fleet: str = "", parallel: int = 10, owner: str = "", poll: float = 1.0,
                 grace: float = 30.0):
        _check(parallel >= 1, f"parallel is {parallel}, and must be at least 1")
        _check(0 < poll < math.inf, f"poll is {poll}, and must be a positive number of seconds")
        _check(0 <= grace < math.inf, f"grace is {grace}, and must be a number of seconds")
        self.name = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        self._fleet, self._parallel, self._owner, self._poll, self._grace = fleet, parallel, owner, poll, grace
        self._db = Database(dsn)
        self._handlers: dict[str, _Handler] = {}
        self._stopping = False  # a signal's handler sets it, which may take no lock
        self._ended = threading.Event()
        # _changed guards what is below and of jobs, and says that a job has ended.
        self._changed = threading.Condition()
        self._running: dict[tuple, Job] = {}  # by id and fence

    def handler(self, type: str, *, max_attempts: int = 3, timeout: float = 30.0, base: float = 30.0,
                factor: float = 2.0, cap: float = 21600.0, version: int = 0):
        """Registers a function for a type. What it returns, as JSON, is the job's result.

        timeout is of an attempt, in seconds. The next one begins after base seconds, each later one after factor times
        as many, at most cap. version is the handler's, for jobs that name the lowest that may work them.
        """
        _check(max_attempts >= 1, f"max_attempts is {max_attempts}, and must be at least 1")
        _check(version >= 0, f"version is {version}, and must be at least 0")
        for name, value in (("timeout", timeout), ("base", base), ("factor", factor), ("cap", cap)):
            _check(0 < value < math.inf, f"{name} is {value}, and must be a positive number")

        def register(work):
            if type in self._handlers:
                raise ValueError(f"type {type} has a handler")
            self._handlers[type] = _Handler(work, max_attempts, timeout, base, factor, cap, version)
            return work
        return register

    def stop(self) -> None:
        """Has run return: it claims nothing more, and waits for the jobs that run. SIGTERM and SIGINT do the same."""
        self._stopping = True

    def run(self) -> None:
        """Works jobs until stop. While the database is not there, it tries again."""
        if not self._handlers:
            raise ValueError("the worker has no handler: register one before it runs")
        before = {}
        if threading.current_thread() is threading.main_thread():
            before = {n: signal.signal(n, lambda *_: self.stop()) for n in (signal.SIGTERM, signal.SIGINT)}
        try:
            if not self._start():
                return
            threading.Thread(target=self._renewing, daemon=True).start()
            try:
                while not self._stopping:
                    self._round()
            finally:
                self._drain()
        finally:
            self._ended.set()
            self._db.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _round(self) -> None:
        with self._changed:
            held = sum(job._held for job in self._running.values())
            free = min(self._parallel - held, 2 * self._parallel - len(self._running))
        if free < 1:
            with self._changed:
                self._changed.wait(0.2)
            return
        jobs = []
        try:
            jobs = self._claim(free)
        except Unavailable as e:
            log.warning("claim jobs: %s", e)
        for job in jobs:
            threading.Thread(target=self._work, args=(job,), daemon=True).start()
        until = time.monotonic() + (0 if jobs else self._poll)
        while not self._stopping and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))

    def _drain(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not any(job._held for job in self._running.values()), self._grace)
        until = time.monotonic() + PATIENCE
        try:
            self._db.enduring(lambda: self._db.call("SELECT daybook.stop_job_worker(%s)", self.name, within=LEASE),
                              lambda: time.monotonic() < until)
        except psycopg.Error as e:
            log.warning("stop: %s: what is left ends like the jobs of a killed worker", e)
        with self._changed:
            for job in self._running.values():
                job._held = False
                job.stopped.set()

    def _start(self) -> bool:
        """Puts the worker on record. False: it is to stop before the database is there."""
        types, all = list(self._handlers), self._handlers.values()
        try:
            self._db.enduring(lambda: self._db.call(
                "SELECT daybook.start_job_worker(%s, %s, %s, %s, %s, %s, %s, %s)", self.name, types, self._fleet,
                [h.version for h in all], [h.max_attempts for h in all], [float(h.timeout) for h in all], self._owner,
                self._parallel), lambda: not self._stopping)
        except psycopg.Error:
            if not self._stopping:
                raise
            return False
        return True

    def _claim(self, most: int) -> list:
        # What was leased longer ago than a lease lasts is lost.
        rows = self._db.call("SELECT * FROM daybook.claim_jobs(%s, %s)", self.name, min(most, 1000), within=LEASE)
        jobs = [Job(**row) for row in rows]
        with self._changed:
            for job in jobs:
                job._steps = Steps(self._db, job)
                job._until = time.monotonic() + self._handlers[job.type].timeout
                self._running[job.job_id, job.fence] = job
        return jobs

    # Attempts.

    def _work(self, job: Job) -> None:
        try:
            if "$encrypted" in job.payload:
                raise JobError("this worker cannot decrypt payloads", "KEY_UNKNOWN")
            result, unstored = as_json(self._handlers[job.type].work(job))
            job._steps.close()
            if job.stopped.is_set():
                return
            self._db.enduring(lambda: self._complete(job, result, unstored), lambda: job._held,
                              foreign=bool(job._in_tx))
        except BaseException as e:  # also sys.exit() in a handler
            returned, job._steps.closed = job._steps.closed, True
            if self._is_first(job):
                self._end(job, e)
            elif returned:
                log.warning("job %s, attempt %d: not completed: %s", job.job_id, job.attempt, told(e))
        finally:
            self._leave(job)

    def _leave(self, job: Job) -> None:
        with self._changed:
            job._threads -= 1
            if not job._threads:
                del self._running[job.job_id, job.fence]
            self._changed.notify_all()

    def _complete(self, job: Job, result: Optional[str], unstored: Optional[str]) -> None:
        job._until = max(job._until, time.monotonic() + PATIENCE)  # what is done in time may be put on record later
        with self._db.connection(job) as conn, conn.transaction():
            for f in job._in_tx:
                f(conn)
            conn.execute("SELECT daybook.complete_job(%s, %s, %s, %s)", (job.job_id, job.fence, result, unstored))
            return
        raise JobError("psycopg.Rollback has undone what in_tx was given, and the completion with it")

    def _is_first(self, job: Job) -> bool:
        """Ends an attempt. The first thread puts its end on record: the handler's, or one of the renewing thread."""
        with self._changed:
            if job.stopped.is_set():
                return False
            job._until = time.monotonic()
            job.stopped.set()
            return True

    def _end(self, job: Job, e: BaseException) -> None:
        """Puts on record how an attempt ended that did not complete its job."""
        h, text = self._handlers[job.type], told(e)
        if isinstance(e, Snooze):
            query = "SELECT daybook.snooze_job(%s, %s, make_interval(secs => %s), %s) AS state"
            args = job.job_id, job.fence, e.seconds, text
        else:
            code = storable(e.code or "") if isinstance(e, JobError) else None
            code = "JOB_CANCELLED" if isinstance(e, Cancel) else code
            query = "SELECT daybook.fail_job(%s, %s, %s, %s, make_interval(secs => %s), %s, %s, %s, %s) AS state"
            args = (job.job_id, job.fence, code, text, e.seconds if isinstance(e, RetryAfter) else None,
                    isinstance(e, Final), h.base, h.factor, h.cap)
        try:
            state = self._db.enduring(lambda: self._db.call(query, *args), lambda: job._held)[0]["state"]
        except Exception:
            log.exception("job %s, attempt %d: %s: that is not on record: its lease expires", job.job_id, job.attempt,
                          text)
            return
        finally:
            job._held = False
        log.log(logging.INFO if isinstance(e, (Snooze, Cancel)) else logging.WARNING, "job %s, attempt %d: %s: now %s",
                job.job_id, job.attempt, text, state or "not this attempt's any more")

    def _renewing(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            with self._changed:
                asked = {key: job for key, job in self._running.items() if job._held}
            try:
                rows = self._db.call("SELECT * FROM daybook.renew_jobs(%s, %s)", self.name, [id for id, _ in asked],
                                  within=LEASE / 2)
                self._look(asked, {(r["job_id"], r["fence"]): r["cancel_requested"] for r in rows})
            except Exception as e:
                log.warning("renew leases: %s", e)
            self._free()
            self._ended.wait(max(began + RENEW_EVERY - time.monotonic(), 0.1))

    def _look(self, asked: dict, held: dict) -> None:
        """Ends attempts whose time is over or whose jobs are to be cancelled. Tells handlers that have lost theirs.
        What waits for the database does so in threads of its own: the next renewal is due."""
        for key, job in asked.items():
            if key not in held:
                with self._changed:
                    job._held = False
                    self._changed.notify_all()
                if self._is_first(job) and not job._steps.closed:  # else it may just have been completed
                    log.warning("job %s, attempt %d: its lease is lost", job.job_id, job.attempt)
                continue
            timeout = self._handlers[job.type].timeout
            if held[key]:
                why = Cancel("it was cancelled during the attempt")
            elif time.monotonic() > job._until:
                why = JobError(f"not finished within {timeout:g} s", "TIMEOUT")
            else:
                continue
            with self._changed:
                first = key in self._running and self._is_first(job)
                job._threads += first
            if first:
                try:
                    threading.Thread(target=self._end_beside, args=(job, why), daemon=True).start()
                except RuntimeError:  # there are too many: its lease expires
                    job._held = False
                    self._leave(job)
                    raise

    def _free(self) -> None:
        """Ends the connections of attempts that have been over for a while, and tells of handlers that go on."""
        with self._changed:
            for job in self._running.values():
                if job.stopped.is_set() and time.monotonic() > job._until + LEASE / 2:
                    job._until = math.inf
                    self._db.shut(job)
                    if not job._steps.closed:
                        log.warning("job %s, attempt %d: the attempt is over, but its handler of type %s has not "
                                    "returned: have it look at job.stopped", job.job_id, job.attempt, job.type)

    def _end_beside(self, job: Job, why: Exception) -> None:
        try:
            self._end(job, why)
        finally:
            self._leave(job)


def _check(good: bool, why: str) -> None:
    if not good:
        raise ValueError(why)
