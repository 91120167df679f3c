-- What was last read of each tenant's home: from there on its stored bytes count, until it is read again.
CREATE TABLE "home_readings" (
    "tenant_id" TEXT NOT NULL,
    "books" UUID NOT NULL,
    "read_at" TIMESTAMPTZ(3) NOT NULL,
    "document_bytes" BIGINT NOT NULL,
    "file_bytes" BIGINT NOT NULL,
    "document_byte_seconds" BIGINT NOT NULL,
    "file_byte_seconds" BIGINT NOT NULL,

    CONSTRAINT "home_readings_pkey" PRIMARY KEY ("tenant_id"),
    CONSTRAINT "home_readings_amounts" CHECK ("document_bytes" >= 0 AND "file_bytes" >= 0 AND "document_byte_seconds" >= 0 AND "file_byte_seconds" >= 0)
);
CREATE INDEX "home_readings_read_at_idx" ON "home_readings"("read_at");
