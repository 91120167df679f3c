-- Each create reads the oldest tenant that was created in advance.
CREATE INDEX "tenants_region_id_isolation_created_at_id_idx" ON "tenants" ("region_id", "isolation", "created_at", "id") WHERE "desired" = 'warm';
