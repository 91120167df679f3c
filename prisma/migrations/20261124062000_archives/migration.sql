-- Archives of the WAL of tenants' own databases, for point-in-time recovery.
ALTER TABLE "tenants"
    ADD COLUMN "archive_days" INTEGER,
    ADD CONSTRAINT "tenants_archive_days" CHECK ("archive_days" BETWEEN 1 AND 35);

ALTER TABLE "backups" ADD COLUMN "recovered_to" TIMESTAMPTZ(3);

CREATE TABLE "archives" (
    "id" UUID NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'open',
    "key" BYTEA NOT NULL,
    "first_segment" TEXT,
    "last_segment" TEXT,
    "latest" TIMESTAMPTZ(3),
    "bytes" BIGINT NOT NULL DEFAULT 0,
    "error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "archives_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "archives_state" CHECK ("state" IN ('open', 'ended', 'removing'))
);
CREATE INDEX "archives_tenant_id_created_at_idx" ON "archives"("tenant_id", "created_at");

CREATE TABLE "archive_bases" (
    "id" UUID NOT NULL,
    "archive_id" UUID NOT NULL,
    "start_segment" TEXT,
    "stop_segment" TEXT,
    "complete_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "archive_bases_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "archive_bases_archive_id_idx" ON "archive_bases"("archive_id");
ALTER TABLE "archive_bases" ADD CONSTRAINT "archive_bases_archive_id_fkey"
    FOREIGN KEY ("archive_id") REFERENCES "archives"("id") ON DELETE CASCADE ON UPDATE CASCADE;
