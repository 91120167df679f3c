-- A region may have several hosts.
ALTER TABLE "hosts" ADD COLUMN "host_id" TEXT NOT NULL DEFAULT '';
ALTER TABLE "hosts" DROP CONSTRAINT "hosts_pkey";
ALTER TABLE "hosts" ADD CONSTRAINT "hosts_pkey" PRIMARY KEY ("region_id", "host_id");
