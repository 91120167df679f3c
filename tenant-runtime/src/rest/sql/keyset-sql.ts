// Pages by keys as SQL: a list with the keys of its last row. Pure.
import type { Statement } from '../../database/statement.ts'
import type { KeysetPage } from '../plan/plan-keyset.ts'
import { columnsOf } from '../plan/plan.ts'
import type { Format } from '../request/read-accept.ts'
import { bodySql, statementOf, totalSql, type Count } from './response-sql.ts'
import { identifier } from './names.ts'
import { Parameters } from './parameters.ts'
import { pathSql } from './path-sql.ts'
import { selectSql, sourceOf } from './select-sql.ts'

/**
 * Returns a list's statement with another column `last`: the keys of the last row as a JSON array of texts; null for an
 * empty page.
 */
export function keysetStatement({ plan, terms }: KeysetPage, format: Format, count: Count): Statement {
  const parameters = new Parameters()
  const source = sourceOf(plan.relation)
  const rows = selectSql(plan, source, parameters, 'positions', (table) =>
    terms.map(({ path }, n) => `${pathSql(table, path, parameters)}::text as k${n}`),
  )
  const keys = terms.map((_, n) => `r.k${n}`).join(', ')
  const columns = columnsOf(plan.fields)
  const visible = `(select ${columns.map(({ name }, n) => `r.c${n} as ${identifier(name)}`).join(', ')}) v`
  const csvRow = `row(${columns.map((_, n) => `r.c${n}`).join(', ')})`
  const total = totalSql(
    { ...plan, where: plan.where.filter(({ kind }) => kind !== 'after') },
    source,
    count,
    parameters,
  )
  // The keys accompany each row, but are not part of its JSON.
  const body = bodySql(format, `(select row_to_json(v.*) from ${visible})`, csvRow)
  const last = `(array_agg(json_build_array(${keys})::text))[count(*)] as last`
  return statementOf(plan, `select ${body} as body, count(*) as n, ${last}${total} from (${rows}) r`, parameters)
}
