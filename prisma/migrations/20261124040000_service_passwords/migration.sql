-- Whether the services' logins in the home do not have the newest stored passwords yet.
ALTER TABLE "tenants" ADD COLUMN "service_passwords_due" BOOLEAN NOT NULL DEFAULT false;

ALTER TABLE "operations"
    DROP CONSTRAINT "operations_kind",
    ADD CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'undelete', 'rotate_keys', 'rotate_database_password', 'rotate_service_passwords', 'suspend', 'resume', 'pause', 'wake', 'restart', 'resize', 'upgrade', 'backup', 'restore', 'verify'));
