-- The ledger closes hours and months: who counts and how far, what was closed, and what came too late.

-- `booked` is how much of a counter went into a closed hour or a correction, `booked_last` how much of that the last time;
-- `dirty` while it may be less than `value`.
-- The index holds dirty counters alone; a growing counter stays dirty, so its updates don't touch it.
ALTER TABLE "usage_counters"
    ADD COLUMN "booked" BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN "booked_last" BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN "dirty" BOOLEAN NOT NULL DEFAULT true;
CREATE INDEX "usage_counters_tenant_id_hour_idx" ON "usage_counters"("tenant_id", "hour") WHERE "dirty";

CREATE TABLE "usage_sources" (
    "source" TEXT NOT NULL,
    "tenant_id" TEXT,
    "complete_until" TIMESTAMPTZ(0) NOT NULL,
    "first_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "retired_at" TIMESTAMPTZ(3),

    CONSTRAINT "usage_sources_pkey" PRIMARY KEY ("source"),
    CONSTRAINT "usage_sources_hour" CHECK (date_trunc('hour', "complete_until", 'UTC') = "complete_until")
);
CREATE INDEX "usage_sources_tenant_id_idx" ON "usage_sources"("tenant_id");

CREATE TABLE "usage_tenants" (
    "tenant_id" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "last_hour" TIMESTAMPTZ(0),
    "closed_until" TIMESTAMPTZ(0),
    "corrections" INTEGER NOT NULL DEFAULT 0,
    "corrections_hash" TEXT NOT NULL,

    CONSTRAINT "usage_tenants_pkey" PRIMARY KEY ("tenant_id")
);

CREATE TABLE "usage_months" (
    "month" TIMESTAMPTZ(0) NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "hours" BYTEA NOT NULL,
    "totals" TEXT NOT NULL,
    "breakdown" BYTEA NOT NULL,
    "previous" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "closed_at" TIMESTAMPTZ(3),

    CONSTRAINT "usage_months_pkey" PRIMARY KEY ("month","tenant_id"),
    CONSTRAINT "usage_months_month" CHECK (date_trunc('month', "month", 'UTC') = "month")
);
CREATE INDEX "usage_months_month_tenant_id_idx" ON "usage_months"("month", "tenant_id") WHERE "closed_at" IS NULL;

CREATE TABLE "usage_corrections" (
    "tenant_id" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "hour" TIMESTAMPTZ(0) NOT NULL,
    "amounts" TEXT NOT NULL,
    "billed_month" TIMESTAMPTZ(0) NOT NULL,
    "recorded_at" TIMESTAMPTZ(3) NOT NULL,
    "previous" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "usage_corrections_pkey" PRIMARY KEY ("tenant_id","number")
);
CREATE INDEX "usage_corrections_billed_month_tenant_id_idx" ON "usage_corrections"("billed_month", "tenant_id");

CREATE TABLE "usage_closing" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "kept_from" TIMESTAMPTZ(0) NOT NULL,

    CONSTRAINT "usage_closing_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "usage_closing_one" CHECK ("id" = 1)
);
INSERT INTO "usage_closing" ("kept_from") VALUES ('epoch');

-- What is closed never changes.
CREATE FUNCTION refuse_change_of_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the month % of % is closed', OLD."month", OLD."tenant_id" USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER usage_months_closed BEFORE UPDATE OR DELETE ON "usage_months"
    FOR EACH ROW WHEN (OLD."closed_at" IS NOT NULL) EXECUTE FUNCTION refuse_change_of_closed_month();

CREATE FUNCTION refuse_change_of_correction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'corrections of usage are never changed' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER usage_corrections_kept BEFORE UPDATE OR DELETE ON "usage_corrections"
    FOR EACH ROW EXECUTE FUNCTION refuse_change_of_correction();
