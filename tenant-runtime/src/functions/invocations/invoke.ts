// An invocation from its call to its answer: a turn, the record, the run, the record's end; or the record when the run is over.
import { randomUUIDv7 } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { outputLimit, type Module, type RunResult } from '../executor/executor.ts'
import type { ExecutorPool, Turn } from '../executor/pool.ts'
import type { FunctionRecord } from '../function.ts'
import { loadFunction } from '../function-store.ts'
import { respondToCalls, type HostDeps } from '../host/host-calls.ts'
import type { LogRetention } from '../logs/log-retention.ts'
import { pageBytes } from '../module/abi.ts'
import type { ModuleCache } from '../module/module-cache.ts'
import { readResponse, type FunctionResponse } from './function-response.ts'
import { loggedLines, type InvocationEnd } from './invocation-end.ts'
import {
  beginInvocation,
  endInvocation,
  expectRecord,
  recordInvocation,
  rememberedFunction,
  type Claim,
} from './invocation-store.ts'
import { Secrets, secretsOf } from './redact.ts'
import { RunLines, tailOf, type LogLine } from './run-lines.ts'
import type { TriggerKind } from './trigger-kind.ts'

export interface InvokeDeps {
  pool: ExecutorPool
  modules: ModuleCache
  logs: LogRetention
  /** Told of each run that was begun and has ended, whether or not the home has taken its end. */
  onEnd?: (tenantId: string, end: InvocationEnd) => void
  /** In milliseconds since 1970. */
  now: () => number
  /** Milliseconds, monotonic. */
  elapsed: () => number
  onError: (error: Error) => void
  /** What functions may ask of the runtime. */
  host: HostDeps
}

export interface Call {
  /** The function's. */
  name: string
  trigger: TriggerKind
  /** In whose name it runs. */
  context: RlsContext
  /** Standard input. */
  input: Buffer
  /** What this kind of trigger tells the function in its environment, beside what every run is told. */
  variables: Readonly<Record<string, string | undefined>>
  /** What must be won for it to run. */
  claim?: Claim
  log: FastifyBaseLogger
}

const maxMessageLength = 2_048
/** A run that is recorded when it is over has its beginning recorded when it takes longer; milliseconds. */
const promptMilliseconds = 20

type ReceivedResponse = FunctionResponse & { invocationId: string }

/** @throws RuntimeError NO_SUCH_FUNCTION, FUNCTIONS_BUSY, HOST_FUNCTION_ERROR, FUNCTION_TIMEOUT; ClaimTaken */
export async function invoke(deps: InvokeDeps, tenant: Tenant, call: Call): Promise<ReceivedResponse> {
  const invocationId = randomUUIDv7()
  const known = knownHarmless(deps, tenant, call)
  if (known !== undefined) {
    const isThere = expectRecord(tenant)
    try {
      const response = await finish(
        deps,
        tenant,
        call,
        invocationId,
        await runFirst(deps, tenant, call, invocationId, known, isThere),
      )
      if (response !== 'changed') return response
    } finally {
      isThere()
    }
  }
  const response = await finish(deps, tenant, call, invocationId, await beginFirst(deps, tenant, call, invocationId))
  if (response === 'changed') throw new Error('a record that was begun can be ended')
  return response
}

/** A function that was seen lately, and that can do nothing that is seen outside before its answer is. */
function knownHarmless({ modules }: InvokeDeps, tenant: Tenant, { name, trigger, claim }: Call): Known | undefined {
  if (trigger !== 'http' || claim !== undefined) return undefined
  const fn = rememberedFunction(tenant, name)
  const module = fn && modules.get(tenant.id, fn.wasmHash)
  return fn === undefined || module === undefined || module.reachesOut ? undefined : { fn, module }
}

interface Known {
  fn: FunctionRecord
  /** Undefined: to be found. */
  module?: Module
}

interface Ran {
  fn: FunctionRecord
  begun: InvocationEnd['begun']
  lines: RunLines
  milliseconds: number
  result: RunResult | undefined
  /** Why there is no result. */
  error: unknown
}

interface Done extends Ran {
  /** Whether its beginning is recorded. */
  isBegun: boolean
}

/**
 * The run without a record, which comes with its end; of one that takes longer the beginning is recorded meanwhile.
 * @throws RuntimeError FUNCTIONS_BUSY, NO_SUCH_FUNCTION
 */
async function runFirst(
  deps: InvokeDeps,
  tenant: Tenant,
  call: Call,
  invocationId: string,
  known: Known,
  isLate: () => void,
): Promise<Done> {
  const turn = deps.pool.turn(tenant.id, call.name)
  let beginning: Promise<FunctionRecord> | undefined
  try {
    await turn.ready
    const timer = setTimeout(() => {
      isLate()
      beginning = begin(deps, tenant, call, invocationId)
      // It is looked at when the run is over.
      beginning.catch(() => undefined)
    }, promptMilliseconds)
    const ran = await run(deps, tenant, call, invocationId, known, turn).finally(() => clearTimeout(timer))
    if (beginning === undefined) return { ...ran, isBegun: false }
    const fn = await beginning
    return {
      ...(isAsItWas(known.fn, fn) ? ran : await run(deps, tenant, call, invocationId, { fn }, turn)),
      isBegun: true,
    }
  } finally {
    turn.leave()
  }
}

/**
 * The record, and then the run. Who waits for a turn has the record made meanwhile; what must be claimed is claimed when it can run.
 * @throws before there is a record; RuntimeError NO_SUCH_FUNCTION, FUNCTIONS_BUSY, ClaimTaken
 */
async function beginFirst(deps: InvokeDeps, tenant: Tenant, call: Call, invocationId: string): Promise<Done> {
  const turn = deps.pool.turn(tenant.id, call.name)
  try {
    if (call.trigger !== 'http' || call.claim !== undefined) await turn.ready
    const fn = await begin(deps, tenant, call, invocationId)
    return { ...(await run(deps, tenant, call, invocationId, { fn }, turn)), isBegun: true }
  } finally {
    turn.leave()
  }
}

function begin(
  { onError }: InvokeDeps,
  tenant: Tenant,
  { name, trigger, context, claim }: Call,
  invocationId: string,
): Promise<FunctionRecord> {
  return beginInvocation(tenant, { name, invocationId, trigger, userId: userOf(context), claim }, onError)
}

function isAsItWas(before: FunctionRecord, now: FunctionRecord): boolean {
  return before.id === now.id && before.updatedAt === now.updatedAt
}

function userOf(context: RlsContext): string | null {
  return context.role === 'authenticated' ? context.userId : null
}

/** Never throws: what went wrong is part of what came of it. */
async function run(
  { modules, now, elapsed, host }: InvokeDeps,
  tenant: Tenant,
  call: Call,
  invocationId: string,
  known: Known,
  turn: Turn,
): Promise<Ran> {
  let { fn, module } = known
  const userId = userOf(call.context)
  const begun = { functionId: fn.id, trigger: call.trigger, userId, at: now() }
  const lines = new RunLines(now)
  let since = elapsed()
  let result: RunResult | undefined
  let violation: unknown
  try {
    module ??= modules.get(tenant.id, fn.wasmHash)
    if (module === undefined) {
      // It may have been updated since: then it runs as it is now, all of it.
      const loaded = await loadFunction(tenant, fn.id)
      fn = loaded.fn
      module = modules.add(tenant.id, loaded.wasm, fn.wasmHash)
    }
    await turn.ready
    since = elapsed()
    result = await turn.slot.run({
      module,
      memoryPages: Math.floor(fn.config.max_memory / pageBytes),
      environment: environmentOf(fn, call, invocationId, userId),
      name: fn.name,
      input: call.input,
      timeoutMilliseconds: fn.config.timeout * 1_000,
      onLog: (level, text) => lines.add(level, text),
      onCall: respondToCalls(host, tenant, fn, call.context),
    })
  } catch (error) {
    violation = error
  }
  return { fn, begun, lines, milliseconds: elapsed() - since, result, error: violation }
}

/**
 * Whoever waits for a turn has it while the end is written.
 * @returns `changed`, and nothing is recorded: it was not begun, and the function is not what was run
 */
async function finish(
  deps: InvokeDeps,
  tenant: Tenant,
  call: Call,
  invocationId: string,
  done: Done,
): Promise<ReceivedResponse | 'changed'> {
  const { fn, begun, milliseconds, result } = done
  const secrets = new Secrets(secretsOf(fn))
  const lines = done.lines.end(secrets, result?.logCut ?? 0, result?.outcome.kind !== 'exited')
  let response: FunctionResponse | RuntimeError
  try {
    if (result === undefined) throw done.error
    if (result.outcome.kind === 'died') {
      call.log.info(
        { tenant: tenant.id, function: fn.name, reason: result.outcome.message },
        'a function ended its executor',
      )
    }
    response = responseOf(fn, result, lines)
  } catch (error) {
    response = shownError(error, secrets)
  }
  const failure = response instanceof RuntimeError ? response : undefined
  const end: InvocationEnd = {
    invocationId,
    begun,
    status: failure === undefined ? 'success' : failure.code === 'FUNCTION_TIMEOUT' ? 'timeout' : 'error',
    errorMessage: failure?.message ?? null,
    log: loggedLines(lines),
    durationMilliseconds: milliseconds,
    cpuMicroseconds: result?.cpuMicroseconds ?? 0,
    memoryPeak: result?.memoryPeak ?? 0,
  }
  if (!done.isBegun && !(await recordInvocation(tenant, { ...end, version: fn.updatedAt }, fn, deps.onError)))
    return 'changed'
  const isWritten = !done.isBegun || (await writeEnd(deps, tenant, end))
  deps.onEnd?.(tenant.id, end)
  if (isWritten && end.log !== undefined) {
    deps.logs.wrote(tenant, fn.id, end.log.bytes)
    call.log.debug(
      { tenant: tenant.id, function: fn.name, invocation: invocationId, lines: end.log.lines.length },
      'a function wrote to its log',
    )
  }
  if (response instanceof RuntimeError) throw response
  return { ...response, invocationId }
}

/** @returns whether it is written */
async function writeEnd({ onError }: InvokeDeps, tenant: Tenant, end: InvocationEnd): Promise<boolean> {
  try {
    await endInvocation(tenant, end, onError)
    return true
  } catch (cause) {
    onError(new Error(`${tenant.id}: the end of the invocation ${end.invocationId} is not recorded`, { cause }))
    return false
  }
}

/** The function's own variables, and what the host tells it of this invocation. */
function environmentOf(
  fn: FunctionRecord,
  { trigger, context, variables }: Call,
  invocationId: string,
  userId: string | null,
): string[] {
  const reported: Record<string, string | null | undefined> = {
    TENANTRY_FUNCTION: fn.name,
    TENANTRY_INVOCATION_ID: invocationId,
    TENANTRY_TRIGGER: trigger,
    TENANTRY_ROLE: context.role === 'service' ? 'service_role' : context.role,
    TENANTRY_USER_ID: userId,
    ...variables,
  }
  const all = { ...fn.config.environment, ...reported }
  return Object.entries(all).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [`${name}=${value}`],
  )
}

/** @throws RuntimeError HOST_FUNCTION_ERROR, FUNCTION_TIMEOUT */
function responseOf(fn: FunctionRecord, { outcome, output }: RunResult, log: readonly LogLine[]): FunctionResponse {
  const failed = (what: string) => new RuntimeError('HOST_FUNCTION_ERROR', what)
  switch (outcome.kind) {
    case 'exited':
      if (outcome.code === 0) return readResponse(output)
      throw failed(withLog(`the function exited with code ${outcome.code}`, log))
    case 'trapped':
      throw failed(withLog(`the function trapped: ${outcome.message}`, log))
    case 'flooded':
      throw failed(`the function wrote more than ${outputLimit} bytes`)
    case 'refused':
      throw failed(`the module could not be compiled: ${outcome.message}`)
    case 'died':
      throw failed('the function was stopped: its process took more than it may have')
    case 'timeout':
      throw new RuntimeError('FUNCTION_TIMEOUT', `the function did not end within its ${fn.config.timeout} s`)
  }
}

/** A failure with the last that the function had to say about it. */
function withLog(message: string, log: readonly LogLine[]): string {
  const reported = tailOf(log, maxMessageLength)
  return reported === '' ? message : `${message}: ${reported}`
}

function shownError(error: unknown, secrets: Secrets): RuntimeError {
  // It quotes what the function wrote, so it is shown as it may be, and never as a cause.
  if (error instanceof SyntaxError) return new RuntimeError('HOST_FUNCTION_ERROR', secrets.redact(error.message))
  if (!(error instanceof RuntimeError))
    return new RuntimeError('INTERNAL', 'something went wrong here; the log knows what', { cause: error })
  return new RuntimeError(error.code, secrets.redact(error.message).slice(0, 2 * maxMessageLength), {
    cause: error.cause,
  })
}
