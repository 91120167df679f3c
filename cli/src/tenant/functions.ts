// Commands that deploy, invoke and observe the functions of a tenant.
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { ApiError } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { followEvents } from '../commands/server-sent-events.ts'
import { CommandError, exitCodes, usageError } from '../terminal/exit-codes.ts'
import { readStandardInput } from '../terminal/prompt.ts'
import { printable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { asObject, asObjects, textOf, type JsonObject } from './json.ts'

/** The longest run of a function takes 300 s. */
const invocationTimeoutMs = 320_000
const invocationHeader = 'x-invocation-id'

/** Adds the group `functions`. */
export function addFunctionCommands(program: Command, terminal: Terminal): void {
  const functions = program.command('functions').description('deploy and call the functions of a tenant')
  functions.command('list').description('list the functions').action(action(terminal, list))
  functions
    .command('get <function>')
    .description('show a function')
    .action(
      action(terminal, async (call, name = '') => {
        const body = await (await call.tenant()).json(`/functions/v1/${encodeURIComponent(name)}`)
        call.output.one(asObject(body, 'The function'))
      }),
    )
  functions
    .command('deploy <function> <wasm>')
    .description('deploy a WebAssembly module, or replace it')
    .option('--trigger <json>', 'the trigger as JSON; "Http" for a new function')
    .option('--config <json>', 'timeout, memory, environment and permissions as JSON')
    .option('--description <text>', 'what it does')
    .action(action(terminal, deploy))
  functions
    .command('invoke <function>')
    .description('call a function, and print its response')
    .option('--data <text>', 'the body; `@FILE` is a file, `-` is standard input')
    .option('--method <method>', 'the method', 'POST')
    .action(action(terminal, invoke))
  functions
    .command('logs <function>')
    .description('show what a function has logged')
    .option('--limit <lines>', 'at most this many lines', '100')
    .option('--level <level>', 'only lines of these levels, separated by commas')
    .option('-f, --follow', 'continue with new lines until Ctrl-C')
    .action(action(terminal, logs))
  functions
    .command('delete <function>')
    .description('delete a function with its records')
    .action(
      action(terminal, async (call, name = '') => {
        await (await call.tenant()).send(`/functions/v1/${encodeURIComponent(name)}`, { method: 'DELETE' })
        call.output.one({ deleted: name }, () => `The function "${name}" is deleted.`)
      }),
    )
}

async function list(call: Call): Promise<void> {
  const rows = asObjects(await (await call.tenant()).json('/functions/v1'), 'The list of functions')
  call.output.rows(
    rows,
    [
      { title: 'NAME', value: ({ name }) => textOf(name) },
      { title: 'TRIGGER', value: ({ trigger }) => textOf(trigger) },
      { title: 'ENABLED', value: ({ enabled }) => textOf(enabled) },
    ],
    'No functions. Deploy one with: tenantry functions deploy NAME FILE.wasm',
  )
}

async function deploy(call: Call, name = '', file = ''): Promise<void> {
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = new Uint8Array(await readFile(call.path(file)))
  } catch (cause) {
    throw usageError(`The file ${file} cannot be read.`, { cause })
  }
  const client = await call.tenant()
  const isNew = await client.send(`/functions/v1/${encodeURIComponent(name)}`).then(
    () => false,
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return true
      throw error
    },
  )
  const form = new FormData()
  const trigger = call.text('trigger') ?? (isNew ? '"Http"' : undefined)
  const fields = { description: call.text('description'), trigger, config: call.text('config') }
  for (const [field, value] of Object.entries(fields)) if (value !== undefined) form.set(field, value)
  form.set('wasm', new Blob([bytes]), basename(file))
  if (isNew) form.set('name', name)
  const path = isNew ? '/functions/v1/deploy' : `/functions/v1/${encodeURIComponent(name)}`
  call.output.progress(`${isNew ? 'Deploying' : 'Replacing'} "${name}", ${bytes.length} bytes …`)
  const body = await client.json(path, { method: isNew ? 'POST' : 'PATCH', body: form })
  call.output.one(asObject(body, 'The response'))
}

async function invoke(call: Call, name = ''): Promise<void> {
  const client = await call.tenant()
  const data = await readData(call)
  const response = await client.send(`/functions/v1/invoke/${encodeURIComponent(name)}`, {
    method: call.text('method') ?? 'POST',
    ...(data === undefined ? {} : { body: data, headers: { 'content-type': 'application/json' } }),
    timeoutMs: invocationTimeoutMs,
    // Only responses of functions have the header.
    isResult: ({ headers }) => headers.has(invocationHeader),
  })
  const invocation = response.headers.get(invocationHeader)
  if (invocation !== null) call.output.progress(`Invocation ${invocation}`)
  const { status } = response
  if (call.output.isJson) call.output.one({ status, invocation_id: invocation, body: parsed(await response.text()) })
  else {
    const bytes = new Uint8Array(await response.arrayBuffer())
    const isShown = call.terminal.stdout.isTTY === true
    call.output.text(isShown ? printable(new TextDecoder().decode(bytes), '\n\t') : bytes)
    if (bytes.length > 0 && bytes.at(-1) !== 10) call.output.text('\n')
  }
  if (status >= 400)
    throw new CommandError(`The function "${name.slice(0, 100)}" responded with ${status}.`, exitCodes.failedOperation)
}

/** Returns the value of a JSON text, or else the text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

async function readData(call: Call): Promise<string | undefined> {
  const data = call.text('data')
  if (data === '-') return readStandardInput(call.terminal, 'the body')
  if (data?.startsWith('@') !== true) return data
  try {
    return await readFile(call.path(data.slice(1)), 'utf8')
  } catch (cause) {
    throw usageError(`The file ${data.slice(1)} cannot be read.`, { cause })
  }
}

async function logs(call: Call, name = ''): Promise<void> {
  const client = await call.tenant()
  const level = call.text('level')
  const query = new URLSearchParams(level === undefined ? {} : { level })
  const path = `/functions/v1/${encodeURIComponent(name)}/logs`
  const show = (line: JsonObject) =>
    call.output.line(line, () => `${textOf(line.timestamp)} ${textOf(line.level)} ${textOf(line.message)}`)
  if (!call.isSet('follow')) {
    query.set('limit', String(call.integer('limit', 1, 1000) ?? 100))
    const body = asObject(await client.json(`${path}?${query.toString()}`), 'The response')
    // The API lists the newest first. A log is read from its oldest line.
    for (const line of asObjects(body.logs, 'The list of lines').toReversed()) show(line)
    return
  }
  const response = await client.send(`${path}?${query.toString()}`, {
    headers: { accept: 'text/event-stream' },
    timeoutMs: Infinity,
  })
  if (response.body === null) return
  call.output.progress('Following new lines until Ctrl-C …')
  for await (const { event, data } of followEvents(response.body)) {
    if (data === '') continue
    const line = asObject(JSON.parse(data), 'An event')
    if ('message' in line && 'timestamp' in line) show(line)
    else call.output.progress(`${event}: ${data}`)
  }
}
