-- Changes of tenants, each written in the transaction that makes it. Every control plane reads them in turn; NOTIFY would
-- not do, because its queue belongs to the whole server, and a commit that notifies fails while the queue is full.
CREATE TABLE "changes" (
    "id" BIGSERIAL NOT NULL,
    "kind" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "transaction_id" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "changes_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "changes_kind" CHECK ("kind" IN ('wanted', 'published', 'observed'))
);
CREATE INDEX "changes_transaction_id_idx" ON "changes"("transaction_id");
CREATE INDEX "changes_at_idx" ON "changes"("at");
