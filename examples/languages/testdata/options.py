"""Options that cannot be meant are refused, and those that can are not. Checks what needs no database besides."""

from contextlib import suppress
from math import inf, nan
from threading import Thread
from unittest import mock

from daybook_worker import Job, Worker

for option in ("parallel", "poll", "grace"):
    for value in (0, -1, nan, inf) if option == "poll" else (-1, nan):
        try:
            Worker("", **{option: value})
        except ValueError as e:
            assert option in str(e), e
        else:
            raise SystemExit(f"{option}={value} is accepted")
for option in ("max_attempts", "timeout", "base", "factor", "cap", "version"):
    for value in (-1, nan) if option == "version" else (0, -1, nan):
        try:
            Worker("").handler("a", **{option: value})
        except ValueError as e:
            assert option in str(e), e
        else:
            raise SystemExit(f"{option}={value} is accepted")
Worker("", parallel=1, poll=0.01, grace=0).handler("a", timeout=0.1, base=1, factor=0.5, cap=1, version=0)


# An attempt whose time is over, and for whose end no thread can be started, takes no place for ever.
def no_thread(self):
    raise RuntimeError("can't start new thread")


worker, job = Worker(""), Job("id", "org", "a", {}, 1, 3, 1, "id", 2, None, None, None, 0)
worker.handler("a")(print)
worker._running["id", 1] = job
with mock.patch.object(Thread, "start", no_thread), suppress(RuntimeError):
    worker._look({("id", 1): job}, {("id", 1): False})
worker._leave(job)  # the handler returns
assert not worker._running and not job._held
