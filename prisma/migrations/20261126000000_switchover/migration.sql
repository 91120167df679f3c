-- Switchovers of clusters, with the former primary and the requested one.
ALTER TABLE "operations"
    ADD COLUMN "switchover" JSONB,
    DROP CONSTRAINT "operations_kind",
    ADD CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'undelete', 'rotate_keys', 'rotate_database_password', 'rotate_service_passwords', 'suspend', 'resume', 'pause', 'wake', 'restart', 'resize', 'upgrade', 'switchover', 'backup', 'restore', 'verify'));
