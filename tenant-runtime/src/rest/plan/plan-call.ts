// Plans a call of a function: chooses one of several with the same name, and plans what is read of its result. Pure.
import { nearest } from '@tenantry/contract'
import type { Catalog, Relation, Routine } from '../registry/catalog.ts'
import type { Query } from '../request/read-query.ts'
import { restError } from '../rest-error.ts'
import { defaultRows, maxRows, planRead } from './plan-read.ts'
import type { CallPlan, PlanScope } from './plan.ts'

/**
 * Returns the functions of a name.
 * @param call the call, if it was read
 * @throws RuntimeError NO_SUCH_COLLECTION (PGRST202) when the home has none
 */
export function routinesCalled({ routines, unserved, schema }: Catalog, name: string, call?: Call): readonly Routine[] {
  const found = routines.get(name)
  if (found !== undefined) return found
  const meant = nearest(name, routines.keys())
  const hint =
    meant !== undefined
      ? `Perhaps you meant to call the function ${schema}.${meant}`
      : unserved.has(name)
        ? undefined
        : 'A new function is available after POST /admin/reload-schemas.'
  throw noSuchRoutine(schema, name, call, hint)
}

/** The type of an unnamed argument that takes a whole body; undefined when there is no body. */
export type WholeBody = 'json' | 'text' | 'xml' | 'bytea' | undefined

/** The arguments of a call, and its body. */
interface Call {
  /** The names of its arguments. */
  names: readonly string[]
  whole: WholeBody
}

/**
 * Chooses the function that has exactly these arguments, and otherwise one with a single unnamed argument that takes the
 * body.
 * @throws RuntimeError when there is none (PGRST202), or several (PGRST203)
 */
export function chooseRoutine(
  { schema }: Catalog,
  routines: readonly Routine[],
  call: Call,
): { routine: Routine; isWhole: boolean } {
  const { names, whole } = call
  const isRaw = whole !== undefined && whole !== 'json'
  const all = isRaw ? [] : routines.filter((routine) => fits(routine, names))
  // A variadic function without its argument is only chosen when no other fits.
  const exact = all.filter((routine) =>
    routine.arguments.every(({ name, isVariadic, isOptional }) => !isVariadic || isOptional || names.includes(name)),
  )
  const named = exact.length > 0 ? exact : all
  const isWhole = named.length === 0
  const fitting = isWhole ? routines.filter((routine) => takes(routine, whole)) : named
  const [routine, other] = fitting
  if (other !== undefined) {
    throw restError('AMBIGUOUS', {
      code: 'PGRST203',
      message: `Could not choose the best candidate function between: ${fitting
        .map((one) => signature(schema, one))
        .sort()
        .join(', ')}`,
      hint: 'Try renaming the parameters or the function itself in the database so function overloading can be resolved',
    })
  }
  if (routine !== undefined) return { routine, isWhole }
  const name = routines[0]?.name ?? ''
  const meant = routines
    .map((routine) => routine.arguments.map((argument) => argument.name))
    .find((known) => known.some((argument) => argument !== '' && names.includes(argument)))
  throw noSuchRoutine(
    schema,
    name,
    call,
    meant === undefined ? undefined : `Perhaps you meant to call the function ${schema}.${name}(${meant.join(', ')})`,
  )
}

/** Whether the function takes a whole body of this type. */
export function takes({ arguments: [only, ...others] }: Routine, whole: WholeBody): boolean {
  if (whole === undefined || only?.name !== '' || others.length > 0) return false
  return whole === 'json' ? only.type === 'json' || only.type === 'jsonb' : only.type === whole
}

function fits(routine: Routine, given: readonly string[]): boolean {
  const names = new Set(routine.arguments.map(({ name }) => name))
  return (
    given.every((name) => names.has(name)) &&
    routine.arguments.every(({ name, isOptional, isVariadic }) => isOptional || isVariadic || given.includes(name))
  )
}

function signature(schema: string, { name, arguments: list }: Routine): string {
  return `${schema}.${name}(${list.map(({ name, type }) => `${name === '' ? '' : `${name} => `}${type}`).join(', ')})`
}

function noSuchRoutine(schema: string, name: string, call: Call | undefined, hint: string | undefined) {
  const { names, whole } = call ?? { names: [], whole: undefined }
  const isRaw = call === undefined || (whole !== undefined && whole !== 'json')
  const list = names.join(', ')
  const searched = [
    ...(isRaw
      ? []
      : [names.length === 0 ? 'without parameters' : `with parameter${names.length === 1 ? '' : 's'} ${list}`]),
    ...(whole === undefined ? [] : [`with a single unnamed ${whole === 'json' ? 'json/jsonb' : whole} parameter`]),
  ]
  return restError('NO_SUCH_COLLECTION', {
    code: 'PGRST202',
    message: `Could not find the function ${schema}.${name}${
      isRaw ? '' : names.length === 0 ? ' without parameters' : `(${list})`
    } in the schema cache`,
    ...(call === undefined
      ? {}
      : {
          details: `Searched for the function ${schema}.${name} ${searched.join(' or ')}, but no matches were found in the schema cache.`,
        }),
    ...(hint === undefined ? {} : { hint }),
  })
}

/**
 * Rejects the maximum number of changed rows for a function that does not return a set.
 * @throws RuntimeError INVALID_QUERY (PGRST128)
 */
export function checkMaxAffected({ returns }: Routine, maxAffected: number | undefined): void {
  if (maxAffected === undefined || returns.isSet) return
  throw restError('INVALID_QUERY', {
    code: 'PGRST128',
    message: 'Function must return SETOF or TABLE when max-affected preference is used with handling=strict',
  })
}

export function planCall(scope: PlanScope, routine: Routine, given: readonly string[], query: Query): CallPlan {
  const { limit, offset } = query.own
  const page = { limit: Math.min(limit ?? defaultRows, maxRows), offset: offset ?? 0 }
  const rows = rowsOf(scope.catalog, routine)
  if (rows === undefined) rejectColumns(routine, query)
  return { routine, given, page, read: rows === undefined ? undefined : planRead(scope, rows, query) }
}

/** Rejects columns in a query of a function whose columns are not known. */
function rejectColumns({ name }: Routine, { select, own, embedded }: Query): void {
  const selects = select?.some(({ kind }) => kind !== 'all') === true
  const [what] = [
    ...(selects ? ['select'] : []),
    ...(own.conditions.length > 0 ? ['filters'] : []),
    ...(own.order.length > 0 ? ['order'] : []),
    ...embedded.map(({ location }) => location.join('.')),
  ]
  if (what !== undefined)
    throw restError('INVALID_QUERY', {
      code: '42703',
      message: `The function "${name}" returns values, or rows with unknown columns, so the query cannot have ${what}.`,
    })
}

/** Returns the relation of the function's rows, if it is known. */
function rowsOf({ relations }: Catalog, { name, routine, returns }: Routine): Relation | undefined {
  const relation = returns.relation === undefined ? undefined : relations.get(returns.relation)
  if (relation !== undefined) return relation
  if (returns.columns.length === 0) return undefined
  const unknown = { nullable: true, default: undefined, writable: false, field: undefined } as const
  const columns = returns.columns.map((column) => [column.name, { ...column, ...unknown }] as const)
  return {
    name,
    table: routine,
    kind: 'view',
    columns: new Map(columns),
    computed: new Map(),
    computedRelationships: new Map(),
    key: [],
    unique: [],
    writable: 'no',
    ownerField: undefined,
    isOwnersOnly: false,
    changes: { insert: false, update: false, delete: false },
    comment: undefined,
  }
}
