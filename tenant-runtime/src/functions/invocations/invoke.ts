// An invocation from its call to its answer: a turn, the record, the run, the record's end.
import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { outputLimit, type RunResult } from '../executor/executor.ts'
import type { ExecutorPool } from '../executor/pool.ts'
import type { FunctionRecord } from '../function.ts'
import { loadFunction } from '../function-store.ts'
import { answerCalls, type HostDeps } from '../host/host-calls.ts'
import type { LogKeeper } from '../logs/log-keeper.ts'
import { pageBytes } from '../module/abi.ts'
import type { ModuleCache } from '../module/module-cache.ts'
import { readAnswer, type FunctionAnswer } from './function-answer.ts'
import { loggedLines, type InvocationEnd } from './invocation-end.ts'
import { beginInvocation, endInvocation, type Claim } from './invocation-store.ts'
import { Secrets, secretsOf } from './redact.ts'
import { RunLines, tailOf, type LogLine } from './run-lines.ts'

export interface InvokeDeps {
  pool: ExecutorPool
  modules: ModuleCache
  logs: LogKeeper
  /** In milliseconds since 1970. */
  now: () => number
  onProblem: (problem: Error) => void
  /** What functions may ask of the runtime. */
  host: HostDeps
}

/** What made a function run. */
export type TriggerKind = 'http' | 'database' | 'schedule' | 'webhook'

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

const longestMessage = 2_048

/** @throws RuntimeError NO_SUCH_FUNCTION, FUNCTIONS_BUSY, HOST_FUNCTION_ERROR, FUNCTION_TIMEOUT; ClaimTaken */
export async function invoke(deps: InvokeDeps, tenant: Tenant, call: Call): Promise<FunctionAnswer & { invocationId: string }> {
  const invocationId = randomUUID()
  const done = await run(deps, tenant, call, invocationId)
  // Whoever waits for a turn has it while the end is written.
  const secrets = new Secrets(secretsOf(done.fn))
  const { result } = done
  const lines = done.lines.end(secrets, result?.logCut ?? 0, result?.outcome.kind !== 'exited')
  const end = (status: InvocationEnd['status'], errorMessage: string | null) =>
    writeEnd(deps, tenant, call, done, {
      invocationId, begun: done.begun, status, errorMessage, log: loggedLines(lines), durationMilliseconds: done.milliseconds,
      cpuMicroseconds: result?.cpuMicroseconds ?? 0, memoryPeak: result?.memoryPeak ?? 0,
    })
  try {
    if (result === undefined) throw done.problem
    const answer = answerOf(done.fn, result, lines, deps.onProblem)
    await end('success', null)
    return { ...answer, invocationId }
  } catch (error) {
    const shown = shownError(error, secrets)
    await end(shown.code === 'FUNCTION_TIMEOUT' ? 'timeout' : 'error', shown.message)
    throw shown
  }
}

interface Done {
  fn: FunctionRecord
  begun: InvocationEnd['begun']
  lines: RunLines
  milliseconds: number
  result: RunResult | undefined
  /** Why there is no result. */
  problem: unknown
}

/**
 * The record, and then the run. Who waits for a turn has the record made meanwhile; what must be claimed is claimed when it can run.
 * @throws before there is a record; RuntimeError NO_SUCH_FUNCTION, FUNCTIONS_BUSY, ClaimTaken
 */
async function run({ pool, modules, now, host, onProblem }: InvokeDeps, tenant: Tenant, call: Call, invocationId: string): Promise<Done> {
  const turn = pool.turn(tenant.id, call.name)
  try {
    if (call.trigger !== 'http' || call.claim !== undefined) await turn.ready
    const userId = call.context.role === 'authenticated' ? call.context.userId : null
    let fn = await beginInvocation(tenant, { name: call.name, invocationId, trigger: call.trigger, userId, claim: call.claim }, onProblem)
    const begun = { functionId: fn.id, trigger: call.trigger, userId, at: now() }
    const lines = new RunLines(now)
    let begin = performance.now()
    let result: RunResult | undefined
    let problem: unknown
    try {
      let module = modules.get(fn.wasmHash)
      if (module === undefined) {
        // It may have been updated since: then it runs as it is now, all of it.
        const loaded = await loadFunction(tenant, fn.id)
        fn = loaded.fn
        module = modules.add(loaded.wasm, fn.wasmHash)
      }
      await turn.ready
      begin = performance.now()
      result = await turn.slot.run({
        module,
        memoryPages: Math.floor(fn.config.max_memory / pageBytes),
        environment: environmentOf(fn, call, invocationId, userId),
        name: fn.name,
        input: call.input,
        timeoutMilliseconds: fn.config.timeout * 1_000,
        onLog: (level, text) => lines.add(level, text),
        onCall: answerCalls(host, tenant, fn, call.context),
      })
    } catch (error) {
      problem = error
    }
    return { fn, begun, lines, milliseconds: performance.now() - begin, result, problem }
  } finally {
    turn.leave()
  }
}

async function writeEnd({ logs, onProblem }: InvokeDeps, tenant: Tenant, { log }: Call, { fn }: Done, end: InvocationEnd): Promise<void> {
  try {
    await endInvocation(tenant, end, onProblem)
    if (end.log === undefined) return
    logs.wrote(tenant, fn.id, end.log.bytes)
    log.debug({ tenant: tenant.id, function: fn.name, invocation: end.invocationId, lines: end.log.lines.length }, 'a function wrote to its log')
  } catch (cause) {
    onProblem(new Error(`${tenant.id}: the end of the invocation ${end.invocationId} is not recorded`, { cause }))
  }
}

/** The function's own variables, and what the host tells it of this invocation. */
function environmentOf(fn: FunctionRecord, { trigger, context, variables }: Call, invocationId: string, userId: string | null): string[] {
  const told: Record<string, string | null | undefined> = {
    TENANTRY_FUNCTION: fn.name,
    TENANTRY_INVOCATION_ID: invocationId,
    TENANTRY_TRIGGER: trigger,
    TENANTRY_ROLE: context.role === 'service' ? 'service_role' : context.role,
    TENANTRY_USER_ID: userId,
    ...variables,
  }
  const all = { ...fn.config.environment, ...told }
  return Object.entries(all).flatMap(([name, value]) => (value === null || value === undefined ? [] : [`${name}=${value}`]))
}

/** @throws RuntimeError HOST_FUNCTION_ERROR, FUNCTION_TIMEOUT */
function answerOf(fn: FunctionRecord, { outcome, output }: RunResult, log: readonly LogLine[], onProblem: (problem: Error) => void): FunctionAnswer {
  const failed = (what: string) => new RuntimeError('HOST_FUNCTION_ERROR', what)
  switch (outcome.kind) {
    case 'exited':
      if (outcome.code === 0) return readAnswer(output)
      throw failed(withLog(`the function exited with code ${outcome.code}`, log))
    case 'trapped':
      throw failed(withLog(`the function trapped: ${outcome.message}`, log))
    case 'flooded':
      throw failed(`the function wrote more than ${outputLimit} bytes`)
    case 'refused':
      throw failed(`the module could not be compiled: ${outcome.message}`)
    case 'died':
      onProblem(new Error(`the function ${fn.name} ended its executor: ${outcome.message}`))
      throw failed('the function was stopped: its process took more than it may have')
    case 'timeout':
      throw new RuntimeError('FUNCTION_TIMEOUT', `the function did not end within its ${fn.config.timeout} s`)
  }
}

/** A failure with the last that the function had to say about it. */
function withLog(message: string, log: readonly LogLine[]): string {
  const said = tailOf(log, longestMessage)
  return said === '' ? message : `${message}: ${said}`
}

function shownError(error: unknown, secrets: Secrets): RuntimeError {
  // It quotes what the function wrote, so it is shown as it may be, and never as a cause.
  if (error instanceof SyntaxError) return new RuntimeError('HOST_FUNCTION_ERROR', secrets.redact(error.message))
  if (!(error instanceof RuntimeError)) return new RuntimeError('INTERNAL', 'something went wrong here; the log knows what', { cause: error })
  return new RuntimeError(error.code, secrets.redact(error.message).slice(0, 2 * longestMessage), { cause: error.cause })
}
