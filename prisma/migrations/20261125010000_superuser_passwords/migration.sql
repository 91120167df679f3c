-- The sealed password that the superuser of a region's shared Postgres gets; null: none is being set.
ALTER TABLE "regions" ADD COLUMN "next_superuser_password" BYTEA;
-- The sealed password that the server began with, which its container has; null: the current one.
ALTER TABLE "regions" ADD COLUMN "first_superuser_password" BYTEA;
-- The fingerprint of the password that the superuser of an operator's shared Postgres has.
ALTER TABLE "regions" ADD COLUMN "superuser_password_id" TEXT;
-- The fingerprint of the password that the superuser of the control database's Postgres has.
ALTER TABLE "installation" ADD COLUMN "superuser_password_id" TEXT;
