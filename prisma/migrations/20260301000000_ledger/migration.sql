-- Usage that can be checked: histograms of latencies.

ALTER TABLE "usage_counters" ADD COLUMN "bucket" TEXT NOT NULL DEFAULT '';
ALTER TABLE "usage_counters" ALTER COLUMN "bucket" DROP DEFAULT;
ALTER TABLE "usage_counters"
    DROP CONSTRAINT "usage_counters_pkey",
    ADD CONSTRAINT "usage_counters_pkey" PRIMARY KEY ("tenant_id","hour","meter","group","method","status_class","bucket","source","boot");
