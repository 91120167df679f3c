-- Platform keys that are limited to one tenant or one region, and to addresses of clients.
ALTER TABLE "platform_keys"
    ADD COLUMN "tenant_id" TEXT,
    ADD COLUMN "region_id" TEXT,
    ADD COLUMN "addresses" JSONB NOT NULL DEFAULT '[]',
    ADD CONSTRAINT "platform_keys_one_limit" CHECK ("tenant_id" IS NULL OR "region_id" IS NULL);
