-- Repairs of a tenant's drift, with the fields and components that they change.
ALTER TABLE "operations"
    ADD COLUMN "repair" JSONB,
    DROP CONSTRAINT "operations_kind",
    ADD CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'undelete', 'rotate_keys', 'rotate_database_password', 'rotate_service_passwords', 'suspend', 'resume', 'pause', 'wake', 'restart', 'resize', 'upgrade', 'switchover', 'move', 'repair', 'backup', 'restore', 'verify'));
