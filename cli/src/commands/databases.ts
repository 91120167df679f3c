// Commands about the shared databases of a region, and about rebalances, which move homes between them, and services between hosts.
import { bodyOf, type RequestBody, type ResponseBody } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { readRows, withPaging } from './lists.ts'

type Database = ResponseBody<'/v1/regions/{id}/databases', 'get'>['databases'][number]
type Rebalance = ResponseBody<'/v1/regions/{id}/rebalances/{rebalance}', 'get'>
type PlannedMove = Pick<Rebalance['moves'][number], 'tenant_id' | 'from' | 'to' | 'bytes'>
type Plan = Extract<ResponseBody<'/v1/regions/{id}/rebalance', 'post'>, { hosts_after: unknown }>
type Limits = RequestBody<'/v1/regions/{id}/databases/{database}', 'patch'>

const unlimited = 'unlimited'

const databaseColumns: readonly Column<Database>[] = [
  { title: 'DATABASE', value: ({ name }) => name },
  { title: 'HOMES', value: ({ homes }) => homes },
  { title: 'MAX HOMES', value: ({ max_homes: max }) => max },
  { title: 'SIZE', value: ({ bytes }) => (bytes === null ? null : megabytes(bytes)) },
  { title: 'MAX SIZE', value: ({ max_bytes: max }) => (max === null ? unlimited : megabytes(max)) },
  { title: 'EXCEEDS', value: ({ exceeds }) => exceeds.join(', ') },
]

const moveColumns: readonly Column<PlannedMove>[] = [
  { title: 'TENANT', value: ({ tenant_id: id }) => id },
  { title: 'FROM', value: ({ from }) => from },
  { title: 'TO', value: ({ to }) => to },
  { title: 'SIZE', value: ({ bytes }) => megabytes(bytes) },
]

const serviceColumns: readonly Column<Plan['service_moves'][number]>[] = [
  { title: 'TENANT', value: ({ tenant_id: id }) => id },
  { title: 'SERVICE', value: ({ service }) => service },
  { title: 'FROM', value: ({ from }) => from },
  { title: 'TO', value: ({ to }) => to },
  { title: 'MEMORY', value: ({ memory_bytes: bytes }) => megabytes(bytes) },
]

const switchoverColumns: readonly Column<Plan['switchovers'][number]>[] = [
  { title: 'TENANT', value: ({ tenant_id: id }) => id },
  { title: 'PRIMARY', value: ({ from, from_host: host }) => `${from} on ${host}` },
  { title: 'NEXT PRIMARY', value: ({ to, to_host: host }) => `${to} on ${host}` },
]

const hostColumns: readonly Column<Plan['hosts_after'][number]>[] = [
  { title: 'HOST AFTERWARDS', value: ({ id }) => id },
  { title: 'ZONE', value: ({ zone }) => zone },
  { title: 'FREE', value: ({ free_bytes: bytes }) => megabytes(bytes) },
  { title: 'OF', value: ({ memory_bytes: bytes }) => megabytes(bytes) },
  { title: 'SERVICES', value: ({ services }) => services },
  { title: 'PRIMARIES', value: ({ primaries }) => primaries },
]

const rebalanceColumns: readonly Column<Rebalance>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'MOVES', value: (rebalance) => allMoves(rebalance).length },
  { title: 'MOVED', value: (rebalance) => allMoves(rebalance).filter(({ state }) => state === 'moved').length },
  { title: 'CREATED', value: ({ created }) => created },
]

/** Adds the groups `databases` and `rebalances`. */
export function addDatabaseCommands(program: Command, terminal: Terminal): void {
  const databases = program.command('databases').description('shared databases, their size and their limits')
  databases
    .command('list <region>')
    .description('list the shared databases of a region')
    .action(
      action(terminal, async (call, id = '') => {
        const client = await call.control()
        const body = bodyOf(await client.GET('/v1/regions/{id}/databases', { params: { path: { id } } }))
        call.output.rows(body.databases, databaseColumns, 'No shared databases.')
      }),
    )
  databases
    .command('limit <region> <database>')
    .description('change the limits of a shared database')
    .option('--max-homes <homes>', 'the maximum number of homes')
    .option('--max-bytes <bytes>', `the maximum size, or "${unlimited}"`)
    .action(action(terminal, limit))

  const rebalances = program
    .command('rebalances')
    .description('move homes out of databases that exceed a limit, and balance hosts')
  rebalances
    .command('plan <region>')
    .description('show the moves that a rebalance would make; nothing changes')
    .action(action(terminal, plan))
  rebalances
    .command('start <region>')
    .description('start a rebalance; it continues by itself')
    .action(
      action(terminal, async (call, id = '') => {
        const client = await call.control()
        const params = { path: { id } }
        const started = bodyOf(
          await client.POST('/v1/regions/{id}/rebalance', { params, body: { dry_run: false } }),
        ) as Rebalance
        call.output.one(started)
        call.output.progress(`Show it with: tenantry rebalances get ${id} ${started.id}`)
      }),
    )
  withPaging(rebalances.command('list <region>').description('list the rebalances of a region, newest first')).action(
    action(terminal, list),
  )
  rebalances
    .command('get <region> <rebalance>')
    .description('show a rebalance with its moves')
    .action(
      action(terminal, async (call, id = '', rebalance = '') => {
        const params = { path: { id, rebalance } }
        const client = await call.control()
        call.output.one(bodyOf(await client.GET('/v1/regions/{id}/rebalances/{rebalance}', { params })))
      }),
    )
  rebalances
    .command('cancel <region> <rebalance>')
    .description('begin no further move of a rebalance')
    .action(
      action(terminal, async (call, id = '', rebalance = '') => {
        const params = { path: { id, rebalance } }
        const client = await call.control()
        call.output.one(
          bodyOf(await client.POST('/v1/regions/{id}/rebalances/{rebalance}/cancel', { params, body: null })),
        )
      }),
    )
}

async function limit(call: Call, id = '', database = ''): Promise<void> {
  const maxHomes = call.integer('maxHomes', 1, 10_000)
  const maxBytes = call.text('maxBytes') === unlimited ? null : call.integer('maxBytes', 1, Number.MAX_SAFE_INTEGER)
  if (maxHomes === undefined && maxBytes === undefined) throw usageError('Set --max-homes, --max-bytes or both.')
  const body: Limits = {}
  if (maxHomes !== undefined) body.max_homes = maxHomes
  if (maxBytes !== undefined) body.max_bytes = maxBytes
  const client = await call.control()
  const params = { path: { id, database } }
  call.output.one(bodyOf(await client.PATCH('/v1/regions/{id}/databases/{database}', { params, body })))
}

async function plan(call: Call, id = ''): Promise<void> {
  const client = await call.control()
  const planned = bodyOf(
    await client.POST('/v1/regions/{id}/rebalance', { params: { path: { id } }, body: {} }),
  ) as Plan
  const { moves, service_moves: serviceMoves, switchovers, hosts_after: hosts } = planned
  call.output.rows<PlannedMove>(moves, moveColumns, 'No database exceeds a limit.')
  if (hosts.length > 0) {
    call.output.rows(serviceMoves, serviceColumns, 'No service has to move to another host.')
    call.output.rows(switchovers, switchoverColumns, 'No primary has to move to another host.')
    call.output.rows(hosts, hostColumns, '')
  }
  if (moves.length + serviceMoves.length + switchovers.length > 0)
    call.output.progress(`Start it with: tenantry rebalances start ${id}`)
}

async function list(call: Call, id = ''): Promise<void> {
  const client = await call.control()
  const rows = await readRows(
    call,
    async (query) => bodyOf(await client.GET('/v1/regions/{id}/rebalances', { params: { path: { id }, query } })),
    (page) => page.rebalances,
  )
  call.output.rows(rows, rebalanceColumns, 'No rebalances.')
}

/** Returns all moves of a rebalance: those of homes, of services and of primaries. */
function allMoves({ moves, service_moves: serviceMoves, switchovers }: Rebalance): readonly { state: string }[] {
  return [...moves, ...serviceMoves, ...switchovers]
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
