"""What a handler raises to say how its attempt ended."""

import math

LONGEST = 1e9  # seconds, 31 years; PostgreSQL's intervals overflow beyond some more


class JobError(Exception):
    """Fails an attempt with a code. The code is of 1 to 64 capital letters, digits and "_"."""

    code = "HANDLER_ERROR"  # of a subclass that does not call __init__

    def __init__(self, message: str, code: str = "HANDLER_ERROR"):
        super().__init__(message)
        self.code = code


class Final(JobError):
    """Makes the job a dead letter, even if attempts are left."""


class RetryAfter(JobError):
    """Fails the attempt. The next one, if one is left, begins after so many seconds."""

    seconds = None  # as the policy says

    def __init__(self, seconds: float, message: str, code: str = "HANDLER_ERROR"):
        super().__init__(message, code)
        self.seconds = _finite(seconds, 0.0)


class Snooze(Exception):
    """Puts the job off for so many seconds, at least one. No attempt is counted."""

    seconds = 1.0

    def __init__(self, seconds: float):
        self.seconds = _finite(seconds, 1.0)
        super().__init__(f"snoozed for {self.seconds:g} s")


class Cancel(Exception):
    """Ends the job as cancelled, because there is nothing left to do."""


def _finite(seconds: float, least: float) -> float:
    if not math.isfinite(seconds):
        raise ValueError(f"a job cannot wait for {seconds} s")
    return min(max(float(seconds), least), LONGEST)


def told(e: BaseException) -> str:
    """Returns what an error says, as the database can hold it: of a handler's errors anything may be wrong."""
    try:
        said = str(e)
    except Exception:
        said = "its text cannot be read"
    return storable(said if isinstance(e, (JobError, Cancel, Snooze)) else f"{type(e).__name__}: {said}")


def storable(text: object) -> str:
    return str(text).encode("utf-8", "replace").decode().replace("\0", "")
