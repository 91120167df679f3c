-- The conditions of the regions, which the leading control plane records, so that each control plane can show them.
CREATE TABLE "region_conditions" (
    "region_id" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "message" TEXT NOT NULL,
    "observed_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "region_conditions_pkey" PRIMARY KEY ("region_id", "type"),
    CONSTRAINT "region_conditions_type_check" CHECK ("type" IN ('Ready', 'Encrypted')),
    CONSTRAINT "region_conditions_status_check" CHECK ("status" IN ('True', 'False')),
    CONSTRAINT "region_conditions_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "regions"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
