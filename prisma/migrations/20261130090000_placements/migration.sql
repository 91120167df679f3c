-- The hosts of tenants' services in regions with several hosts.
CREATE TABLE "placements" (
    "tenant_id" TEXT NOT NULL,
    "service" TEXT NOT NULL,
    "host_id" TEXT NOT NULL,
    "memory_bytes" BIGINT NOT NULL,

    CONSTRAINT "placements_pkey" PRIMARY KEY ("tenant_id", "service"),
    CONSTRAINT "placements_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
