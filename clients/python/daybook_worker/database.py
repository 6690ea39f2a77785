"""Connections to the database, and what becomes of transactions when it does not do as it should."""

import contextlib
import logging
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Optional

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from .faults import Unavailable, unavailable

if TYPE_CHECKING:
    from . import Job

log = logging.getLogger("daybook")

PATIENCE = 30.0  # seconds for which the database may not be there, and that one try to complete a job may take
TRIES = 10  # of an application's transaction that loses against others, or may itself be what ends its session
# What the address of the database may say otherwise: how soon a connection is given up whose other end is gone.
CONNECT = {"connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
           "tcp_user_timeout": 15000}


class Database:
    """Lends connections, and keeps those that are good."""

    def __init__(self, dsn: str):
        self._dsn = dsn
        self._lock = threading.Lock()  # guards what is below, and what is lent to jobs
        self._idle: list[psycopg.Connection] = []
        self._closed = False

    def close(self) -> None:
        """Closes the connections: those that are lent when they come back."""
        self._closed = True
        self._close_idle()

    def shut(self, job: "Job") -> None:
        """Ends the connections that are lent to a job."""
        with self._lock:
            for conn in job._lent:
                _shut(conn)

    @contextlib.contextmanager
    def connection(self, job: Optional["Job"] = None):
        """Lends a connection to one thread. One that an error may have broken is not used again, and after one that
        was lost neither are the idle ones: they may be as old."""
        with self._lock:
            conn = self._idle.pop() if self._idle else None
        conn = conn or self._connect()
        if job:
            with self._lock:
                job._lent.append(conn)
        keep = False
        try:
            yield conn
            keep = not self._closed
        except BaseException as e:
            lost = conn.closed
            again = unavailable(e, lost)
            if lost or again and not again.counted:
                self._close_idle()
            if again:
                raise again from e
            raise
        finally:
            with self._lock:
                if job:
                    job._lent.remove(conn)
                if keep:
                    self._idle.append(conn)
            if not keep:
                conn.close()

    def _connect(self) -> psycopg.Connection:
        # prepare_threshold: behind a pooler the next transaction may be of another session.
        options = {**CONNECT, **conninfo_to_dict(self._dsn), "application_name": "daybook worker"}
        try:
            conn = psycopg.connect(**options, autocommit=True, prepare_threshold=None)
        except psycopg.OperationalError as e:
            raise Unavailable(e, counted=False) from e
        conn.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return conn

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for conn in idle:
            conn.close()

    def call(self, query: str, *args, within: float = 2 * PATIENCE) -> list:
        """Runs a statement of the worker's own, which may take so many seconds, whatever limits its role has."""
        with self.connection() as conn:
            timer = threading.Timer(within + 0.5, _shut, (conn,))  # the server's own answer comes first, if there is one
            timer.start()
            try:
                with conn.transaction(), conn.cursor(row_factory=dict_row) as cursor:
                    cursor.execute(f"SET LOCAL statement_timeout = {within * 1000:.0f}; SET LOCAL lock_timeout = 0")
                    return cursor.execute(query, args).fetchall()
            except psycopg.errors.QueryCanceled as e:
                raise Unavailable(e, counted=False) from e
            finally:
                timer.cancel()

    def enduring(self, f: Callable[[], Any], wanted: Callable[[], bool], foreign: bool = False) -> Any:
        """Calls f again if the database was to blame, while that is wanted. foreign: f runs code of the application in
        its transaction."""
        pause, tries = 0.1, 0
        while True:
            try:
                return f()
            except Unavailable as e:
                tries += foreign and e.counted
                if tries >= TRIES or not wanted():
                    raise e.__cause__
                log.warning("tried again in %g s: %s", pause, e)
                time.sleep(pause)
                pause = min(2 * pause, 2.0)


def _shut(conn: psycopg.Connection) -> None:
    """Has the thread that waits for an answer of conn get an error."""
    with contextlib.suppress(OSError, psycopg.Error):
        with socket.fromfd(conn.fileno(), socket.AF_INET, socket.SOCK_STREAM) as copy:
            copy.shutdown(socket.SHUT_RDWR)
