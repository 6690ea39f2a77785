#!/usr/bin/env python3
"""Compares Daybook's statements of each month with those that hledger makes of the exported journal.

Usage: months.py DAYBOOK ORG JOURNAL MONTH…
"""

import calendar
import csv
import datetime
import decimal
import io
import json
import subprocess
import sys


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def hledger(journal, *args):
    """The amounts of a statement of hledger by account's code and currency; the net has the code ''."""
    amounts = {}
    for row in list(csv.reader(io.StringIO(run("hledger", "-f", journal, *args, "-O", "csv", "--layout", "bare"))))[2:]:
        if ":" in row[0] and row[1]:
            code = row[0].split(":")[-1].split(" ")[0]
            amounts[code, row[1]] = decimal.Decimal(row[2])
        elif row[0].startswith("Net") and row[1]:
            amounts["", row[1]] = decimal.Decimal(row[2])
    return {key: amount for key, amount in amounts.items() if amount}


def statement(daybook, org, *args):
    """The same of Daybook. What hledger calls net is what assets are above liabilities, or income above expense."""
    amounts = {}
    for line in json.loads(run(daybook, "--log-level", "warn", "--json", "statement", *args, "--org", org))["lines"]:
        amount, currency, of = decimal.Decimal(line["amounts"][0]), line["currency"], line.get("type")
        if line["kind"] == "account" and of != "equity":
            amounts[line["account"], currency] = amount
        elif line["kind"] == "total" and of in ("asset", "income"):
            amounts["", currency] = amounts.get(("", currency), 0) + amount
        elif line["kind"] == "total" and of in ("liability", "expense"):
            amounts["", currency] = amounts.get(("", currency), 0) - amount
    return {key: amount for key, amount in amounts.items() if amount}


def open_items(daybook, org, day):
    """What is open on a day, in all."""
    rows = json.loads(run(daybook, "--log-level", "warn", "--json", "open-items", "ageing", "--org", org, "--on", day))
    return sum(decimal.Decimal(row["open"]) for row in rows["rows"])


def main():
    daybook, org, journal, *months = sys.argv[1:]
    wrong = 0
    print("month     lines of the balance sheet  of the income statement  result of the month         receivables")
    for month in months:
        year, number = map(int, month.split("-"))
        last = datetime.date(year, number, calendar.monthrange(year, number)[1])
        after = (last + datetime.timedelta(1)).isoformat()
        pairs = [
            ("balance sheet", hledger(journal, "balancesheet", "-e", after), statement(daybook, org, "balance", "--on", last.isoformat())),
            ("income statement", hledger(journal, "incomestatement", "-b", f"{month}-01", "-e", after), statement(daybook, org, "income", "--period", month)),
        ]
        for name, want, got in pairs:
            for key in sorted(want.keys() | got.keys()):
                if want.get(key) != got.get(key):
                    wrong += 1
                    print(f"FAILED: {month}, {name}, {' '.join(key)}: hledger has {want.get(key)}, Daybook {got.get(key)}", file=sys.stderr)
        receivable = pairs[0][2].get(("1200", "GBP"), decimal.Decimal(0))
        items = open_items(daybook, org, last.isoformat())
        if items != receivable:
            wrong += 1
            print(f"FAILED: {month}: open items are {items}, the receivables {receivable}", file=sys.stderr)
        print(f"{month} {len(pairs[0][2]):28} {len(pairs[1][2]):24} {pairs[1][2].get(('', 'GBP'), 0):20} {receivable:19}")
    sys.exit(1 if wrong else 0)


main()
