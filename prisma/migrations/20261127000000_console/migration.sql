-- Sessions of the web console. A session ends with its platform key, and is never valid for longer than the key.
CREATE TABLE "console_sessions" (
    "id" UUID NOT NULL,
    "platform_key_id" UUID NOT NULL,
    "sha256" TEXT NOT NULL,
    "address" TEXT NOT NULL,
    "user_agent" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "seen_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "revoked_at" TIMESTAMPTZ(3),

    CONSTRAINT "console_sessions_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "console_sessions_platform_key_id_fkey" FOREIGN KEY ("platform_key_id")
      REFERENCES "platform_keys"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE UNIQUE INDEX "console_sessions_sha256_key" ON "console_sessions"("sha256");
CREATE INDEX "console_sessions_created_at_id_idx" ON "console_sessions"("created_at", "id");
CREATE INDEX "console_sessions_platform_key_id_idx" ON "console_sessions"("platform_key_id");

-- A search for a part of a name reads this index only, in the order of the list.
CREATE INDEX "tenants_created_at_id_name_idx" ON "tenants"("created_at", "id", "name");
DROP INDEX "tenants_created_at_id_idx";

-- The few tenants with a condition that needs attention. The query in control-plane/src/fleet/store.ts repeats its text.
CREATE INDEX "tenants_attention_idx" ON "tenants"("id") WHERE conditions @? '$[*] ? (@.type == "Drift" || @.type == "Disk" || @.type == "Loss" || ((@.type == "Backup" || @.type == "Sql" || @.type == "Quorum" || @.type == "Replicating") && @.status == "False"))';
