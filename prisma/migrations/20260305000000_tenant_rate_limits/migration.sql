-- How fast one tenant may ask at each gateway, instead of its plan's; none of the three set is the plan's.
ALTER TABLE "tenants"
    ADD COLUMN "rate_per_second" INTEGER,
    ADD COLUMN "rate_burst" INTEGER,
    ADD COLUMN "rate_unlimited" BOOLEAN NOT NULL DEFAULT false,
    ADD CONSTRAINT "tenants_rate" CHECK (("rate_per_second" IS NULL) = ("rate_burst" IS NULL) AND "rate_per_second" > 0 AND "rate_burst" > 0),
    ADD CONSTRAINT "tenants_rate_unlimited" CHECK (NOT "rate_unlimited" OR "rate_per_second" IS NULL);
