-- The schedule of proofs: until when a tenant's planned times were followed, and its last proven backup.
ALTER TABLE "tenants"
    ADD COLUMN "proof_seen_at" TIMESTAMPTZ(3),
    ADD COLUMN "proven_at" TIMESTAMPTZ(3),
    ADD COLUMN "proven_backup_id" UUID;
