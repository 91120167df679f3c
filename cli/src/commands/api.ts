// `api` sends any request of the operators' API, for what no other command does.
import { text } from 'node:stream/consumers'
import { ConnectionError, readApiError } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { checkedKey, findContext } from '../connection/connection.ts'
import { usageError } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const timeoutMs = 75_000

/** Adds `api`. */
export function addApiCommand(program: Command, terminal: Terminal): void {
  program
    .command('api <method> <path>')
    .description('send any request of the API, such as: api GET /v1/fleet/attention')
    .option('--data <json>', 'the body, or - for standard input')
    .action(action(terminal, request))
}

async function request(call: Call, given = '', path = ''): Promise<void> {
  const method = methods.find((one) => one === given.toUpperCase())
  if (method === undefined) throw usageError(`Invalid method "${given.slice(0, 100)}". Allowed: ${methods.join(', ')}.`)
  const { target } = await findContext(await call.config(), call.terminal.env, call.text('context'))
  const url = checkedUrl(target.url, path)
  const body = await readBody(call)
  const what = `${method} ${url.href}`
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${checkedKey(target.key)}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
    signal: AbortSignal.any([call.terminal.signal, AbortSignal.timeout(timeoutMs)]),
  }).catch((error: unknown) => {
    call.terminal.signal.throwIfAborted()
    throw new ConnectionError(`${what} failed.`, { cause: error })
  })
  if (!response.ok) throw await readApiError(response, what)
  const received = await response.text()
  if (received === '') return
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  if (isJson) call.output.one(JSON.parse(received) as object)
  else call.output.text(received)
}

/** Returns the address of a path at the control plane. The key is never sent to another host. */
function checkedUrl(base: string, path: string): URL {
  const url = URL.canParse(path, base) ? new URL(path, base) : undefined
  if (!path.startsWith('/') || url === undefined || url.origin !== new URL(base).origin)
    throw usageError(`Invalid path "${path.slice(0, 100)}". It begins with /, such as /v1/tenants.`)
  return url
}

async function readBody(call: Call): Promise<string | undefined> {
  const given = call.text('data')
  const body = given === '-' ? await text(call.terminal.stdin) : given
  if (body === undefined) return undefined
  try {
    JSON.parse(body)
  } catch {
    throw usageError('The value of --data is not valid JSON.')
  }
  return body
}
