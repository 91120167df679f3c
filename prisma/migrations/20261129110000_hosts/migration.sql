-- The last measurement of the host of each region.
CREATE TABLE "hosts" (
    "region_id" TEXT NOT NULL,
    "measured_at" TIMESTAMPTZ(3),
    "measurement" JSONB,
    "error" TEXT,

    CONSTRAINT "hosts_pkey" PRIMARY KEY ("region_id"),
    CONSTRAINT "hosts_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "regions"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
