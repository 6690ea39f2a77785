-- A legacy application as Prisma makes it: its queue, and what it keeps of documents and entries.
CREATE TYPE "ACCOUNTING_JOB_STATE" AS ENUM ('pending', 'leased', 'completed', 'failed', 'cancelled');

CREATE TABLE "organization" (
    "id"   TEXT NOT NULL,
    "name" TEXT NOT NULL,
    CONSTRAINT "organization_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "documents" (
    "id"                           TEXT NOT NULL,
    "org_id"                       TEXT NOT NULL,
    "net"                          BIGINT NOT NULL,
    "accounting_ready_at"          TIMESTAMP(3),
    "accounting_ready_version"     BIGINT NOT NULL DEFAULT 0,
    "accounting_impact_created_at" TIMESTAMP(3),
    "deleted_at"                   TIMESTAMP(3),
    CONSTRAINT "documents_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "accounting_work_queue" (
    "id"                TEXT NOT NULL,
    "created_at"        TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at"        TIMESTAMP(3) NOT NULL,
    "org_id"            TEXT NOT NULL,
    "document_id"       TEXT NOT NULL,
    "version_hint"      BIGINT NOT NULL,
    "ready_at"          TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "state"             "ACCOUNTING_JOB_STATE" NOT NULL DEFAULT 'pending',
    "run_count"         INTEGER NOT NULL DEFAULT 0,
    "last_attempted_at" TIMESTAMP(3),
    "last_error"        TEXT,
    CONSTRAINT "accounting_work_queue_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "accounting_work_queue_org_id_document_id_key" ON "accounting_work_queue"("org_id", "document_id");
CREATE INDEX "accounting_work_queue_state_ready_at_idx" ON "accounting_work_queue"("state", "ready_at");
CREATE INDEX "accounting_work_queue_org_id_idx" ON "accounting_work_queue"("org_id");
ALTER TABLE "documents" ADD CONSTRAINT "documents_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organization"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "accounting_work_queue" ADD CONSTRAINT "accounting_work_queue_org_id_fkey" FOREIGN KEY ("org_id") REFERENCES "organization"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "accounting_work_queue" ADD CONSTRAINT "accounting_work_queue_document_id_fkey" FOREIGN KEY ("document_id") REFERENCES "documents"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- The legacy ledger: append-only, a new version first takes the one before back.
CREATE TABLE "financial_entries" (
    "id"           BIGSERIAL PRIMARY KEY,
    "org_id"       TEXT NOT NULL,
    "document_id"  TEXT NOT NULL,
    "account"      TEXT NOT NULL,
    "debit_cents"  BIGINT NOT NULL DEFAULT 0,
    "credit_cents" BIGINT NOT NULL DEFAULT 0,
    "currency"     TEXT NOT NULL DEFAULT 'EUR',
    "booked_on"    DATE NOT NULL DEFAULT CURRENT_DATE
);
CREATE INDEX "financial_entries_document" ON "financial_entries"("org_id", "document_id");
