-- Tenants with services of their own: what runs for them, where, and what may happen to it.

ALTER TABLE "plans" ADD COLUMN "resources" JSONB NOT NULL DEFAULT '{}';
UPDATE "plans" SET "resources" = CASE "id"
    WHEN 'Free' THEN '{"postgres": {"memory_bytes": 402653184, "cpu_millis": 500}, "runtime": {"memory_bytes": 536870912, "cpu_millis": 500}}'
    WHEN 'Pro' THEN '{"postgres": {"memory_bytes": 1073741824, "cpu_millis": 1000}, "runtime": {"memory_bytes": 1073741824, "cpu_millis": 1000}}'
    ELSE '{"postgres": {"memory_bytes": 4294967296, "cpu_millis": 2000}, "runtime": {"memory_bytes": 2147483648, "cpu_millis": 2000}}'
END::jsonb;

ALTER TABLE "tenants"
    ADD COLUMN "drift_policy" TEXT NOT NULL DEFAULT 'repair',
    ADD COLUMN "suspend_reason" TEXT,
    ADD COLUMN "payment_required" BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN "resources" JSONB,
    ADD COLUMN "restarts" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "postgres_image" TEXT,
    ADD COLUMN "runtime_image" TEXT,
    ADD COLUMN "pause_after_seconds" INTEGER,
    ADD COLUMN "backup_schedule" TEXT,
    ADD COLUMN "backups_kept" INTEGER NOT NULL DEFAULT 7,
    ADD COLUMN "backup_seen_schedule" TEXT,
    ADD COLUMN "backup_seen_at" TIMESTAMPTZ(3),
    DROP CONSTRAINT "tenants_desired",
    DROP CONSTRAINT "tenants_status",
    DROP CONSTRAINT "tenants_route_phase",
    ADD CONSTRAINT "tenants_desired" CHECK ("desired" IN ('active', 'suspended', 'paused', 'warm', 'restoring', 'deleted')),
    ADD CONSTRAINT "tenants_status" CHECK ("status" IN ('pending', 'ready', 'suspended', 'paused', 'warm', 'deleting', 'failed')),
    ADD CONSTRAINT "tenants_route_phase" CHECK ("route_phase" IN ('pending', 'ready', 'suspended', 'paused', 'deleted')),
    ADD CONSTRAINT "tenants_drift_policy" CHECK ("drift_policy" IN ('repair', 'report', 'ignore')),
    ADD CONSTRAINT "tenants_pause_after" CHECK ("pause_after_seconds" >= 0),
    ADD CONSTRAINT "tenants_backups_kept" CHECK ("backups_kept" BETWEEN 1 AND 365);
CREATE INDEX "tenants_desired_idx" ON "tenants"("desired");

ALTER TABLE "operations"
    ADD COLUMN "backup_id" UUID,
    DROP CONSTRAINT "operations_kind",
    ADD CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'rotate_keys', 'suspend', 'resume', 'pause', 'wake', 'restart', 'resize', 'upgrade', 'backup', 'restore', 'verify'));

-- Subnets of a region's range, by their number in it. A row is kept until nothing of the stack is left on the host.
CREATE TABLE "subnets" (
    "region_id" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "stack_id" TEXT NOT NULL,

    CONSTRAINT "subnets_pkey" PRIMARY KEY ("region_id","number"),
    CONSTRAINT "subnets_number" CHECK ("number" >= 0)
);
CREATE UNIQUE INDEX "subnets_stack_id_key" ON "subnets"("stack_id");
ALTER TABLE "subnets" ADD CONSTRAINT "subnets_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "regions"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- A change of image, tenant by tenant.
CREATE TABLE "rollouts" (
    "id" UUID NOT NULL,
    "region_id" TEXT NOT NULL,
    "component" TEXT NOT NULL,
    "image" TEXT NOT NULL,
    "image_id" TEXT NOT NULL,
    "canary" TEXT,
    "wave_size" INTEGER NOT NULL,
    "soak_seconds" INTEGER NOT NULL,
    "deadline_seconds" INTEGER NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'running',
    "wave" INTEGER NOT NULL DEFAULT 0,
    "tenants" JSONB NOT NULL DEFAULT '[]',
    "error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "rollouts_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "rollouts_component" CHECK ("component" IN ('runtime', 'postgres')),
    CONSTRAINT "rollouts_sizes" CHECK ("wave_size" > 0 AND "soak_seconds" >= 0 AND "deadline_seconds" > "soak_seconds"),
    CONSTRAINT "rollouts_state" CHECK ("state" IN ('running', 'rolling_back', 'succeeded', 'rolled_back', 'failed'))
);
CREATE INDEX "rollouts_created_at_id_idx" ON "rollouts"("created_at", "id");
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "regions"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Kept after the tenant is gone, so `tenant_id` is no foreign key. `key` is sealed with the master key.
CREATE TABLE "backups" (
    "id" UUID NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "region_id" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'running',
    "trigger" TEXT NOT NULL,
    "planned_at" TIMESTAMPTZ(3),
    "key" BYTEA NOT NULL,
    "bytes" BIGINT,
    "manifest_hash" TEXT,
    "error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),
    "verified_at" TIMESTAMPTZ(3),
    "verify_error" TEXT,

    CONSTRAINT "backups_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "backups_state" CHECK ("state" IN ('running', 'complete', 'failed')),
    CONSTRAINT "backups_trigger" CHECK ("trigger" IN ('request', 'schedule'))
);
CREATE UNIQUE INDEX "backups_tenant_id_planned_at_key" ON "backups"("tenant_id", "planned_at");
CREATE INDEX "backups_tenant_id_created_at_idx" ON "backups"("tenant_id", "created_at");
CREATE INDEX "backups_created_at_id_idx" ON "backups"("created_at", "id");
