"""Options that cannot be meant are refused, and those that can are not."""

from math import inf, nan

from daybook_worker import Worker

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
