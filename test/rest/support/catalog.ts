// Reads Postgres' catalog of a tenant's tables.
import type { TestTenant } from '#test/support/runtime.ts'

/** Returns everything that a reload could change, from the catalog. */
export async function catalog(tenant: TestTenant): Promise<unknown[]> {
  return [
    await tenant.rows('select name, definition, published, applied_at from applied_schemas order by name'),
    await tenant.rows(
      `select c.oid, c.relname, c.relfilenode, c.relrowsecurity, c.xmin from pg_class c
        where relnamespace = $1::regnamespace order by c.oid`,
      [tenant.home.schema],
    ),
    await tenant.rows(
      `select a.attrelid, a.attname, a.attnotnull, a.xmin from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace = $1::regnamespace order by 1, 2`,
      [tenant.home.schema],
    ),
    await tenant.rows(
      'select oid, conname, pg_get_constraintdef(oid), xmin from pg_constraint where connamespace = $1::regnamespace order by oid',
      [tenant.home.schema],
    ),
    await tenant.rows(
      `select p.oid, polname, polcmd, p.xmin from pg_policy p join pg_class c on c.oid = p.polrelid
        where c.relnamespace = $1::regnamespace order by 1`,
      [tenant.home.schema],
    ),
  ]
}
