"""Tells errors of PostgreSQL for which neither a statement nor its values are to blame."""

from typing import Optional

# The server stops, starts, fails over, only reads, or has no room, memory or connection left. Codes, or how they begin.
OUTAGE = ("08", "53", "57P", "58", "25006", "25P03")
# Another transaction was faster, or the session has plans or prepared statements that are no longer right.
CONFLICT = ("40001", "40P01", "72000", "26000", "42P05")
# Of those, what only this server says of itself. The others may be what the transaction does: asks another server.
OWN = ("57P", "25006", "53100", "53300", "58")


class Unavailable(Exception):
    """The transaction may be done again by another connection; a few times, if that counts. Its cause is the error."""

    def __init__(self, cause: BaseException, counted: bool):
        super().__init__(str(cause).strip())
        self.counted = counted


def unavailable(e: BaseException, lost: bool) -> Optional[Unavailable]:
    """Returns e as Unavailable, if it is that. lost: the connection is no more. The looks of an error do not say that:
    it may be of a connection to somewhere else."""
    state = getattr(e, "sqlstate", None) or ""
    if not isinstance(e, Exception) or not (lost or state.startswith(OUTAGE + CONFLICT)):
        return None
    return Unavailable(e, lost or not state.startswith(OWN))
