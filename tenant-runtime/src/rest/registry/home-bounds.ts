// The bounds of what the runtime reads of a home's structure. A tenant can make its schemas and Postgres' catalogs large with
// SQL, so their size is checked before they are read into memory.
import type { Row } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'

/** The maximum bytes of all schemas of a home, as JSON texts; and of those that reloads have applied. */
export const maxSchemaBytes = 16 * 1024 * 1024

const bounds = [
  { column: 'columns', max: 100_000, what: 'columns and parameters of functions' },
  { column: 'parts', max: 50_000, what: 'constraints, indexes, triggers and policies' },
  { column: 'texts', max: 8 * 1024 * 1024, what: 'bytes of comments and defaults' },
] as const

/** A query for the sizes of the search path's schema: one row with the columns of `bounds`. */
export const homeSizeSql = `
with home as (select oid from pg_namespace where nspname = current_schema()),
relations as (select c.oid from pg_class c join home on c.relnamespace = home.oid where c.relkind in ('r', 'p', 'v', 'm', 'f')),
routines as (select p.* from pg_proc p join home on p.pronamespace = home.oid)
select
  (select count(*) from pg_attribute join relations on oid = attrelid where attnum > 0)
    + (select coalesce(sum(coalesce(cardinality(proallargtypes), pronargs)), 0) from routines) as columns,
  (select count(*) from pg_constraint k join home on k.connamespace = home.oid where contype <> 'n')
    + (select count(*) from pg_index join relations on oid = indrelid)
    + (select count(*) from pg_trigger g join relations r on r.oid = tgrelid where not tgisinternal)
    + (select count(*) from pg_policy p join relations r on r.oid = polrelid) as parts,
  (select coalesce(sum(octet_length(pg_get_expr(adbin, adrelid))), 0) from pg_attrdef d join relations r on r.oid = adrelid)
    + (select coalesce(sum(octet_length(description)), 0) from pg_description
      where (classoid = 'pg_class'::regclass and objoid in (select oid from relations))
        or (classoid = 'pg_proc'::regclass and objoid in (select oid from routines))) as texts`

/** A condition on a row of `homeSizeSql`. */
export const isWithinSql = bounds.map(({ column, max }) => `${column} <= ${max}`).join(' and ')

/** Checks a row of `homeSizeSql`. @throws RuntimeError QUOTA_EXCEEDED with `limit` and `used` */
export function requireBounded(size: Row | undefined): void {
  for (const { column, max, what } of bounds) {
    const used = Number(size?.[column])
    if (used > max)
      throw new RuntimeError('QUOTA_EXCEEDED', `The home has ${used} ${what}. Allowed: ${max}.`, {
        extra: { limit: max, used },
      })
  }
}

/** Checks the bytes of schemas. @throws RuntimeError QUOTA_EXCEEDED with `limit` and `used` */
export function requireBoundedSchemas(bytes: number, which: 'schemas' | 'applied schemas'): void {
  if (bytes > maxSchemaBytes)
    throw new RuntimeError('QUOTA_EXCEEDED', `The ${which} have ${bytes} bytes. Allowed: ${maxSchemaBytes}.`, {
      extra: { limit: maxSchemaBytes, used: bytes },
    })
}
