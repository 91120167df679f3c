-- The fingerprint of the internal token that the parts of the installation send.
ALTER TABLE "installation" ADD COLUMN "internal_token_id" TEXT;
