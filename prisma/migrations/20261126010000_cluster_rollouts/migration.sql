-- Rollouts of the image of clusters' members.
ALTER TABLE "rollouts"
    DROP CONSTRAINT "rollouts_component",
    ADD CONSTRAINT "rollouts_component" CHECK ("component" IN ('runtime', 'postgres', 'cluster-member'));
