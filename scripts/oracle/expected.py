"""Works out from the files of "Online Retail" alone what must be posted, and prints it as CSV: for each document and account
the number of entries, what is debited and what is credited.

A line of an invoice comes to quantity times price, rounded half to even to the penny. Its code names the account that is
credited, or debited where the line is negative; the document's total is the one entry on the other side. What comes to
nothing has no entry.

Usage: expected.py online-retail.tar.xz > expected.csv
"""

import csv
import io
import sys
import tarfile
from collections import defaultdict
from decimal import ROUND_HALF_EVEN, Decimal

RECEIVABLES = "1200"
SALES = "4000"
VOUCHERS = "3270"
ACCOUNTS = {
    "POST": "4910",  # shipping
    "DOT": "4910",
    "C2": "4910",
    "D": "4700",  # discounts
    "M": "4920",  # manual items
    "m": "4920",
    "S": "6610",  # samples
    "B": "6930",  # bad debts
    "CRUK": "3280",  # donations
    "BANK CHARGES": "6855",
    "AMAZONFEE": "6856",
}
PENNY = Decimal("0.01")
NOTHING = Decimal("0.00")


def account_of(code):
    if code in ACCOUNTS:
        return ACCOUNTS[code]
    return VOUCHERS if code.startswith("gift_") else SALES


def rows(path):
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".csv"):
                yield from csv.DictReader(io.TextIOWrapper(archive.extractfile(member), encoding="utf-8", newline=""))


def main():
    documents = {}  # number: date
    totals = defaultdict(Decimal)  # number: total
    entries = defaultdict(list)  # (number, account): amounts, debits positive
    for row in rows(sys.argv[1]):
        number = row["InvoiceNo"]
        documents.setdefault(number, row["InvoiceDate"][:10])
        net = (Decimal(row["Quantity"]) * Decimal(row["UnitPrice"])).quantize(PENNY, rounding=ROUND_HALF_EVEN)
        if net:
            totals[number] += net
            entries[number, account_of(row["StockCode"])].append(-net)
    for number, total in totals.items():
        if total:
            entries[number, RECEIVABLES].append(total)

    out = csv.writer(sys.stdout, lineterminator="\n")
    for (number, account), amounts in sorted(entries.items()):
        debit = sum((a for a in amounts if a > 0), NOTHING)
        credit = sum((-a for a in amounts if a < 0), NOTHING)
        out.writerow([number, documents[number], account, "GBP", len(amounts), debit, credit])
    print(f"documents {len(documents)}", file=sys.stderr)
    print(f"with_entries {len({number for number, _ in entries})}", file=sys.stderr)
    print(f"net_total {sum(totals.values(), NOTHING)}", file=sys.stderr)


main()
