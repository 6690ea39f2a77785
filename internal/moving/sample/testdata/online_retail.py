"""Prints what the documents of "Online Retail" must come to, as JSON: for each document its balances by account in minor
units, debit positive. It shares no code with the import and the rules, so that both can be compared with it."""

import csv
import io
import json
import sys
import tarfile
from decimal import ROUND_HALF_EVEN, Decimal

RECEIVABLE = "1200"
ACCOUNTS = {
    "POST": "4910", "DOT": "4910", "C2": "4910", "D": "4700", "M": "4920", "m": "4920", "S": "6610", "B": "6930",
    "CRUK": "3280", "BANK CHARGES": "6855", "AMAZONFEE": "6856",
}


def account(code):
    return "3270" if code.startswith("gift_") else ACCOUNTS.get(code, "4000")


documents = {}
with tarfile.open(sys.argv[1]) as archive:
    for member in archive:
        text = io.TextIOWrapper(archive.extractfile(member), encoding="utf-8", newline="")
        for row in csv.DictReader(text):
            pence = Decimal(row["Quantity"]) * Decimal(row["UnitPrice"]) * 100
            net = int(pence.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
            balances = documents.setdefault(row["InvoiceNo"], {})
            if net:
                for name, amount in ((RECEIVABLE, net), (account(row["StockCode"]), -net)):
                    balances[name] = balances.get(name, 0) + amount
json.dump(documents, sys.stdout)
