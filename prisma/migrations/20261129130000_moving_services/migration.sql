-- Services of another isolation model that a tenant has during a move between two kinds of its own services.
alter table tenants add column moving_services jsonb;
