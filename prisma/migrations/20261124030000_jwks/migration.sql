-- Public keys with which the tenant's own service signs tokens of its users.
ALTER TABLE "tenants" ADD COLUMN "jwks" JSONB NOT NULL DEFAULT '[]';
