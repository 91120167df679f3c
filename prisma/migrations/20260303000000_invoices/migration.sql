-- Invoices, the price lists that they were made by, and who is invoiced. Kept after the tenant is gone.

CREATE TABLE "invoices" (
    "id" UUID NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "month" TIMESTAMPTZ(0) NOT NULL,
    "revision" INTEGER NOT NULL,
    "state" TEXT NOT NULL,
    "number" INTEGER,
    "label" TEXT,
    "content" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "final_at" TIMESTAMPTZ(3),
    "voided_at" TIMESTAMPTZ(3),
    "void_reason" TEXT,

    CONSTRAINT "invoices_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "invoices_state" CHECK ("state" IN ('draft', 'final', 'void')),
    CONSTRAINT "invoices_month" CHECK ("month" = date_trunc('month', "month", 'UTC')),
    -- A number is given when an invoice becomes final and stays with it; a draft is removed, never made void.
    CONSTRAINT "invoices_number" CHECK (("state" = 'draft') = ("number" IS NULL) AND ("number" IS NULL) = ("label" IS NULL) AND ("number" IS NULL) = ("final_at" IS NULL)),
    CONSTRAINT "invoices_void" CHECK (("state" = 'void') = ("voided_at" IS NOT NULL) AND ("voided_at" IS NULL) = ("void_reason" IS NULL))
);

CREATE TABLE "invoice_numbers" (
    "id" INTEGER NOT NULL DEFAULT 1,
    "last" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "invoice_numbers_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "invoice_numbers_one_row" CHECK ("id" = 1)
);
INSERT INTO "invoice_numbers" DEFAULT VALUES;

CREATE TABLE "invoiced_months" (
    "month" TIMESTAMPTZ(0) NOT NULL,
    "finished_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "invoiced_months_pkey" PRIMARY KEY ("month")
);

CREATE TABLE "price_lists" (
    "sha256" TEXT NOT NULL,
    "text" TEXT NOT NULL,
    "first_used_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "price_lists_pkey" PRIMARY KEY ("sha256")
);

CREATE TABLE "buyers" (
    "tenant_id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "lines" JSONB NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "buyers_pkey" PRIMARY KEY ("tenant_id")
);

CREATE UNIQUE INDEX "invoices_number_key" ON "invoices"("number");
CREATE UNIQUE INDEX "invoices_tenant_id_month_revision_key" ON "invoices"("tenant_id", "month", "revision");
CREATE INDEX "invoices_month_state_idx" ON "invoices"("month", "state");
CREATE INDEX "invoices_created_at_id_idx" ON "invoices"("created_at", "id");

-- What was sent to a customer never changes: a final invoice can be made void, and nothing else.
CREATE FUNCTION invoices_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' OR (TG_OP = 'DELETE' AND OLD."state" <> 'draft') THEN
        RAISE EXCEPTION 'invoices are kept';
    END IF;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    IF OLD."state" = 'draft' OR (
        OLD."state" = 'final' AND NEW."state" = 'void' AND
        (OLD."id", OLD."tenant_id", OLD."month", OLD."revision", OLD."number", OLD."label", OLD."content", OLD."created_at", OLD."final_at")
            = (NEW."id", NEW."tenant_id", NEW."month", NEW."revision", NEW."number", NEW."label", NEW."content", NEW."created_at", NEW."final_at")
    ) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'an invoice that is final or void does not change';
END $$;
CREATE TRIGGER "invoices_stay" BEFORE UPDATE OR DELETE ON "invoices" FOR EACH ROW EXECUTE FUNCTION invoices_stay();
CREATE TRIGGER "invoices_stay_all" BEFORE TRUNCATE ON "invoices" FOR EACH STATEMENT EXECUTE FUNCTION invoices_stay();
