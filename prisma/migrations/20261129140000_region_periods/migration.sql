-- The strongest isolation depends on the region, to which a tenant can move.
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
    ELSIF OLD."desired" = 'deleted' THEN
        SELECT max("until") INTO changed FROM "plan_periods" WHERE "tenant_id" = NEW."id";
        INSERT INTO "plan_periods" ("tenant_id", "since", "plan_id", "weaker_isolation")
            VALUES (NEW."id", greatest(changed, NEW."undeleted_at"), NEW."plan_id", weaker)
            ON CONFLICT ("tenant_id", "since") DO UPDATE
            SET "plan_id" = excluded."plan_id", "weaker_isolation" = excluded."weaker_isolation", "until" = NULL;
    ELSIF NEW."plan_id" <> OLD."plan_id" OR NEW."isolation" <> OLD."isolation"
        OR NEW."region_id" <> OLD."region_id" THEN
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
CREATE TRIGGER "tenants_plan_period" AFTER INSERT OR UPDATE OF "plan_id", "isolation", "region_id", "desired" ON "tenants"
    FOR EACH ROW EXECUTE FUNCTION tenants_plan_period();
