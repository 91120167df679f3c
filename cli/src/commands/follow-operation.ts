// Follows an operation until it has ended. Progress goes to standard error.
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, bodyOf, ConnectionError, type ControlClient, type Operation } from '@tenantry/client'
import type { Command } from 'commander'
import type { Call } from '../call.ts'
import { CommandError, exitCodes, Interrupted } from '../terminal/exit-codes.ts'

const pollMs = 250
/** Polls that may fail one after another before the command gives up. */
const maxFailedPolls = 40

/** Adds the option `--no-wait` to a command that starts an operation. */
export function withWaiting(command: Command): Command {
  return command.option('--no-wait', 'return at once, and leave the operation running')
}

/** Returns whether the command waits for the operation that it starts. */
export function isWaiting(call: Call): boolean {
  return !call.isOff('wait')
}

/**
 * Polls an operation until it has ended, or until `isDone`. Its steps and errors are reported as progress.
 * @throws CommandError if it failed or was superseded, Interrupted if the user pressed Ctrl-C: the operation continues
 */
export async function followOperation(
  call: Call,
  client: ControlClient,
  id: string,
  isDone: (operation: Operation) => Promise<boolean> = async () => false,
): Promise<Operation> {
  let shown = ''
  let failedPolls = 0
  try {
    for (;;) {
      const operation = await readOperation(client, id).catch((error: unknown) => {
        if (!isTemporary(error) || ++failedPolls > maxFailedPolls) throw error
        return undefined
      })
      if (operation !== undefined) {
        failedPolls = 0
        shown = report(call, operation, shown)
        if (operation.state === 'succeeded') return operation
        if (operation.state === 'failed' || operation.state === 'superseded')
          throw new CommandError(describeEnd(operation), exitCodes.failedOperation)
        if (await isDone(operation)) return operation
      }
      await sleep(pollMs, undefined, { signal: call.terminal.signal })
    }
  } catch (error) {
    if (call.terminal.signal.aborted)
      throw new Interrupted(`The operation ${id} continues. Follow it with: tenantry operations follow ${id}`)
    throw error
  }
}

async function readOperation(client: ControlClient, id: string): Promise<Operation> {
  return bodyOf(await client.GET('/v1/operations/{id}', { params: { path: { id } } }))
}

function report(call: Call, operation: Operation, shown: string): string {
  const { kind, state, step, error, attempts } = operation
  const text = [
    `${kind}: ${state}`,
    ...(step === null || step === state ? [] : [step]),
    ...(error === null || state === 'succeeded' ? [] : [`attempt ${attempts} failed: ${error}`]),
  ].join(', ')
  if (text !== shown) call.output.progress(text)
  return text
}

function describeEnd({ id, kind, state, error }: Operation): string {
  return state === 'superseded'
    ? `The operation ${id} (${kind}) was superseded by a later one.`
    : `The operation ${id} (${kind}) failed: ${(error ?? 'without a reason').replace(/\.$/, '')}.`
}

function isTemporary(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof ApiError && error.status >= 500)
}
