"""Write an order with SQLAlchemy: its row, its job and its invoice in one transaction. Then wait for what comes of them."""

import json
import os
import sys
import time

from sqlalchemy import BigInteger, Column, Text, create_engine, text
from sqlalchemy.orm import Session, declarative_base

ORG = "shop"
Base = declarative_base()


class Order(Base):
    """The application's own table."""

    __tablename__ = "orders"
    __table_args__ = {"schema": "app"}
    id = Column(Text, primary_key=True)
    org_id = Column(Text, nullable=False)
    customer = Column(Text, nullable=False)
    net = Column(BigInteger, nullable=False)


def enqueue_job(session, job_type, payload, key=None):
    """Enqueue a job in the session's transaction. Returns its id."""
    return session.execute(
        text("SELECT job_id FROM daybook.enqueue_job(:org, :type, CAST(:payload AS jsonb), idempotency_key => :key)"),
        {"org": ORG, "type": job_type, "payload": json.dumps(payload), "key": key},
    ).scalar_one()


def post_document(session, document_id, document_type, content):
    """Write a document, and have it posted, in the session's transaction."""
    session.execute(
        text(
            """INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
               VALUES (:org, :id, :type, 'out', 'EUR', current_date, CAST(:content AS jsonb))"""
        ),
        {"org": ORG, "id": document_id, "type": document_type, "content": json.dumps(content)},
    )
    session.execute(text("SELECT * FROM daybook.mark_document_ready(:org, :id)"), {"org": ORG, "id": document_id})


def place_order(session, order_id, net):
    """Write the order and all that follows from it. The caller commits or rolls back."""
    session.add(Order(id=order_id, org_id=ORG, customer="A. Customer", net=net))
    session.flush()
    tax = net * 19 // 100
    post_document(
        session,
        f"invoice:{order_id}",
        "invoice",
        {
            "number": order_id,
            "country": "DE",
            "lines": [{"kind": "item", "description": "Goods", "net": net, "rate": 19, "category": "VAT"}],
            "taxes": [{"category": "VAT", "rate": 19, "base": net, "amount": tax}],
            "total": net + tax,
            "payable": net + tax,
        },
    )
    return enqueue_job(session, "order_confirmation", {"order_id": order_id}, key=f"confirm/{order_id}")


def wait(engine, statement, values, timeout=30.0):
    """Return the first row of a statement whose first column is the state of something that has ended."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        with engine.connect() as conn:
            row = conn.execute(text(statement), values).one()
        if row[0] in ("completed", "failed", "cancelled"):
            return row
        time.sleep(0.05)
    raise TimeoutError(f"{values} has not ended within {timeout} s")


def main():
    order_id, net, undo = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["undo"]
    url = os.environ["DAYBOOK_DATABASE_URL"]
    engine = create_engine(url.replace("postgres://", "postgresql://", 1))
    with Session(engine) as session:
        job_id = place_order(session, order_id, net)
        if undo:
            session.rollback()
            return
        session.commit()
    job = wait(engine, "SELECT state::text, result, last_error_code FROM daybook.jobs WHERE id = :id", {"id": job_id})
    document = wait(
        engine,
        "SELECT state::text FROM daybook.accounting_work_queue WHERE org_id = :org AND document_id = :id",
        {"org": ORG, "id": f"invoice:{order_id}"},
    )
    print(json.dumps({"state": job[0], "result": job[1], "error": job[2], "posted": document[0] == "completed"}))


if __name__ == "__main__":
    main()
