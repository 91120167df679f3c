-- Credits and one-time charges that an operator gives a tenant: each becomes a line of one invoice.

-- `amount_micro` is net, in millionths of the currency's unit; below zero is a credit. `invoice_id` is the draft or final
-- invoice that it stands on: a draft that is removed and an invoice that is made void set it free.
CREATE TABLE "adjustments" (
    "id" UUID NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "description" TEXT NOT NULL,
    "amount_micro" BIGINT NOT NULL,
    "currency" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "invoice_id" UUID,

    CONSTRAINT "adjustments_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "adjustments_amount" CHECK ("amount_micro" <> 0),
    CONSTRAINT "adjustments_invoice_id_fkey" FOREIGN KEY ("invoice_id") REFERENCES "invoices"("id") ON DELETE SET NULL ON UPDATE CASCADE
);
CREATE INDEX "adjustments_tenant_id_created_at_id_idx" ON "adjustments"("tenant_id", "created_at", "id");
CREATE INDEX "adjustments_invoice_id_idx" ON "adjustments"("invoice_id");

-- One that stands on a final invoice stays with it, and none ever says another thing than it said.
CREATE FUNCTION adjustments_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'adjustments are kept';
    END IF;
    IF EXISTS (SELECT FROM "invoices" WHERE "id" = OLD."invoice_id" AND "state" = 'final') THEN
        RAISE EXCEPTION 'an adjustment that was billed does not change';
    END IF;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    IF (OLD."id", OLD."tenant_id", OLD."description", OLD."amount_micro", OLD."currency", OLD."created_at")
        <> (NEW."id", NEW."tenant_id", NEW."description", NEW."amount_micro", NEW."currency", NEW."created_at") THEN
        RAISE EXCEPTION 'what an adjustment says does not change';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER "adjustments_stay" BEFORE UPDATE OR DELETE ON "adjustments" FOR EACH ROW EXECUTE FUNCTION adjustments_stay();
CREATE TRIGGER "adjustments_stay_all" BEFORE TRUNCATE ON "adjustments" FOR EACH STATEMENT EXECUTE FUNCTION adjustments_stay();
