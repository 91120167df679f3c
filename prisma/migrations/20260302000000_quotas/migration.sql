-- Under which plan a tenant was, and since when. Kept after the tenant is gone.
CREATE TABLE "plan_periods" (
    "tenant_id" TEXT NOT NULL,
    "since" TIMESTAMPTZ(3) NOT NULL,
    "until" TIMESTAMPTZ(3),
    "plan_id" TEXT NOT NULL,

    CONSTRAINT "plan_periods_pkey" PRIMARY KEY ("tenant_id","since"),
    CONSTRAINT "plan_periods_order" CHECK ("until" >= "since")
);
CREATE INDEX "plan_periods_since_idx" ON "plan_periods"("since");

-- Written with the tenant's row itself, so that no way of making or changing a tenant can forget it. A tenant made in
-- advance is nobody's and has no period before it is claimed. A clock that steps back gives a period of no length.
CREATE FUNCTION tenants_plan_period() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed TIMESTAMPTZ(3);
BEGIN
    IF NEW."desired" = 'warm' OR (NEW."desired" = 'deleted' AND (TG_OP = 'INSERT' OR OLD."desired" IN ('warm', 'deleted'))) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'INSERT' OR OLD."desired" = 'warm' THEN
        INSERT INTO "plan_periods" ("tenant_id", "since", "plan_id") VALUES (NEW."id", NEW."created_at", NEW."plan_id");
    ELSIF NEW."desired" = 'deleted' THEN
        UPDATE "plan_periods" SET "until" = greatest("since", NEW."delete_requested_at")
            WHERE "tenant_id" = NEW."id" AND "until" IS NULL;
    ELSIF NEW."plan_id" <> OLD."plan_id" THEN
        UPDATE "plan_periods" SET "until" = greatest("since", NEW."updated_at")
            WHERE "tenant_id" = NEW."id" AND "until" IS NULL RETURNING "until" INTO changed;
        INSERT INTO "plan_periods" ("tenant_id", "since", "plan_id") VALUES (NEW."id", coalesce(changed, NEW."updated_at"), NEW."plan_id")
            ON CONFLICT ("tenant_id", "since") DO UPDATE SET "plan_id" = excluded."plan_id", "until" = NULL;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER "tenants_plan_period" AFTER INSERT OR UPDATE OF "plan_id", "desired" ON "tenants"
    FOR EACH ROW EXECUTE FUNCTION tenants_plan_period();

INSERT INTO "plan_periods" ("tenant_id", "since", "until", "plan_id")
    SELECT "id", "created_at", CASE WHEN "desired" = 'deleted' THEN greatest("created_at", "delete_requested_at") END, "plan_id" FROM "tenants"
    WHERE "desired" <> 'warm' AND NOT ("desired" = 'deleted' AND "name" = 'warm-' || substr("id", 3));

-- How fast tenants of a plan may ask at each gateway; NULL is unlimited. Written from the configuration at start.
ALTER TABLE "plans"
    ADD COLUMN "rate_per_second" INTEGER,
    ADD COLUMN "rate_burst" INTEGER,
    ADD CONSTRAINT "plans_rate" CHECK (("rate_per_second" IS NULL) = ("rate_burst" IS NULL) AND "rate_per_second" > 0 AND "rate_burst" > 0);

-- A row for each tenant and month of which requests are leased: whoever leases holds its lock.
CREATE TABLE "request_budgets" (
    "tenant_id" TEXT NOT NULL,
    "month" DATE NOT NULL,
    "recalled_until" TIMESTAMPTZ(3),

    CONSTRAINT "request_budgets_pkey" PRIMARY KEY ("tenant_id","month")
);
CREATE INDEX "request_budgets_recalled_until_idx" ON "request_budgets"("recalled_until");

-- What an incarnation of a gateway may let in of a tenant's month. The sum of "granted" never exceeds the plan.
CREATE TABLE "request_leases" (
    "tenant_id" TEXT NOT NULL,
    "month" DATE NOT NULL,
    "source" TEXT NOT NULL,
    "boot" UUID NOT NULL,
    "granted" BIGINT NOT NULL,
    "used" BIGINT NOT NULL DEFAULT 0,
    "hour" TIMESTAMPTZ(0),
    "used_before" BIGINT NOT NULL DEFAULT 0,
    "inherited" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "request_leases_pkey" PRIMARY KEY ("tenant_id","month","source","boot"),
    CONSTRAINT "request_leases_counts" CHECK (0 <= "used_before" AND "used_before" <= "used" AND "used" <= "granted")
);
CREATE INDEX "request_leases_source_boot_idx" ON "request_leases"("source", "boot");

-- The incarnations of gateways that lease.
CREATE TABLE "lease_holders" (
    "source" TEXT NOT NULL,
    "boot" UUID NOT NULL,
    "sequence" BIGINT NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL,
    "ended" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "lease_holders_pkey" PRIMARY KEY ("source","boot")
);
