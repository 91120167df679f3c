// Commands that show what is observed of tenants: health, SQL sessions and logs.
import { bodyOf, type ControlClient, type paths, type ResponseBody } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { CommandError, exitCodes } from '../terminal/exit-codes.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { followResumed } from './server-sent-events.ts'
import { findTenantId } from './tenant-reference.ts'

type LogLine = ResponseBody<'/v1/tenants/{id}/logs', 'get'>['lines'][number]
type Session = ResponseBody<'/v1/tenants/{id}/sessions', 'get'>['sessions'][number]
type LogQuery = paths['/v1/tenants/{id}/logs']['get']['parameters']['query']

const sessionColumns: readonly Column<Session>[] = [
  { title: 'PID', value: ({ pid }) => pid },
  { title: 'LOGIN', value: ({ login }) => login },
  { title: 'CLIENT', value: ({ client_address: client }) => client },
  { title: 'APPLICATION', value: ({ application_name: name }) => name },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'STARTED', value: ({ started_at: at }) => at },
  { title: 'STATEMENT', value: ({ statement }) => statement },
]

/** Adds `health`, `sessions` and `logs`. */
export function addObserveCommands(program: Command, terminal: Terminal): void {
  program
    .command('health [tenant]')
    .description("show the health of the control plane, or of a tenant's services")
    .action(action(terminal, health))
  const sessions = program.command('sessions').description('list and end SQL sessions of a tenant')
  sessions
    .command('list <tenant>')
    .description('list the SQL sessions of a tenant')
    .option('--statements', 'with the text of their statements')
    .action(action(terminal, listSessions))
  sessions
    .command('end <tenant> <pid>')
    .description('end an SQL session')
    .action(
      action(terminal, async (call, reference = '', pid = '') => {
        const client = await call.control()
        const id = await findTenantId(client, reference)
        await client.DELETE('/v1/tenants/{id}/sessions/{pid}', { params: { path: { id, pid } } })
        call.output.one({ ended: pid }, () => `The session ${pid} is ended.`)
      }),
    )
  program
    .command('logs <tenant>')
    .description("show the log of one of a tenant's own services")
    .option('--component <name>', 'runtime, postgres or another service of the tenant', 'runtime')
    .option('--tail <lines>', 'lines from the end, 0 to 1000')
    .option('--since <time>', 'only lines since this time, ISO 8601 in UTC')
    .option('-f, --follow', 'continue with new lines until Ctrl-C')
    .action(action(terminal, logs))
}

async function health(call: Call, reference?: string): Promise<void> {
  const client = await call.control()
  const body =
    reference === undefined
      ? bodyOf(await client.GET('/health'))
      : bodyOf(
          await client.GET('/v1/tenants/{id}/health', {
            params: { path: { id: await findTenantId(client, reference) } },
          }),
        )
  call.output.one(body)
  if (body.status === 'unhealthy')
    throw new CommandError('The health is not good. See the output.', exitCodes.failedOperation)
}

async function listSessions(call: Call, reference = ''): Promise<void> {
  const client = await call.control()
  const id = await findTenantId(client, reference)
  const query = call.isSet('statements') ? ({ statements: 'true' } as const) : {}
  const { sessions } = bodyOf(await client.GET('/v1/tenants/{id}/sessions', { params: { path: { id }, query } }))
  call.output.rows(sessions, sessionColumns, 'No sessions.')
}

async function logs(call: Call, reference = ''): Promise<void> {
  const client = await call.control(call.isSet('follow') ? Infinity : undefined)
  const id = await findTenantId(client, reference)
  const tail = call.text('tail')
  const since = call.text('since')
  const query = {
    component: (call.text('component') ?? 'runtime') as LogQuery['component'],
    ...(tail === undefined ? {} : { tail }),
    ...(since === undefined ? {} : { since }),
  }
  const lines = call.isSet('follow')
    ? followLines(client, id, query, call.terminal.signal)
    : readLines(client, id, query)
  for await (const line of lines) call.output.line(line, () => `${line.at} ${line.text}`)
}

async function* readLines(client: ControlClient, id: string, query: LogQuery): AsyncGenerator<LogLine> {
  yield* bodyOf(await client.GET('/v1/tenants/{id}/logs', { params: { path: { id }, query } })).lines
}

async function* followLines(
  client: ControlClient,
  id: string,
  query: LogQuery,
  signal: AbortSignal,
): AsyncGenerator<LogLine> {
  const open = async (lastId: string | undefined) => {
    const { data } = await client.GET('/v1/tenants/{id}/logs', {
      params: { path: { id }, query: { ...query, follow: 'true' } },
      headers: { accept: 'text/event-stream', ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
      parseAs: 'stream',
    })
    return data ?? new ReadableStream<Uint8Array>()
  }
  for await (const event of followResumed(open, signal))
    if (event.event === 'log') yield JSON.parse(event.data) as LogLine
}
