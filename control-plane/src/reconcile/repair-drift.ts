// Repairs single differences that an operator has chosen, and leaves all others to the tenant's drift policy.
import {
  differences,
  type Engine,
  EngineError,
  isTargeted,
  isUnreachable,
  type ObservedHost,
  type RepairTarget,
  type Step,
} from '../engines/index.ts'
import { containerName, type Service, type Stack } from '../stacks/index.ts'
import { recordStep, type Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'

/** Maximum wait until a service that was created or started accepts requests. Then the repair ends, and later runs observe it. */
const healthMilliseconds = 30_000
const pollMilliseconds = 250

/**
 * Carries out the repair of the targets and ends its operation, which fails if a target still differs. Status and
 * conditions of the tenant stay: the next run observes them. @throws EngineError if the engine cannot be reached
 */
export async function repairDrift(
  snapshot: Snapshot,
  targets: readonly RepairTarget[],
  run: Reconciliation,
  signal: AbortSignal,
): Promise<void> {
  const { store, region, failpoint, epoch } = run
  const { engine } = region
  if (engine === undefined) throw new EngineError('ENGINE_FAILED', 'The region has no engine for services.')
  const stack = await region.stack(snapshot, signal)
  await failpoint('repair.before')
  const started = new Set<Service>()
  const edge = async (side: 'before' | 'after', steps: readonly Step[]) => {
    if (side === 'after') return failpoint('repair.step-after')
    await store.confirmLead(epoch)
    for (const step of steps) for (const service of startedBy(stack, step)) started.add(service)
    await recordStep(snapshot, `repair: ${steps.map(({ do: what }) => what).join(', ')}`, run)
    return failpoint('repair.step-before')
  }
  let error: string | undefined
  try {
    await engine.repair(stack, targets, signal, edge)
    for (const service of started) await awaitHealth(engine, stack, service, run, signal)
    error = remaining(stack, await engine.observe(stack.id, signal), targets)
  } catch (failure) {
    if (!(failure instanceof EngineError) || isUnreachable(failure)) throw failure
    error = failure.message
  }
  const { id, status, reason, conditions, observedGeneration: generation, operation } = snapshot
  const ended =
    operation === undefined
      ? undefined
      : { id: operation.id, error: error ?? null, ...(error === undefined ? {} : { hasFailed: true }) }
  await store.recordObserved(id, { generation, status, reason, conditions, operation: ended }, epoch)
  await failpoint('repair.after')
}

function startedBy(stack: Stack, step: Step): Service[] {
  return stack.services.filter((service) => {
    if (step.do === 'create-container') return step.service === service.name
    return step.do === 'start-container' && step.container === containerName(stack.id, service)
  })
}

async function awaitHealth(
  engine: Engine,
  stack: Stack,
  { name, health }: Service,
  { clock }: Reconciliation,
  signal: AbortSignal,
): Promise<void> {
  const until = clock.now().getTime() + healthMilliseconds
  while (clock.now().getTime() < until) {
    const checked = await engine.exec(stack.id, name, health.command, { signal }).catch(() => undefined)
    if (checked?.code === 0) return
    await clock.sleep(pollMilliseconds, signal)
  }
}

/** Returns why the repair has failed; undefined if no target differs. */
function remaining(stack: Stack, host: ObservedHost, targets: readonly RepairTarget[]): string | undefined {
  const [first] = differences(stack, host).filter((difference) => isTargeted(targets, difference))
  if (first === undefined) return undefined
  const { component, field, desired, observed } = first
  return `The field "${field}" of ${component} is still ${String(observed)} instead of ${String(desired)}.`
}
