-- Client addresses and networks whose connections the gateways close. An entry that has expired has no effect.
CREATE TABLE "blocked_addresses" (
    "address" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "generation" BIGSERIAL NOT NULL,

    CONSTRAINT "blocked_addresses_pkey" PRIMARY KEY ("address")
);
CREATE INDEX "blocked_addresses_created_at_address_idx" ON "blocked_addresses"("created_at", "address");
CREATE INDEX "blocked_addresses_expires_at_idx" ON "blocked_addresses"("expires_at");

-- The change of an address has the address where others have the tenant.
ALTER TABLE "changes" DROP CONSTRAINT "changes_kind";
ALTER TABLE "changes" ADD CONSTRAINT "changes_kind" CHECK ("kind" IN ('wanted', 'published', 'observed', 'blocked'));
