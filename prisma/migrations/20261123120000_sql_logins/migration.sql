-- Why the SQL login of a tenant is closed, and what its sessions did before. A tenant without a row has done nothing.
CREATE TABLE "sql_logins" (
    "tenant_id" TEXT NOT NULL,
    "strikes" INTEGER NOT NULL DEFAULT 0,
    "struck_at" TIMESTAMPTZ(3),
    "closed_until" TIMESTAMPTZ(3),
    "is_full" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "sql_logins_pkey" PRIMARY KEY ("tenant_id"),
    CONSTRAINT "sql_logins_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
