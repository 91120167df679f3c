-- Moves of homes between shared databases, with their progress.
ALTER TABLE "operations"
    ADD COLUMN "move" JSONB,
    DROP CONSTRAINT "operations_kind",
    ADD CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'undelete', 'rotate_keys', 'rotate_database_password', 'rotate_service_passwords', 'suspend', 'resume', 'pause', 'wake', 'restart', 'resize', 'upgrade', 'switchover', 'move', 'backup', 'restore', 'verify'));
