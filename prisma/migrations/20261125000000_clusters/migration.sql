-- Credentials of the etcd in which the clusters of a region elect their primaries.
ALTER TABLE "regions" ADD COLUMN "etcd_credentials" BYTEA;
