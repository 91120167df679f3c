// What a plan reads with functions of the tenant: computed fields, and computed relationships. Pure.
import type { Column } from '../registry/catalog.ts'
import { isCastOfHome } from './cast-types.ts'
import { columnsOf, type PlannedCondition, type PlannedOrder, type ReadPlan } from './plan.ts'

/** Returns the computed fields of the plan's own rows, each once. */
export function computedFields(plan: Pick<ReadPlan, 'fields' | 'where' | 'order'>): Column[] {
  const found = new Set<Column>()
  const add = (column: Column | undefined) => {
    if (column?.computed !== undefined) found.add(column)
  }
  const addOrder = ({ path, by }: PlannedOrder) => add(by === undefined ? path.column : undefined)
  const addCondition = (condition: PlannedCondition): void => {
    if (condition.kind === 'test') add(condition.path.column)
    else if (condition.kind === 'after') condition.terms.forEach(addOrder)
    else if ('members' in condition) condition.members.forEach(addCondition)
  }
  for (const field of plan.fields) if (field.kind === 'value') add(field.path?.column)
  plan.where.forEach(addCondition)
  plan.order.forEach(addOrder)
  return [...found]
}

/** Whether the plan's own rows have a computed relationship, whose function takes the whole row. */
export function needsRow({ embeddings }: Pick<ReadPlan, 'embeddings'>): boolean {
  return embeddings.some(({ relationship }) => relationship.computed !== undefined)
}

/** Whether the plan runs a function that is not declared to change nothing, or a cast to a type of the home. */
export function mayChange(plan: ReadPlan): boolean {
  return (
    computedMayChange(plan) ||
    columnsOf(plan.fields).some(({ cast, aggregateCast }) => isCastOfHome(cast) || isCastOfHome(aggregateCast)) ||
    plan.order.some(({ path }) => path.column.computed?.isReading === false) ||
    plan.embeddings.some(({ relationship, plan }) => relationship.computed?.isReading === false || mayChange(plan))
  )
}

/** Whether the plan reads a view, whose query may call any function. */
export function readsViews({ relation, embeddings }: Pick<ReadPlan, 'relation' | 'embeddings'>): boolean {
  return relation.kind === 'view' || embeddings.some(({ plan }) => readsViews(plan))
}

function computedMayChange(plan: ReadPlan): boolean {
  return plan.relation.computed.size > 0 && computedFields(plan).some(({ computed }) => computed?.isReading === false)
}
