-- Rebalances of regions with several hosts also move services of clusters between hosts, and switch over.
ALTER TABLE "operations"
    DROP CONSTRAINT "operations_kind",
    ADD CONSTRAINT "operations_kind" CHECK ("kind" IN ('create', 'update', 'delete', 'undelete', 'rotate_keys', 'rotate_database_password', 'rotate_service_passwords', 'suspend', 'resume', 'pause', 'wake', 'restart', 'resize', 'upgrade', 'switchover', 'move', 'move_service', 'repair', 'backup', 'restore', 'verify'));

ALTER TABLE "rebalance_moves"
    ADD COLUMN "kind" TEXT NOT NULL DEFAULT 'home',
    ADD COLUMN "service" TEXT,
    ADD COLUMN "target_service" TEXT,
    ADD CONSTRAINT "rebalance_moves_kind" CHECK ("kind" IN ('home', 'service', 'switchover')),
    ADD CONSTRAINT "rebalance_moves_services" CHECK (("service" IS NOT NULL) = ("kind" <> 'home') AND ("target_service" IS NOT NULL) = ("kind" = 'switchover'));
