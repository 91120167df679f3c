-- The fingerprint of the master key that seals all values.
ALTER TABLE "installation" ADD COLUMN "master_key_id" TEXT;

-- The sealed password of the superuser of a region's shared Postgres. It was derived from the master key.
ALTER TABLE "regions" ADD COLUMN "superuser_password" BYTEA;
