-- Indexes of the few rows that repeated queries look for among those of many tenants.

-- The condition is that of a query in control-plane/src/reconcile/store.ts.
CREATE INDEX "tenants_unsettled_idx" ON "tenants"("id") WHERE "observed_generation" < "generation"
    OR "status" IN ('pending', 'failed') OR "reason" IS NOT NULL
    OR "route_phase" <> CASE "desired" WHEN 'active' THEN 'ready' ELSE "desired" END;

CREATE INDEX "tenants_home_version_idx" ON "tenants"("home_version");

CREATE INDEX "tenant_secrets_expires_at_idx" ON "tenant_secrets"("expires_at") WHERE "expires_at" IS NOT NULL;

CREATE INDEX "connection_budgets_recalled_until_idx" ON "connection_budgets"("recalled_until") WHERE "recalled_until" IS NOT NULL;
