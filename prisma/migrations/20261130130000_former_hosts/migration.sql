-- A restore on another host records the lost one, to which the tenant returns if the restore fails.
ALTER TABLE "placements" ADD COLUMN "former_host_id" TEXT;
