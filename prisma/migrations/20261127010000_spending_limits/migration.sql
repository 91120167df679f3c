-- Limits of what tenants may spend in a month, with the last check of each against the upcoming invoice.
CREATE TABLE "spending_limits" (
    "tenant_id" TEXT NOT NULL,
    "amount_micro" BIGINT NOT NULL,
    "currency" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "changed_at" TIMESTAMPTZ(3) NOT NULL,
    "month" DATE,
    "total_micro" BIGINT,
    "checked_at" TIMESTAMPTZ(3),
    "rejects_until" TIMESTAMPTZ(3),

    CONSTRAINT "spending_limits_pkey" PRIMARY KEY ("tenant_id"),
    CONSTRAINT "spending_limits_tenant_id_fkey" FOREIGN KEY ("tenant_id") REFERENCES "tenants"("id") ON DELETE CASCADE ON UPDATE CASCADE,
    CONSTRAINT "spending_limits_amount" CHECK ("amount_micro" > 0),
    CONSTRAINT "spending_limits_action" CHECK ("action" IN ('reject', 'notify'))
);
