-- The control database. Checks hold what the schema's comments say of texts that are enumerations.

CREATE TABLE "installation" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "name" UUID NOT NULL,
    "epoch" BIGINT NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "installation_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "installation_one_row" CHECK ("id" = 1)
);

CREATE TABLE "plans" (
    "id" TEXT NOT NULL,
    "rank" INTEGER NOT NULL,
    "isolation" TEXT NOT NULL,
    "document_bytes" BIGINT,
    "file_bytes" BIGINT,
    "requests_per_month" BIGINT,
    "realtime_connections" INTEGER,

    CONSTRAINT "plans_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "plans_isolation" CHECK ("isolation" IN ('schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'))
);

CREATE TABLE "regions" (
    "id" TEXT NOT NULL,
    "engine" TEXT NOT NULL,
    "domain" TEXT NOT NULL,

    CONSTRAINT "regions_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "shared_databases" (
    "id" TEXT NOT NULL,
    "region_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "capacity" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "shared_databases_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "shared_databases_capacity" CHECK ("capacity" > 0)
);

CREATE TABLE "tenants" (
    "id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "plan_id" TEXT NOT NULL,
    "region_id" TEXT NOT NULL,
    "isolation" TEXT NOT NULL,
    "shared_database_id" TEXT,
    "desired" TEXT NOT NULL DEFAULT 'active',
    "status" TEXT NOT NULL DEFAULT 'pending',
    "reason" TEXT,
    "generation" INTEGER NOT NULL DEFAULT 1,
    "observed_generation" INTEGER NOT NULL DEFAULT 0,
    "conditions" JSONB NOT NULL DEFAULT '[]',
    "home_version" TEXT,
    "route_phase" TEXT NOT NULL DEFAULT 'pending',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "delete_requested_at" TIMESTAMPTZ(3),
    "purge_after" TIMESTAMPTZ(3),

    CONSTRAINT "tenants_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "tenants_id_form" CHECK ("id" ~ '^t_[0-9a-f]{20}$'),
    CONSTRAINT "tenants_isolation" CHECK ("isolation" IN ('schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant')),
    CONSTRAINT "tenants_desired" CHECK ("desired" IN ('active', 'suspended', 'deleted')),
    CONSTRAINT "tenants_status" CHECK ("status" IN ('pending', 'ready', 'suspended', 'deleting', 'failed')),
    CONSTRAINT "tenants_route_phase" CHECK ("route_phase" IN ('pending', 'ready', 'suspended', 'deleted')),
    CONSTRAINT "tenants_generations" CHECK ("observed_generation" <= "generation"),
    CONSTRAINT "tenants_purge" CHECK (("desired" = 'deleted') = ("purge_after" IS NOT NULL))
);

CREATE TABLE "tenant_secrets" (
    "id" UUID NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "sealed" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "tenant_secrets_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "tenant_secrets_kind" CHECK ("kind" IN ('runtime_password', 'ddl_password', 'admin_password', 'jwt_secret', 'signing_secret', 'publishable_key', 'secret_key'))
);

CREATE TABLE "operations" (
    "id" UUID NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'pending',
    "step" TEXT,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "error" TEXT,
    "generation" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "operations_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'rotate_keys')),
    CONSTRAINT "operations_state" CHECK ("state" IN ('pending', 'running', 'succeeded', 'failed', 'superseded'))
);

CREATE TABLE "platform_keys" (
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "sha256" TEXT NOT NULL,
    "scope" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "replaced_by" UUID,

    CONSTRAINT "platform_keys_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "platform_keys_sha256_form" CHECK ("sha256" ~ '^[0-9a-f]{64}$'),
    CONSTRAINT "platform_keys_scope" CHECK ("scope" IN ('admin', 'read', 'billing'))
);

CREATE TABLE "idempotency_records" (
    "platform_key_id" UUID NOT NULL,
    "key" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "status" INTEGER,
    "answer" BYTEA,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "idempotency_records_pkey" PRIMARY KEY ("platform_key_id","key")
);

CREATE TABLE "audit_log" (
    "seq" BIGSERIAL NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "actor" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "detail" JSONB NOT NULL,
    "previous" TEXT NOT NULL,
    "hash" TEXT NOT NULL,

    CONSTRAINT "audit_log_pkey" PRIMARY KEY ("seq")
);

CREATE TABLE "usage_counters" (
    "source" TEXT NOT NULL,
    "boot" UUID NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "hour" TIMESTAMPTZ(0) NOT NULL,
    "meter" TEXT NOT NULL,
    "group" TEXT NOT NULL,
    "method" TEXT NOT NULL,
    "status_class" TEXT NOT NULL,
    "value" BIGINT NOT NULL,

    CONSTRAINT "usage_counters_pkey" PRIMARY KEY ("tenant_id","hour","meter","group","method","status_class","source","boot"),
    CONSTRAINT "usage_counters_value" CHECK ("value" >= 0)
);

CREATE UNIQUE INDEX "plans_rank_key" ON "plans"("rank");
CREATE UNIQUE INDEX "shared_databases_region_id_name_key" ON "shared_databases"("region_id", "name");
CREATE UNIQUE INDEX "tenants_name_key" ON "tenants"("name");
CREATE INDEX "tenants_created_at_id_idx" ON "tenants"("created_at", "id");
CREATE INDEX "tenants_region_id_idx" ON "tenants"("region_id");
CREATE INDEX "tenants_plan_id_idx" ON "tenants"("plan_id");
CREATE INDEX "tenants_status_idx" ON "tenants"("status");
CREATE INDEX "tenants_shared_database_id_idx" ON "tenants"("shared_database_id");
CREATE INDEX "tenant_secrets_tenant_id_kind_idx" ON "tenant_secrets"("tenant_id", "kind");
CREATE INDEX "operations_tenant_id_created_at_idx" ON "operations"("tenant_id", "created_at");
CREATE INDEX "operations_created_at_id_idx" ON "operations"("created_at", "id");
CREATE INDEX "operations_state_idx" ON "operations"("state");
CREATE UNIQUE INDEX "platform_keys_sha256_key" ON "platform_keys"("sha256");
CREATE INDEX "idempotency_records_created_at_idx" ON "idempotency_records"("created_at");
CREATE UNIQUE INDEX "audit_log_hash_key" ON "audit_log"("hash");

ALTER TABLE "shared_databases" ADD CONSTRAINT "shared_databases_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "regions"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "tenants" ADD CONSTRAINT "tenants_plan_id_fkey" FOREIGN KEY ("plan_id") REFERENCES "plans"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "tenants" ADD CONSTRAINT "tenants_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "regions"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "tenants" ADD CONSTRAINT "tenants_shared_database_id_fkey" FOREIGN KEY ("shared_database_id") REFERENCES "shared_databases"("id") ON DELETE SET NULL ON UPDATE CASCADE;
ALTER TABLE "tenant_secrets" ADD CONSTRAINT "tenant_secrets_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- An audit entry is never changed or removed.
CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_log is append-only';
END $$;
CREATE TRIGGER "audit_log_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_log"
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();

INSERT INTO "installation" ("name") VALUES (gen_random_uuid());

-- Quotas of the specification's section 8. Sizes are decimal: 500 MB are 500,000,000 bytes. NULL is unlimited.
INSERT INTO "plans" ("id", "rank", "isolation", "document_bytes", "file_bytes", "requests_per_month", "realtime_connections") VALUES
    ('Free', 1, 'schema-per-tenant', 500000000, 1000000000, 10000, 100),
    ('Pro', 2, 'database-per-tenant', 100000000000, 100000000000, 1000000, 10000),
    ('Enterprise', 3, 'cluster-per-tenant', NULL, NULL, NULL, NULL);
