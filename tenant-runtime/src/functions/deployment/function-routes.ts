// HTTP routes of functions (specification, section 4.3): deploy, list, get, update, delete; for the service role only.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { ExecutorPool } from '../executor/pool.ts'
import { nextRun } from '../triggers/schedule.ts'
import { triggerStatus } from '../triggers/table-triggers.ts'
import {
  checkDescription,
  checkFits,
  checkName,
  checkTrigger,
  defaultConfig,
  mergeConfig,
  type FunctionConfig,
  type FunctionRecord,
  type Trigger,
} from '../function.ts'
import {
  deleteFunction,
  findFunction,
  hashOf,
  insertFunction,
  listFunctions,
  loadModule,
  updateFunction,
} from '../function-store.ts'
import { checkModule, maxModuleBytes } from '../module/check-module.ts'
import { prepareModule } from '../module/module-cache.ts'
import { requireRoom } from './function-quota.ts'
import { readDeployForm, type DeployForm } from './deploy-form.ts'

interface Named {
  Params: { name: string }
}

/** Limit of time for compiling. It leaves room for a busy machine, because it must not depend on load whether a module is valid. */
const compileMilliseconds = 15_000
const service = { config: { access: 'service' } } as const

interface DeployDeps {
  pool: ExecutorPool
  now: () => Date
  /** Called after triggers were added, changed or removed. */
  onTrigger: (tenant: Tenant, triggers: readonly Trigger[]) => Promise<void>
}

export async function addFunctionRoutes(app: FastifyInstance, deps: DeployDeps): Promise<void> {
  const { pool, now, onTrigger } = deps

  app.get('/functions/v1', service, async ({ tenant, rls }) => (await listFunctions(tenant, rls)).map(presentItem))

  app.get<Named>('/functions/v1/:name', service, async ({ tenant, rls, params }) => {
    const found = await findFunction(tenant, rls, params.name)
    return {
      ...presentItem(found),
      config: found.config,
      invocation_count: found.invocationCount,
      last_invocation: found.lastInvocation,
      ...nextRunOf(found, now()),
      ...(await triggerStatus(tenant, found)),
    }
  })

  app.delete<Named>('/functions/v1/:name', service, async ({ tenant, rls, params }, reply) => {
    const { trigger } = await deleteFunction(tenant, rls, params.name)
    await onTrigger(tenant, [trigger])
    return reply.status(204).send()
  })

  await app.register(async (forms) => {
    forms.addContentTypeParser('multipart/form-data', (_request, _payload, done) => done(null, undefined))

    forms.post('/functions/v1/deploy', service, async (request, reply) => {
      const { tenant, rls, raw, log } = request
      forms.bodies.reserveForm(request, maxModuleBytes)
      const form = await readDeployForm(raw)
      const name = checkName(required(form.name, 'name'))
      const wasm = required(form.wasm, 'wasm')
      const config = mergeConfig(defaultConfig, parsed(form.config ?? '{}', 'config'))
      const deployed = {
        name,
        wasm,
        config,
        description: checkDescription(form.description ?? ''),
        trigger: checkTrigger(parsed(form.trigger ?? '"Http"', 'trigger'), now()),
      }
      await tryModule(pool, tenant, name, wasm, config)
      await requireRoom(tenant, rls, { name, bytes: wasm.length, isNew: true })
      const created = await insertFunction(tenant, rls, deployed)
      await onTrigger(tenant, [created.trigger])
      log.info({ tenant: tenant.id, function: name, hash: created.wasmHash }, 'A function was deployed.')
      return reply
        .status(201)
        .send({ id: created.id, name, wasm_hash: created.wasmHash, created_at: created.createdAt })
    })

    forms.patch<Named & { Body: unknown }>(
      '/functions/v1/:name',
      { ...service, bodyLimit: 256 * 1024 },
      async (request) => {
        const isForm = /^multipart\/form-data\b/i.test(request.headers['content-type'] ?? '')
        if (isForm) forms.bodies.reserveForm(request, maxModuleBytes)
        return update(deps, request, isForm ? changeOf(await readDeployForm(request.raw)) : readChange(request.body))
      },
    )
  })
}

interface Change {
  config?: unknown
  description?: string
  trigger?: unknown
  enabled?: boolean
  wasm?: Buffer
}

async function update(
  { pool, now, onTrigger }: DeployDeps,
  { tenant, rls, params }: FastifyRequest<Named>,
  change: Change,
) {
  const before = await findFunction(tenant, rls, params.name)
  const config = change.config === undefined ? before.config : mergeConfig(before.config, change.config)
  if (change.wasm !== undefined) await tryModule(pool, tenant, before.name, change.wasm, config)
  // The stored module must fit into the smaller memory.
  else if (config.max_memory < before.config.max_memory)
    checkFits(checkModule(await loadModule(tenant, before)).memory, config)
  if (change.wasm !== undefined)
    await requireRoom(tenant, rls, { name: before.name, bytes: change.wasm.length, isNew: false })
  const after = await updateFunction(tenant, rls, before, {
    config,
    description: change.description === undefined ? before.description : checkDescription(change.description),
    trigger: change.trigger === undefined ? before.trigger : checkTrigger(change.trigger, now()),
    enabled: change.enabled ?? before.enabled,
    wasm: change.wasm,
  })
  if (change.trigger !== undefined || change.enabled !== undefined)
    await onTrigger(tenant, [before.trigger, after.trigger])
  return {
    id: after.id,
    name: after.name,
    config: after.config,
    enabled: after.enabled,
    wasm_hash: after.wasmHash,
    updated_at: after.updatedAt,
  }
}

/** Compiles the module in an executor, as a check. @throws RuntimeError INVALID_WASM, WASM_TOO_LARGE, FUNCTIONS_BUSY */
async function tryModule(
  pool: ExecutorPool,
  tenant: Tenant,
  name: string,
  wasm: Buffer,
  config: FunctionConfig,
): Promise<void> {
  const module = prepareModule(wasm, hashOf(wasm))
  checkFits(module.memory, config)
  const failure = await pool.enter(tenant.id, name, (slot) => slot.compile(module, compileMilliseconds))
  if (failure === undefined) return
  const reason = {
    rejected: `is not valid: ${failure.kind === 'rejected' ? failure.message : ''}`,
    timeout: `takes longer than ${compileMilliseconds / 1000} s to compile.`,
    died: 'takes too much memory to compile.',
    stopped: 'could not be compiled.',
  }[failure.kind]
  throw new RuntimeError('INVALID_WASM', `Part "wasm": The module ${reason}`)
}

function presentItem({ id, name, description, trigger, wasmHash, enabled, createdAt, updatedAt }: FunctionRecord) {
  return { id, name, description, trigger, wasm_hash: wasmHash, enabled, created_at: createdAt, updated_at: updatedAt }
}

/** Returns the next planned time of a function with a schedule. */
function nextRunOf({ trigger, enabled }: FunctionRecord, now: Date): { next_run?: string | null } {
  if (typeof trigger !== 'object' || !('Schedule' in trigger)) return {}
  return { next_run: enabled ? (nextRun(trigger.Schedule, now)?.toISOString() ?? null) : null }
}

function readChange(body: unknown): Change {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new RuntimeError('INVALID_FUNCTION', 'The body must be a JSON object.')
  const { config, description, trigger, enabled, ...others } = body as Record<string, unknown>
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw new RuntimeError(
      'UNKNOWN_FIELD',
      `Unknown field "${unknown.slice(0, 100)}". Allowed: config, description, trigger, enabled.`,
    )
  if (description !== undefined && typeof description !== 'string')
    throw new RuntimeError('INVALID_FUNCTION', 'Field "description" must be a string.')
  if (enabled !== undefined && typeof enabled !== 'boolean')
    throw new RuntimeError('INVALID_FUNCTION', 'Field "enabled" must be true or false.')
  return {
    ...(config === undefined ? {} : { config }),
    ...(description === undefined ? {} : { description }),
    ...(trigger === undefined ? {} : { trigger }),
    ...(enabled === undefined ? {} : { enabled }),
  }
}

function changeOf({ name, config, trigger, description, enabled, wasm }: DeployForm): Change {
  if (name !== undefined)
    throw new RuntimeError('INVALID_FUNCTION', 'Part "name" can not be changed: a function keeps its name.')
  return {
    ...readChange({
      ...(config === undefined ? {} : { config: parsed(config, 'config') }),
      ...(trigger === undefined ? {} : { trigger: parsed(trigger, 'trigger') }),
      ...(description === undefined ? {} : { description }),
      ...(enabled === undefined ? {} : { enabled: parsed(enabled, 'enabled') }),
    }),
    ...(wasm === undefined ? {} : { wasm }),
  }
}

function parsed(text: string, part: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RuntimeError('INVALID_FUNCTION', `Part "${part}" must be valid JSON.`, { cause })
  }
}

function required<T>(value: T | undefined, part: string): T {
  if (value === undefined) throw new RuntimeError('INVALID_FUNCTION', `Part "${part}" is required.`)
  return value
}
