// The rollouts' ledger on the control database, for the leader. Each step is one transaction.
import { isReady, isResting, isReturnable, type RolloutStep } from './rollout-plan.ts'
import {
  isolationsWith,
  type MovedTenant,
  type Rollout,
  type RolloutComponent,
  type RolloutSubject,
} from './rollout.ts'
import { type Desired, type OperationKind, type Status, incrementGeneration } from '../tenants/index.ts'
import type { Isolation } from '../stacks/index.ts'
import type { Database, Prisma, Transaction } from '../platform/database.ts'
import { emitOperatorEvent } from '../webhooks/index.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { Lock } from '../platform/locks.ts'
import { fromMoved, toRollout } from './store-rows.ts'
import { openStates } from './store.ts'

/**
 * The leader's interface of the store of rollouts. Every write is one transaction under the leader's epoch. @throws
 * LeadershipLost
 */
export type RolloutLedger = ReturnType<typeof createRolloutLedger>

/** Creates the leader's part of the store of rollouts, on the control database. */
export function createRolloutLedger(database: Database, now: () => Date) {
  return {
    /** Returns the rollouts that have not ended. */
    async open(): Promise<Rollout[]> {
      return (
        await database.rollout.findMany({ where: { state: { in: openStates } }, orderBy: { createdAt: 'asc' } })
      ).map(toRollout)
    },

    /**
     * Returns the tenants of a rollout's region with services of their own, the oldest first, without those that are warm
     * or being deleted.
     */
    subjects: (rollout: Rollout): Promise<RolloutSubject[]> => subjectsOf(database, rollout),

    /**
     * Takes a step. It checks the step's tenants again and leaves out those that have changed.
     * @param rollout state in which the step was planned
     * @returns the rollout after the step; undefined if its state had changed
     */
    take: (rollout: Rollout, step: Exclude<RolloutStep, { do: 'wait' }>, epoch: bigint): Promise<Rollout | undefined> =>
      ledWrite(database, epoch, [`rollout:${rollout.id}`, ...tenantsOf(step)], async (transaction) => {
        // An operator may have cancelled the rollout.
        const { count } = await transaction.rollout.updateMany({
          where: { id: rollout.id, state: rollout.state },
          data: { state: rollout.state },
        })
        if (count === 0) return undefined
        const data = await carryOut(transaction, rollout, step, now())
        await reportFailure(transaction, rollout, step, now())
        return toRollout(await transaction.rollout.update({ where: { id: rollout.id }, data }))
      }),
  }
}

/** Writes the event of a rollout that ends without success. */
async function reportFailure(transaction: Transaction, rollout: Rollout, step: TakenStep, at: Date): Promise<void> {
  if (step.do !== 'finish' || (step.state !== 'rolled_back' && step.state !== 'failed')) return
  const { id, region, component, image } = rollout
  const data = { rollout_id: id, region, component, image, state: step.state, message: step.error ?? '' }
  await emitOperatorEvent(transaction, { type: 'rollout.failed', data }, at, `rollout:${id}`)
}

type TakenStep = Exclude<RolloutStep, { do: 'wait' }>

/** Returns the locks of the tenants that the step changes. */
function tenantsOf(step: TakenStep): Lock[] {
  return step.do === 'move' || step.do === 'return' ? step.tenantIds.map((id): Lock => `tenant:${id}`) : []
}

async function carryOut(
  transaction: Transaction,
  rollout: Rollout,
  step: TakenStep,
  at: Date,
): Promise<Prisma.RolloutUncheckedUpdateInput> {
  switch (step.do) {
    case 'record':
      return { tenants: step.tenants.map(fromMoved) }
    case 'move':
      return move(transaction, rollout, step, at)
    case 'roll-back':
      return { state: 'rolling_back', error: step.error }
    case 'return':
      return { tenants: (await returnTenants(transaction, rollout, step.tenantIds, at)).map(fromMoved) }
    case 'finish':
      return { state: step.state, error: step.error ?? null, finishedAt: at }
  }
}

/** Moves tenants. Their former images are recorded in the transaction that replaces them. */
async function move(
  transaction: Transaction,
  rollout: Rollout,
  { wave, tenantIds }: Extract<TakenStep, { do: 'move' }>,
  at: Date,
) {
  const isMovable = wave === 0 ? isResting : isReady
  const subjects = (await subjectsOf(transaction, rollout)).filter(
    (subject) => tenantIds.includes(subject.id) && isMovable(subject),
  )
  const moved: MovedTenant[] = []
  for (const { id, image } of subjects) {
    if (image === undefined) continue
    const generation = await setImage(transaction, id, rollout.component, rollout.imageId, at)
    moved.push({
      tenantId: id,
      from: image,
      wave,
      state: wave === 0 ? 'moved' : 'moving',
      generation,
      movedAt: at,
      wellSince: undefined,
    })
  }
  return {
    wave: moved.length === 0 ? rollout.wave : Math.max(rollout.wave, wave),
    tenants: [...rollout.tenants, ...moved].map(fromMoved),
  }
}

async function returnTenants(
  transaction: Transaction,
  rollout: Rollout,
  tenantIds: readonly string[],
  at: Date,
): Promise<MovedTenant[]> {
  const subjects = new Map((await subjectsOf(transaction, rollout)).map((subject) => [subject.id, subject]))
  const tenants: MovedTenant[] = []
  for (const moved of rollout.tenants) {
    const subject = tenantIds.includes(moved.tenantId) ? subjects.get(moved.tenantId) : undefined
    if (subject === undefined || !isReturnable(subject)) tenants.push(moved)
    // An operator has set another image meanwhile.
    else if (subject.image !== rollout.imageId) tenants.push({ ...moved, state: 'returned' })
    else {
      const generation = await setImage(transaction, subject.id, rollout.component, moved.from, at)
      tenants.push({ ...moved, state: 'returning', generation, movedAt: at, wellSince: undefined })
    }
  }
  return tenants
}

/** Sets a tenant's image. @returns the tenant's new generation */
function setImage(
  transaction: Transaction,
  id: string,
  component: RolloutComponent,
  image: string,
  at: Date,
): Promise<number> {
  return incrementGeneration(
    transaction,
    id,
    'upgrade',
    component === 'runtime' ? { runtimeImage: image } : { postgresImage: image },
    at,
  )
}

interface SubjectRow {
  id: string
  isolation: Isolation
  desired: Desired
  status: Status
  generation: number
  observed_generation: number
  image: string | null
  operations: OperationKind[]
}

async function subjectsOf(reader: Database | Transaction, { region, component }: Rollout): Promise<RolloutSubject[]> {
  const rows = await reader.$queryRaw<SubjectRow[]>`
    select id, isolation, desired, status, generation, observed_generation,
      case when ${component} = 'runtime' then runtime_image else postgres_image end as image,
      array(select kind from operations where tenant_id = tenants.id and state in ('pending', 'running')) as operations
    from tenants
    where region_id = ${region} and isolation = any (${[...isolationsWith[component]]}) and desired not in ('warm', 'deleted')
    order by created_at, id`
  return rows.map(({ observed_generation: observedGeneration, image, ...row }) => ({
    ...row,
    observedGeneration,
    image: image ?? undefined,
  }))
}
