-- The leader polls the moves every second.
CREATE INDEX "operations_kind_created_at_id_idx" ON "operations"("kind", "created_at", "id") WHERE "kind" = 'move';
