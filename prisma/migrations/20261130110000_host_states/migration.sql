-- Hosts that receive no services, because they are being emptied or are lost.
CREATE TABLE "host_states" (
    "region_id" TEXT NOT NULL,
    "host_id" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "is_automatic" BOOLEAN NOT NULL DEFAULT false,
    "since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "host_states_pkey" PRIMARY KEY ("region_id", "host_id"),
    CONSTRAINT "host_states_state_check" CHECK ("state" IN ('draining', 'lost')),
    CONSTRAINT "host_states_region_id_fkey" FOREIGN KEY ("region_id") REFERENCES "regions"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
