// Runs an invocation: waits for a turn, writes the record, runs the function, and writes the end. For a function without effects
// outside, it writes the whole record at the end.
import { randomUUIDv7 } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import type { Statement } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { outputLimit, type Module, type RunResult } from '../executor/executor.ts'
import type { ExecutorPool } from '../executor/pool.ts'
import { stopError, type Turn } from '../executor/turn.ts'
import type { FunctionRecord } from '../function.ts'
import { loadFunction } from '../function-store.ts'
import { createCallHandler, type HostDeps } from '../host/host-calls.ts'
import { RunEgress } from '../host/run-egress.ts'
import type { LogRetention } from '../logs/log-retention.ts'
import { pageBytes } from '../module/abi.ts'
import type { ModuleCache } from '../module/module-cache.ts'
import { readResponse, type FunctionResponse } from './function-response.ts'
import { loggedLines, type InvocationEnd } from './invocation-end.ts'
import {
  beginInvocation,
  endInvocation,
  expectRecord,
  recordEgress,
  recordInvocation,
  cachedFunction,
  type Claim,
} from './invocation-store.ts'
import { Secrets, secretsOf } from './redact.ts'
import { RunLines, tailOf, type LogLine } from './run-lines.ts'
import type { TriggerKind } from './trigger-kind.ts'

export interface InvokeDeps {
  pool: ExecutorPool
  modules: ModuleCache
  logs: LogRetention
  /** Called after each recorded run has ended, whether or not its end could be written. */
  onEnd?: (tenantId: string, end: InvocationEnd) => void
  /** Returns milliseconds since 1970. */
  now: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  onError: (error: Error) => void
  /** Dependencies of the functions' calls to the runtime. */
  host: HostDeps
}

export interface Call {
  /** The function's name. */
  name: string
  trigger: TriggerKind
  /** The caller's context. */
  context: RlsContext
  /** The function's standard input. */
  input: Buffer
  /** Environment variables of this kind of trigger, in addition to those of every run. */
  variables: Readonly<Record<string, string | undefined>>
  /** The claim that must succeed before the run. */
  claim?: Claim
  /** A statement that is executed in the transaction that records the end of a run, if its status is below 400. */
  completion?: Statement
  /** Receives the invocation's turn, so that the caller can stop it. */
  onTurn?: (turn: Pick<Turn, 'stop'>) => void
  log: FastifyBaseLogger
}

const maxMessageLength = 2_048
const failedStatus = 400
const completing: RlsContext = { role: 'service', reason: 'the end of an invocation' }
/** Time after which the beginning is recorded of a run whose record is otherwise written at its end. */
const promptMilliseconds = 20

type InvocationResponse = FunctionResponse & { invocationId: string }

/** Invokes a function. @throws RuntimeError NO_SUCH_FUNCTION, FUNCTIONS_BUSY, HOST_FUNCTION_ERROR, FUNCTION_TIMEOUT; ClaimTaken */
export async function invoke(deps: InvokeDeps, tenant: Tenant, call: Call): Promise<InvocationResponse> {
  const invocationId = randomUUIDv7()
  const cached = cachedHarmless(deps, tenant, call)
  if (cached !== undefined) {
    const unexpectRecord = expectRecord(tenant)
    try {
      const response = await finish(
        deps,
        tenant,
        call,
        invocationId,
        await runFirst(deps, tenant, call, invocationId, cached, unexpectRecord),
      )
      if (response !== 'changed') return response
    } finally {
      unexpectRecord()
    }
  }
  const response = await finish(deps, tenant, call, invocationId, await beginFirst(deps, tenant, call, invocationId))
  if (response === 'changed') throw new Error('The record of a begun run could not be ended.')
  return response
}

/** Returns a cached function that can't have effects outside of the executor before its response. */
function cachedHarmless({ modules }: InvokeDeps, tenant: Tenant, { name, trigger, claim }: Call): Runnable | undefined {
  if (trigger !== 'http' || claim !== undefined) return undefined
  const fn = cachedFunction(tenant, name)
  const module = fn && modules.get(tenant.id, fn.wasmHash)
  return fn === undefined || module === undefined || module.reachesOut ? undefined : { fn, module }
}

interface Runnable {
  fn: FunctionRecord
  /** The module; undefined if it must be loaded. */
  module?: Module
}

interface FinishedRun {
  fn: FunctionRecord
  begun: InvocationEnd['begun']
  lines: RunLines
  milliseconds: number
  result: RunResult | undefined
  egressBytes: number
  /** The error if there is no result. */
  error: unknown
}

interface RecordedRun extends FinishedRun {
  /** Whether its beginning is recorded. */
  isBegun: boolean
}

/**
 * Runs a function whose record is written at its end. If the run takes longer, its beginning is recorded meanwhile.
 * @throws RuntimeError FUNCTIONS_BUSY, NO_SUCH_FUNCTION
 */
async function runFirst(
  deps: InvokeDeps,
  tenant: Tenant,
  call: Call,
  invocationId: string,
  cached: Runnable,
  onSlow: () => void,
): Promise<RecordedRun> {
  const turn = deps.pool.turn(tenant.id, call.name)
  let beginning: Promise<FunctionRecord> | undefined
  try {
    call.onTurn?.(turn)
    await turn.ready
    const timer = setTimeout(() => {
      onSlow()
      beginning = begin(deps, tenant, call, invocationId)
      // It is awaited after the run.
      beginning.catch(() => undefined)
    }, promptMilliseconds)
    const finished = await run(deps, tenant, call, invocationId, cached, turn).finally(() => clearTimeout(timer))
    if (beginning === undefined) return { ...finished, isBegun: false }
    const fn = await beginning
    return {
      ...(isUnchanged(cached.fn, fn) ? finished : await run(deps, tenant, call, invocationId, { fn }, turn)),
      isBegun: true,
    }
  } finally {
    turn.leave()
  }
}

/**
 * Writes the record and then runs the function. The record is written during the wait for a turn; a claim is made only after
 * the wait.
 * @throws RuntimeError NO_SUCH_FUNCTION, FUNCTIONS_BUSY; ClaimTaken; only before the record is written
 */
async function beginFirst(deps: InvokeDeps, tenant: Tenant, call: Call, invocationId: string): Promise<RecordedRun> {
  const turn = deps.pool.turn(tenant.id, call.name)
  try {
    call.onTurn?.(turn)
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

function isUnchanged(before: FunctionRecord, now: FunctionRecord): boolean {
  return before.id === now.id && before.updatedAt === now.updatedAt
}

function userOf(context: RlsContext): string | null {
  return context.role === 'authenticated' ? context.userId : null
}

/** Runs a function. It never throws: an error is part of the result. */
async function run(
  { modules, now, elapsed, host }: InvokeDeps,
  tenant: Tenant,
  call: Call,
  invocationId: string,
  runnable: Runnable,
  turn: Turn,
): Promise<FinishedRun> {
  let { fn, module } = runnable
  const userId = userOf(call.context)
  const begun = { functionId: fn.id, trigger: call.trigger, userId, at: now() }
  const lines = new RunLines(now)
  const egress = new RunEgress((bytes) => recordEgress(tenant, invocationId, bytes))
  let since = elapsed()
  let result: RunResult | undefined
  let thrown: unknown
  try {
    module ??= modules.get(tenant.id, fn.wasmHash)
    if (module === undefined) {
      // If the function was updated meanwhile, its current version runs.
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
      onCall: createCallHandler(host, tenant, fn, call.context, egress),
    })
  } catch (error) {
    thrown = error
  }
  return { fn, begun, lines, milliseconds: elapsed() - since, result, egressBytes: egress.bytes, error: thrown }
}

/**
 * Writes the end and returns the response. The turn has ended before, so that the next invocation runs meanwhile.
 * @returns `changed` if nothing was recorded, because the run was not begun and its function was changed
 */
async function finish(
  deps: InvokeDeps,
  tenant: Tenant,
  call: Call,
  invocationId: string,
  done: RecordedRun,
): Promise<InvocationResponse | 'changed'> {
  const { fn, begun, milliseconds, result } = done
  const secrets = new Secrets(secretsOf(fn))
  const lines = done.lines.end(secrets, result?.logCut ?? 0, result?.outcome.kind !== 'exited')
  let response: FunctionResponse | RuntimeError
  try {
    if (result === undefined) throw done.error
    if (result.outcome.kind === 'died') {
      call.log.info(
        { tenant: tenant.id, function: fn.name, reason: result.outcome.message },
        'A function ended its executor.',
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
    egressBytes: done.egressBytes,
    completion: response instanceof RuntimeError || response.status >= failedStatus ? undefined : call.completion,
  }
  if (!done.isBegun && !(await recordInvocation(tenant, { ...end, version: fn.updatedAt }, fn, deps.onError)))
    return 'changed'
  const isWritten = !done.isBegun || (await writeEnd(deps, tenant, end))
  if (!isWritten && end.completion !== undefined) await tenant.database.run(completing, end.completion)
  deps.onEnd?.(tenant.id, end)
  if (isWritten && end.log !== undefined) {
    deps.logs.wrote(tenant, fn.id, end.log.bytes)
    call.log.debug(
      { tenant: tenant.id, function: fn.name, invocation: invocationId, lines: end.log.lines.length },
      'A function wrote to its log.',
    )
  }
  if (response instanceof RuntimeError) throw response
  return { ...response, invocationId }
}

/** Writes the end of a run. @returns whether it is written */
async function writeEnd({ onError }: InvokeDeps, tenant: Tenant, end: InvocationEnd): Promise<boolean> {
  try {
    await endInvocation(tenant, end, onError)
    return true
  } catch (cause) {
    onError(new Error(`${tenant.id}: The end of the invocation ${end.invocationId} could not be recorded.`, { cause }))
    return false
  }
}

/** Returns the function's environment variables and those that describe the invocation. */
function environmentOf(
  fn: FunctionRecord,
  { trigger, context, variables }: Call,
  invocationId: string,
  userId: string | null,
): string[] {
  const ofInvocation: Record<string, string | null | undefined> = {
    TENANTRY_FUNCTION: fn.name,
    TENANTRY_INVOCATION_ID: invocationId,
    TENANTRY_TRIGGER: trigger,
    TENANTRY_ROLE: context.role === 'service' ? 'service_role' : context.role,
    TENANTRY_USER_ID: userId,
    ...variables,
  }
  const all = { ...fn.config.environment, ...ofInvocation }
  return Object.entries(all).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [`${name}=${value}`],
  )
}

/** Converts a result to a response. @throws RuntimeError HOST_FUNCTION_ERROR, FUNCTION_TIMEOUT */
function responseOf(fn: FunctionRecord, { outcome, output }: RunResult, log: readonly LogLine[]): FunctionResponse {
  const failed = (message: string) => new RuntimeError('HOST_FUNCTION_ERROR', message)
  switch (outcome.kind) {
    case 'exited':
      if (outcome.code === 0) return readResponse(output)
      throw failed(withLog(`The function exited with code ${outcome.code}`, log))
    case 'trapped':
      throw failed(withLog(`The function trapped: ${outcome.message}`, log))
    case 'flooded':
      throw failed(`The function wrote more than ${outputLimit} bytes.`)
    case 'rejected':
      throw failed(`The module could not be compiled: ${outcome.message}`)
    case 'died':
      throw failed('The function was stopped because its process exceeded its limits.')
    case 'stopped':
      throw stopError(outcome.reason)
    case 'timeout':
      throw new RuntimeError(
        'FUNCTION_TIMEOUT',
        `The function did not end within its timeout of ${fn.config.timeout} s.`,
      )
  }
}

/** Appends the end of the function's log to a failure's message. */
function withLog(message: string, log: readonly LogLine[]): string {
  const tail = tailOf(log, maxMessageLength)
  return tail === '' ? message : `${message}: ${tail}`
}

/** Removes the function's secrets from an error. */
function shownError(error: unknown, secrets: Secrets): RuntimeError {
  // A SyntaxError quotes the function's output, so it must not be a cause either, which the log shows.
  if (error instanceof SyntaxError) return new RuntimeError('HOST_FUNCTION_ERROR', secrets.redact(error.message))
  if (!(error instanceof RuntimeError))
    return new RuntimeError('INTERNAL', 'The invocation failed unexpectedly.', { cause: error })
  return new RuntimeError(error.code, secrets.redact(error.message).slice(0, 2 * maxMessageLength), {
    cause: error.cause,
  })
}
