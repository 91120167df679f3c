// A function of the control plane in a database of homes, which the logins of homes may call without arguments. Pure.
import { literal } from '../platform/identifiers.ts'
import { controlSchema, createControlSchemaSql } from './control-schema.ts'
import { tenantsGroup } from './home-sql.ts'

/** The form of a function. */
interface FunctionForm {
  /** Its name, without the schema. */
  name: string
  body: string
  /**
   * Returns statements that create it, or replace another version.
   * @param qualified its name, with the schema
   * @param text the literal of its body
   */
  create: (qualified: string, text: string) => string
}

/** The SQL of a function. */
export interface ControlFunction {
  /** SQL that lists, in a column `problem`, whether the function is missing. Any login may run it. */
  missingSql: string
  /** SQL that creates the function in the current database, as superuser. It writes nothing if this version exists. */
  creationSql: string
}

/** Returns the SQL of a function. It is this version if its body is the same. */
export function controlFunction({ name, body, create }: FunctionForm): ControlFunction {
  const qualified = `${controlSchema}.${name}`
  const text = literal(body)
  const existsSql = `exists (select from pg_catalog.pg_proc where oid = to_regprocedure('${qualified}()') and prosrc = ${text})`
  return {
    missingSql: `select 'the function ${qualified} is missing' as problem where not ${existsSql}`,
    creationSql: `do $control$
begin
  if not ${existsSql} then
    ${createControlSchemaSql}
    ${create(qualified, text)}
    revoke execute on function ${qualified}() from public;
  end if;
  if not has_schema_privilege('${tenantsGroup}', '${controlSchema}', 'usage')
    or not has_function_privilege('${tenantsGroup}', '${qualified}()', 'execute') then
    grant usage on schema ${controlSchema} to ${tenantsGroup};
    grant execute on function ${qualified}() to ${tenantsGroup};
  end if;
end $control$`,
  }
}
