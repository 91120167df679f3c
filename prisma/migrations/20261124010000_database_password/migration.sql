-- Whether the password of `database_url` in the home is not the stored one yet.
ALTER TABLE "tenants" ADD COLUMN "database_password_due" BOOLEAN NOT NULL DEFAULT false;

ALTER TABLE "operations"
    DROP CONSTRAINT "operations_kind",
    ADD CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'rotate_keys', 'rotate_database_password', 'suspend', 'resume', 'pause', 'wake', 'restart', 'resize', 'upgrade', 'backup', 'restore', 'verify'));
