-- The limits and the size of shared databases, and rebalances, which move homes out of those that exceed a limit.
ALTER TABLE "shared_databases"
    ADD COLUMN "max_bytes" BIGINT,
    ADD COLUMN "bytes" BIGINT,
    ADD COLUMN "measured_at" TIMESTAMPTZ(3);

CREATE TABLE "rebalances" (
    "id" UUID NOT NULL,
    "region_id" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'running',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),
    CONSTRAINT "rebalances_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "rebalances_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "regions" ("id") ON DELETE RESTRICT ON UPDATE CASCADE,
    CONSTRAINT "rebalances_state" CHECK ("state" IN ('running', 'canceling', 'done', 'canceled'))
);
CREATE INDEX "rebalances_created_at_id_idx" ON "rebalances" ("created_at", "id");

CREATE TABLE "rebalance_moves" (
    "rebalance_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "bytes" BIGINT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'waiting',
    "operation_id" UUID,
    "error" TEXT,
    CONSTRAINT "rebalance_moves_pkey" PRIMARY KEY ("rebalance_id", "position"),
    CONSTRAINT "rebalance_moves_rebalance_id_fkey" FOREIGN KEY ("rebalance_id") REFERENCES "rebalances" ("id") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "rebalance_moves_state" CHECK ("state" IN ('waiting', 'moving', 'moved', 'failed', 'skipped'))
);
