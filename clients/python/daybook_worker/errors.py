"""What a handler raises to say how its attempt ended."""


class JobError(Exception):
    """Fails an attempt with a code. The code is of 1 to 64 capital letters, digits and "_"."""

    def __init__(self, message: str, code: str = "HANDLER_ERROR"):
        super().__init__(message)
        self.code = code


class Final(JobError):
    """Makes the job a dead letter, even if attempts are left."""


class RetryAfter(JobError):
    """Fails the attempt. The next one, if one is left, begins after so many seconds."""

    def __init__(self, seconds: float, message: str, code: str = "HANDLER_ERROR"):
        super().__init__(message, code)
        self.seconds = seconds


class Snooze(Exception):
    """Puts the job off for so many seconds, at least one. No attempt is counted."""

    def __init__(self, seconds: float):
        self.seconds = max(seconds, 1.0)
        super().__init__(f"snoozed for {self.seconds:g} s")


class Cancel(Exception):
    """Ends the job as cancelled, because there is nothing left to do."""
