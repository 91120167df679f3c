-- The installation's own certificate authority, which signs the certificates of the gateways' SQL ports.
CREATE TABLE "certificate_authority" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "certificate" TEXT NOT NULL,
    "sealed_key" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "certificate_authority_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "certificate_authority_one" CHECK ("id" = 1)
);
