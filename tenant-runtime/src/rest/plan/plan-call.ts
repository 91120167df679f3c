// Plans a call of a function: chooses one of several with the same name, and plans what is read of its result. Pure.
import { nearest } from '@tenantry/contract'
import type { Catalog, Relation, Routine } from '../registry/catalog.ts'
import type { Query } from '../request/read-query.ts'
import { restError } from '../rest-error.ts'
import { defaultRows, maxRows, planRead } from './plan-read.ts'
import type { CallPlan, PlanScope } from './plan.ts'

/**
 * Returns the functions of a name.
 * @throws RuntimeError NO_SUCH_COLLECTION (PGRST202) when the home has none
 */
export function routinesCalled(catalog: Catalog, name: string): readonly Routine[] {
  const found = catalog.routines.get(name)
  if (found !== undefined) return found
  const meant = nearest(name, catalog.routines.keys())
  throw noSuchRoutine(
    name,
    undefined,
    meant === undefined
      ? 'A new function is available after POST /admin/reload-schemas.'
      : `Perhaps you meant to call the function ${meant}`,
  )
}

/**
 * Chooses the function that has exactly these arguments.
 * @throws RuntimeError when there is none (PGRST202), or several (PGRST203)
 */
export function chooseRoutine(routines: readonly Routine[], given: readonly string[], takesWhole: boolean): Routine {
  const all = routines.filter((routine) => fits(routine, given))
  // A variadic function without its argument is only chosen when no other fits.
  const exact = all.filter((routine) =>
    routine.arguments.every(({ name, isVariadic, isOptional }) => !isVariadic || isOptional || given.includes(name)),
  )
  const fitting = exact.length > 0 ? exact : all
  const [first, second] = fitting
  if (second !== undefined) {
    throw restError('AMBIGUOUS', {
      code: 'PGRST203',
      message: `Could not choose the best candidate function between: ${fitting.map(signature).sort().join(', ')}`,
      hint: 'Try renaming the parameters or the function itself in the database so function overloading can be resolved',
    })
  }
  const whole = takesWhole ? routines.find((routine) => isWhole(routine)) : undefined
  const chosen = first ?? whole
  if (chosen !== undefined) return chosen
  throw noSuchRoutine(
    routines[0]?.name ?? '',
    given,
    `Perhaps you meant to call the function ${routines.map(signature).join(' or ')}`,
  )
}

export function isWhole({ arguments: [only, ...others] }: Routine): boolean {
  return only?.name === '' && others.length === 0
}

function fits(routine: Routine, given: readonly string[]): boolean {
  if (isWhole(routine)) return false
  const names = new Set(routine.arguments.map(({ name }) => name))
  return (
    given.every((name) => names.has(name)) &&
    routine.arguments.every(({ name, isOptional, isVariadic }) => isOptional || isVariadic || given.includes(name))
  )
}

function signature({ name, arguments: list }: Routine): string {
  return `${name}(${list.map(({ name, type }) => `${name === '' ? '' : `${name} => `}${type}`).join(', ')})`
}

function noSuchRoutine(name: string, given: readonly string[] | undefined, hint: string) {
  const argumentList = given === undefined ? '' : given.length === 0 ? ' without parameters' : `(${given.join(', ')})`
  return restError('NO_SUCH_COLLECTION', {
    code: 'PGRST202',
    message: `Could not find the function ${name}${argumentList} in the schema cache`,
    hint,
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
function rowsOf({ relations }: Catalog, { name, returns }: Routine): Relation | undefined {
  const relation = returns.relation === undefined ? undefined : relations.get(returns.relation)
  if (relation !== undefined) return relation
  if (returns.columns.length === 0) return undefined
  const unknown = { nullable: true, default: undefined, writable: false, field: undefined } as const
  const columns = returns.columns.map((column) => [column.name, { ...column, ...unknown }] as const)
  return {
    name,
    kind: 'view',
    columns: new Map(columns),
    key: [],
    unique: [],
    writable: 'no',
    ownerField: undefined,
    isOwnersOnly: false,
    comment: undefined,
  }
}
