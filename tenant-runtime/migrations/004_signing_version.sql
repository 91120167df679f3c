-- What signed URLs of a bucket carry: raising it ends all that were made before.

alter table storage_buckets add column signing_version bigint not null default 1 check (signing_version >= 1);
