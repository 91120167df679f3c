-- The isolation model of a backup's tenant. Older backups are of tenants with a database of their own.
ALTER TABLE "backups" ADD COLUMN "isolation" TEXT NOT NULL DEFAULT 'database-per-tenant';
