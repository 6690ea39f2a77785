"""Sums up a CSV export of `daybook export` in the form of expected.py, so that the two can be compared line by line.

Usage: exported.py export.csv > actual.csv
"""

import csv
import sys
from collections import defaultdict
from decimal import Decimal

RECEIVABLES = "1200"
NOTHING = Decimal("0.00")

entries = defaultdict(list)
with open(sys.argv[1], encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        amount = Decimal(row["amount"])
        if (amount > 0) != (row["side"] == "debit") or row["kind"] != "post":
            sys.exit(f"a row that cannot be: {row}")
        entries[row["document"], row["posting_date"], row["account"], row["currency"]].append(amount)

out = csv.writer(sys.stdout, lineterminator="\n")
receivables = NOTHING
for (document, date, account, currency), amounts in sorted(entries.items()):
    debit = sum((a for a in amounts if a > 0), NOTHING)
    credit = sum((-a for a in amounts if a < 0), NOTHING)
    if account == RECEIVABLES:
        receivables += debit - credit
    out.writerow([document, date, account, currency, len(amounts), debit, credit])
print(f"with_entries {len({document for document, _, _, _ in entries})}", file=sys.stderr)
print(f"net_total {receivables}", file=sys.stderr)
