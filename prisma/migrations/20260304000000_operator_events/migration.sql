-- What operators' webhooks are told. An event is written in the transaction of what it tells, and handed to the endpoints later.
CREATE TABLE "operator_events" (
    "id" UUID NOT NULL,
    "type" TEXT NOT NULL,
    "tenant_id" TEXT,
    "once" TEXT,
    "data" JSONB NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "handed_out" BOOLEAN NOT NULL DEFAULT false,

    CONSTRAINT "operator_events_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "operator_events_once_key" ON "operator_events"("once");
CREATE INDEX "operator_events_handed_out_idx" ON "operator_events"("handed_out");
CREATE INDEX "operator_events_at_id_idx" ON "operator_events"("at", "id");

-- `secret` is sealed with the master key; no types are all types.
CREATE TABLE "webhook_endpoints" (
    "id" UUID NOT NULL,
    "url" TEXT NOT NULL,
    "description" TEXT NOT NULL DEFAULT '',
    "types" JSONB NOT NULL DEFAULT '[]',
    "secret" BYTEA NOT NULL,
    "former_secret" BYTEA,
    "former_until" TIMESTAMPTZ(3),
    "disabled" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_endpoints_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "webhook_endpoints_disabled" CHECK ("disabled" IN ('operator', 'gone')),
    CONSTRAINT "webhook_endpoints_former" CHECK (("former_secret" IS NULL) = ("former_until" IS NULL))
);
CREATE INDEX "webhook_endpoints_created_at_id_idx" ON "webhook_endpoints"("created_at", "id");

-- One for each event and endpoint.
CREATE TABLE "webhook_deliveries" (
    "id" UUID NOT NULL,
    "event_id" UUID NOT NULL,
    "endpoint_id" UUID NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'pending',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "next_at" TIMESTAMPTZ(3) NOT NULL,
    "last_at" TIMESTAMPTZ(3),
    "last_status" INTEGER,
    "last_error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_deliveries_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "webhook_deliveries_state" CHECK ("state" IN ('pending', 'delivered', 'dead')),
    CONSTRAINT "webhook_deliveries_attempts" CHECK ("attempts" >= 0)
);
CREATE UNIQUE INDEX "webhook_deliveries_event_id_endpoint_id_key" ON "webhook_deliveries"("event_id", "endpoint_id");
CREATE INDEX "webhook_deliveries_state_next_at_idx" ON "webhook_deliveries"("state", "next_at");
CREATE INDEX "webhook_deliveries_endpoint_id_created_at_id_idx" ON "webhook_deliveries"("endpoint_id", "created_at", "id");
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_event_id_fkey" FOREIGN KEY ("event_id") REFERENCES "operator_events"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_endpoint_id_fkey" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoints"("id") ON DELETE CASCADE ON UPDATE CASCADE;
