-- A deletion can be reverted until the removal of the tenant's data has begun.
ALTER TABLE "tenants"
    ADD COLUMN "desired_before_delete" TEXT,
    ADD COLUMN "purge_begun_at" TIMESTAMPTZ(3),
    ADD COLUMN "last_deleted_at" TIMESTAMPTZ(3),
    ADD COLUMN "undeleted_at" TIMESTAMPTZ(3);

-- Tenants in their grace time were suspended if their last suspension was not followed by a resume.
UPDATE "tenants" SET "desired_before_delete" = CASE WHEN (
        SELECT "kind" FROM "operations"
        WHERE "tenant_id" = "tenants"."id" AND "kind" IN ('suspend', 'resume') ORDER BY "created_at" DESC LIMIT 1
    ) = 'suspend' THEN 'suspended' ELSE 'active' END
    WHERE "desired" = 'deleted';

ALTER TABLE "operations"
    DROP CONSTRAINT "operations_kind",
    ADD CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'undelete', 'rotate_keys', 'rotate_database_password', 'suspend', 'resume', 'pause', 'wake', 'restart', 'resize', 'upgrade', 'backup', 'restore', 'verify'));

-- An undeleted tenant has its plan again from that time on.
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
