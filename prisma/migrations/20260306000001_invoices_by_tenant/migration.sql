-- Invoices are looked for by tenant. While a month's invoices are made, what Postgres knows of the table does not have that month
-- yet: it took this index for the smaller one, and read the whole month for each batch.
DROP INDEX "invoices_month_state_idx";
