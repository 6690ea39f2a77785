"""Keeps the steps of an attempt at a job, by SQL."""

import json
import logging
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Optional

import psycopg

from .errors import JobError

if TYPE_CHECKING:
    from . import Job
    from .database import Database

log = logging.getLogger("daybook")

LEVELS = 500  # of objects and arrays in a result
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
ESCAPES = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|u....|.)")  # a pair of surrogates is one
UNSTORABLE = re.compile(r"\\(?:u0000|ud[89a-f]..)$")  # U+0000, half a pair


class Steps:
    """The steps of one attempt. What earlier ones have kept is read when the first step is asked for."""

    def __init__(self, db: "Database", job: "Job"):
        self._db, self._job, self._lock, self.closed = db, job, threading.Lock(), False
        self._kept: Optional[dict[str, dict]] = None if job.steps else {}
        self._asked: dict[str, bool] = {}  # by name: whether it was kept before

    def run(self, name: str, f: Callable, in_tx: bool = False, loop: bool = False) -> Any:
        step = self._begin(name)
        try:
            if step["times"] and not step["done"] and not loop:
                raise _step_error(name, "STEP_CHANGED", f"attempt {step['attempt']} has kept it as a loop that has not "
                                  "ended: give the step another name")
            while not step["done"]:
                if self._job.stopped.is_set():
                    raise _step_error(name, "HANDLER_ERROR", "the attempt is over")
                step = self._kept[name] = self._round(step, f, in_tx)
            return step["result"]
        except BaseException:
            del self._asked[name]  # the handler may ask for it again
            raise

    def _begin(self, name: str) -> dict:
        with self._lock:
            if self._kept is None:
                self._kept = {s["name"]: s for s in self._db.enduring(self._read, lambda: self._job._held)}
            if self.closed:
                raise _step_error(name, "STEP_INVALID", "the handler has returned")
            if not 0 < len(name.encode()) <= 64 or "\0" in name:
                raise _step_error(name, "STEP_INVALID", "its name must have 1 to 64 bytes, and no U+0000")
            if name in self._asked:
                raise _step_error(name, "STEP_INVALID", "asked for before: give each step a name of its own")
            step = self._kept.get(name) or {"name": name, "times": 0, "done": False, "result": None}
            if isinstance(step["result"], dict) and "$encrypted" in step["result"]:
                raise _step_error(name, "KEY_UNKNOWN", "this worker cannot decrypt what was kept")
            self._asked[name] = step["times"] > 0
            return {**step, "place": len(self._asked)}

    def _read(self) -> list:
        return self._db.call(
            "SELECT name, attempt, result, done, times FROM daybook.job_steps WHERE job_id = %s", self._job.job_id)

    def _round(self, step: dict, f: Callable, in_tx: bool) -> dict:
        """Runs a round of a step and keeps it. In a transaction it is run again if the connection was lost."""
        began, tried = time.monotonic(), False
        result = None if in_tx else f(None, step["result"])

        def keep() -> dict:
            nonlocal tried
            for kept in self._read() if in_tx and tried else ():
                if kept["name"] == step["name"] and kept["times"] > step["times"]:
                    return {**step, **kept}  # the COMMIT was done, and its answer lost
            tried = True
            with self._db.connection(self._job) as conn, conn.transaction():
                now, more = f(conn, step["result"]) if in_tx else result
                return self._keep(conn, {**step, "times": step["times"] + 1, "done": not more}, now, began, not in_tx)
            raise _step_error(step["name"], "HANDLER_ERROR", "psycopg.Rollback has undone it")
        return self._db.enduring(keep, lambda: self._job._held, foreign=in_tx)

    def _keep(self, conn: psycopg.Connection, step: dict, result: Any, began: float, again: bool) -> dict:
        text, unstored = as_json(result)
        if unstored:
            raise _step_error(step["name"], "STEP_NOT_STORED", unstored)
        try:
            conn.execute("SELECT daybook.keep_step(%s, %s, %s, %s, %s, %s, %s, %s, %s)", (
                self._job.job_id, self._job.fence, step["name"], text, step["done"], step["times"], step["place"],
                time.monotonic() - began, again))
        except psycopg.Error as e:
            code = e.diag.message_detail if e.sqlstate == "DB010" else None
            if (e.sqlstate or "")[:2] in ("22", "54"):  # it is no JSON to the database
                code = "STEP_NOT_STORED"
            raise _step_error(step["name"], code, e.diag.message_primary) if code else e
        return {**step, "attempt": self._job.attempt, "result": json.loads(text or "null")}

    def close(self) -> None:
        """Refuses steps from now on: the handler has returned. Tells of those that it should have asked for."""
        self.closed = True
        if unused := sorted(set(self._kept or ()) - set(self._asked)):
            run = ", ".join(name for name, before in self._asked.items() if not before)
            log.warning("job %s: an earlier attempt has kept steps that this one did not ask for: were they renamed or "
                        "removed? kept: %s; run: %s", self._job.job_id, ", ".join(unused), run)


def _step_error(name: str, code: str, why: str) -> JobError:
    return JobError(f"step {name[:100]!r}: {why}", code)


def as_json(result: Any) -> tuple[Optional[str], Optional[str]]:
    """Returns the result as JSON, or why there is none."""
    if result is None:
        return None, None
    try:
        text = json.dumps(result, allow_nan=False)
        if any(map(UNSTORABLE.match, ESCAPES.findall(text))):
            return None, "the result has a character that the database cannot hold"
        if text.count("[") + text.count("{") > LEVELS and _levels(text) > LEVELS:
            return None, f"the result is nested deeper than {LEVELS} levels"
        return text, None
    except (TypeError, ValueError, RecursionError) as e:
        return None, f"the result is no JSON: {e}"


def _levels(text: str) -> int:
    deepest = level = 0
    for bracket in re.findall(r"[\[\]{}]", STRINGS.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest
