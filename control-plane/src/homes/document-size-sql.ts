// SQL that measures the documents of homes by the sizes of their files. Pure; `home-databases.ts` runs it.
//
// It opens no table, so that it waits for no lock of a tenant. A table that an open transaction has created is not in the
// catalog yet, but its creator holds a lock on it, and its file has the number of the table.

/** Bytes of a full file of a relation. A larger relation has several. */
const fileBytes = 2 ** 30

/** Returns the number of files of a relation that are measured, which is enough to exceed the limit. */
export function measuredFiles(limitBytes: number): number {
  return Math.ceil(limitBytes / fileBytes) + 1
}

/**
 * SQL of the bytes of homes in this database. Its parameters are the IDs of the tenants, and the number of files of a
 * relation.
 */
export const documentSizesSql = `
  with homes as materialized (
    select id, to_regrole(id || '_owner')::oid as owner from unnest($1::text[]) as id),
  logins as materialized (
    select pid, id from pg_stat_get_activity(null) join pg_roles on pg_roles.oid = usesysid
      join homes on rolname in (id, id || '_admin', id || '_ddl')),
  paths as (
    select id, pg_relation_filepath(pg_class.oid) as path from homes join pg_class on relowner = owner
    union
    select id, 'base/' || database || '/' || relation from pg_lock_status() join logins using (pid)
    where locktype = 'relation' and database = (select oid from pg_database where datname = current_database())
      and not exists (select from pg_class where pg_class.oid = relation))
  select id as "tenantId", coalesce(sum((pg_stat_file(path || case nth when 0 then '' else '.' || nth end, true)).size), 0)::float8
    as bytes
  from paths cross join generate_series(0, $2::int - 1) as nth where path is not null group by id`
