-- The strongest isolation model that a region can provide; written from the configuration at start.
ALTER TABLE "regions"
    ADD COLUMN "strongest_isolation" TEXT NOT NULL DEFAULT 'schema-per-tenant',
    ADD CONSTRAINT "regions_strongest_isolation" CHECK ("strongest_isolation" IN ('schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'));
UPDATE "regions" SET "strongest_isolation" = 'database-per-tenant' WHERE "engine" = 'docker';

-- The tenant's isolation model, where it is weaker than what the plan has in the tenant's region: a change of plan moves no
-- data, and a fee is not charged for a model that the tenant does not have.
ALTER TABLE "plan_periods" ADD COLUMN "weaker_isolation" TEXT;

CREATE FUNCTION weaker_isolation(had TEXT, plan TEXT, region TEXT) RETURNS TEXT LANGUAGE sql STABLE AS $$
    WITH models AS (SELECT ARRAY['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'] AS ordered)
    SELECT had FROM models, "plans", "regions"
    WHERE "plans"."id" = plan AND "regions"."id" = region
      AND array_position(ordered, had) < least(array_position(ordered, "plans"."isolation"), array_position(ordered, "strongest_isolation"))
$$;

CREATE OR REPLACE FUNCTION tenants_plan_period() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed TIMESTAMPTZ(3);
    weaker TEXT := weaker_isolation(NEW."isolation", NEW."plan_id", NEW."region_id");
BEGIN
    IF NEW."desired" = 'warm' OR (NEW."desired" = 'deleted' AND (TG_OP = 'INSERT' OR OLD."desired" IN ('warm', 'deleted'))) THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'INSERT' OR OLD."desired" = 'warm' THEN
        INSERT INTO "plan_periods" ("tenant_id", "since", "plan_id", "weaker_isolation") VALUES (NEW."id", NEW."created_at", NEW."plan_id", weaker);
    ELSIF NEW."desired" = 'deleted' THEN
        UPDATE "plan_periods" SET "until" = greatest("since", NEW."delete_requested_at")
            WHERE "tenant_id" = NEW."id" AND "until" IS NULL;
    ELSIF NEW."plan_id" <> OLD."plan_id" OR NEW."isolation" <> OLD."isolation" THEN
        UPDATE "plan_periods" SET "until" = greatest("since", NEW."updated_at")
            WHERE "tenant_id" = NEW."id" AND "until" IS NULL RETURNING "until" INTO changed;
        INSERT INTO "plan_periods" ("tenant_id", "since", "plan_id", "weaker_isolation")
            VALUES (NEW."id", coalesce(changed, NEW."updated_at"), NEW."plan_id", weaker)
            ON CONFLICT ("tenant_id", "since") DO UPDATE
            SET "plan_id" = excluded."plan_id", "weaker_isolation" = excluded."weaker_isolation", "until" = NULL;
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER "tenants_plan_period" ON "tenants";
CREATE TRIGGER "tenants_plan_period" AFTER INSERT OR UPDATE OF "plan_id", "isolation", "desired" ON "tenants"
    FOR EACH ROW EXECUTE FUNCTION tenants_plan_period();

-- No tenant has ever changed its model, so each period of a tenant that is still there is known.
UPDATE "plan_periods" SET "weaker_isolation" = weaker_isolation("isolation", "plan_periods"."plan_id", "region_id")
    FROM "tenants" WHERE "tenants"."id" = "tenant_id";
