// Commands that list operations and follow one.
import { bodyOf, type Operation } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { followOperation } from './follow-operation.ts'
import { readRows, withPaging } from './lists.ts'
import { findTenantId } from './tenant-reference.ts'

const states = ['pending', 'running', 'succeeded', 'failed', 'superseded'] as const

const columns: readonly Column<Operation>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'TENANT', value: ({ tenant_id: tenant }) => tenant },
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'STEP', value: ({ step }) => step },
  { title: 'CREATED', value: ({ created }) => created },
  { title: 'ERROR', value: ({ error }) => error },
]

/** Adds the group `operations`. */
export function addOperationCommands(program: Command, terminal: Terminal): void {
  const operations = program.command('operations').description('list and follow changes of tenants')
  withPaging(operations.command('list').description('list operations, oldest first'))
    .option('--tenant <tenant>', 'only operations of this tenant')
    .option('--state <state>', `only operations in this state: ${states.join(', ')}`)
    .action(action(terminal, list))
  operations
    .command('follow <operation>')
    .description('wait until an operation has ended')
    .action(
      action(terminal, async (call, id = '') => {
        call.output.one(await followOperation(call, await call.control(), id))
      }),
    )
  operations
    .command('cancel <operation>')
    .description('cancel a move that has not switched to its new database yet')
    .action(
      action(terminal, async (call, id = '') => {
        const client = await call.control()
        const params = { path: { id } }
        call.output.one(bodyOf(await client.POST('/v1/operations/{id}/cancel', { params, body: {} })))
      }),
    )
}

async function list(call: Call): Promise<void> {
  const client = await call.control()
  const tenant = call.text('tenant')
  const text = call.text('state')
  const state = states.find((one) => one === text)
  if (text !== undefined && state === undefined)
    throw usageError(`Invalid state "${text.slice(0, 100)}". Allowed: ${states.join(', ')}.`)
  const filter = {
    ...(tenant === undefined ? {} : { tenant_id: await findTenantId(client, tenant) }),
    ...(state === undefined ? {} : { state }),
  }
  const rows = await readRows(
    call,
    async (page) => bodyOf(await client.GET('/v1/operations', { params: { query: { ...filter, ...page } } })),
    (page) => page.operations,
  )
  call.output.rows(rows, columns, 'No operations.')
}
