-- The encoding in which an object's bytes were uploaded, for example gzip. A download states it; the bytes are never decoded.
alter table {{schema}}.storage_objects
  add column content_encoding text constraint object_content_encoding check (content_encoding ~ '^[A-Za-z0-9_, -]{1,100}$');
