-- A row for each tenant of which slots for connections that stay are held: whoever grants some holds its lock. "peak" is how
-- many were in use at most in "peak_month", when the plan allowed "peak_limit"; kept from 80 % on.
CREATE TABLE "connection_budgets" (
    "tenant_id" TEXT NOT NULL,
    "recalled_until" TIMESTAMPTZ(3),
    "peak" INTEGER NOT NULL DEFAULT 0,
    "peak_limit" INTEGER,
    "peak_month" DATE,

    CONSTRAINT "connection_budgets_pkey" PRIMARY KEY ("tenant_id")
);
ALTER TABLE "connection_budgets" ADD CONSTRAINT "connection_budgets_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- How many connections of a tenant a gateway may have open. The sum of "slots" is granted within the plan; "open" is what the
-- gateway has said last.
CREATE TABLE "connection_slots" (
    "tenant_id" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "slots" INTEGER NOT NULL,
    "open" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "connection_slots_pkey" PRIMARY KEY ("tenant_id","source"),
    CONSTRAINT "connection_slots_counts" CHECK (0 <= "open" AND "open" <= "slots" AND "slots" > 0)
);
CREATE INDEX "connection_slots_source_idx" ON "connection_slots"("source");
ALTER TABLE "connection_slots" ADD CONSTRAINT "connection_slots_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Whether it is the latest incarnation of its source: only that one's connections are open.
ALTER TABLE "lease_holders" ADD COLUMN "latest" BOOLEAN NOT NULL DEFAULT true;
UPDATE "lease_holders" h SET "latest" = false
    WHERE EXISTS (SELECT FROM "lease_holders" o WHERE o."source" = h."source" AND (o."seen_at", o."boot") > (h."seen_at", h."boot"));
