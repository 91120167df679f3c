-- The quotas that tenants have used to 80 % or more. The check of quotas replaces them each minute, so that the fleet is read
-- without the usage of all tenants.
CREATE TABLE "near_quotas" (
    "tenant_id" TEXT NOT NULL,
    "resource" TEXT NOT NULL,
    "used" BIGINT NOT NULL,
    "quota" BIGINT NOT NULL,

    CONSTRAINT "near_quotas_pkey" PRIMARY KEY ("tenant_id","resource"),
    CONSTRAINT "near_quotas_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- Tenants are counted by status from this index only.
CREATE INDEX "tenants_desired_status_idx" ON "tenants"("desired", "status");
DROP INDEX "tenants_desired_idx";

-- Finds the few tenants whose last proof is too old.
CREATE INDEX "tenants_proven_at_idx" ON "tenants"("proven_at") WHERE proof_seen_at IS NOT NULL;
