// Commands about webhooks and their deliveries.
import { bodyOf, type RequestBody, type ResponseBody, type Webhook } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { readRows, withPaging } from './lists.ts'

type Delivery = ResponseBody<'/v1/webhooks/{id}/deliveries', 'get'>['deliveries'][number]
type MessageTypes = NonNullable<RequestBody<'/v1/webhooks', 'post'>['types']>

const states = ['pending', 'delivered', 'dead'] as const

const columns: readonly Column<Webhook>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'URL', value: ({ url }) => url },
  { title: 'ENABLED', value: ({ enabled }) => enabled },
  { title: 'TYPES', value: ({ types }) => types.join(', ') },
]

const deliveryColumns: readonly Column<Delivery>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'TYPE', value: ({ type }) => type },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'ATTEMPTS', value: ({ attempts }) => attempts },
  { title: 'LAST STATUS', value: ({ last_status: status }) => status },
  { title: 'LAST ERROR', value: ({ last_error: error }) => error },
  { title: 'CREATED', value: ({ created_at: at }) => at },
]

/** Adds the group `webhooks`. */
export function addWebhookCommands(program: Command, terminal: Terminal): void {
  const webhooks = program.command('webhooks').description('register webhooks and read their deliveries')
  webhooks
    .command('list')
    .description('list webhooks, oldest first')
    .action(
      action(terminal, async (call) => {
        const { webhooks: rows } = bodyOf(await (await call.control()).GET('/v1/webhooks'))
        call.output.rows(rows, columns, 'No webhooks.')
      }),
    )
  webhooks
    .command('create <url>')
    .description('register a webhook; shows its secret, this once')
    .option('--description <text>', 'what it is for')
    .option('--type <type...>', 'only messages of these types')
    .action(action(terminal, create))
  for (const [name, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    webhooks
      .command(`${name} <webhook>`)
      .description(`${name} a webhook`)
      .action(
        action(terminal, async (call, id = '') => {
          const client = await call.control()
          call.output.one(
            bodyOf(await client.PATCH('/v1/webhooks/{id}', { params: { path: { id } }, body: { enabled } })),
          )
        }),
      )
  webhooks
    .command('delete <webhook>')
    .description('remove a webhook with its pending messages')
    .action(
      action(terminal, async (call, id = '') => {
        await (await call.control()).DELETE('/v1/webhooks/{id}', { params: { path: { id } } })
        call.output.one({ deleted: id }, () => `The webhook ${id} is deleted.`)
      }),
    )
  withPaging(webhooks.command('deliveries <webhook>').description('list messages to a webhook, oldest first'))
    .option('--state <state>', `only messages in this state: ${states.join(', ')}`)
    .action(action(terminal, deliveries))
  webhooks
    .command('replay <webhook>')
    .description('send all messages again that were given up')
    .action(
      action(terminal, async (call, id = '') => {
        const client = await call.control()
        call.output.one(bodyOf(await client.POST('/v1/webhooks/{id}/replay', { params: { path: { id } }, body: {} })))
      }),
    )
}

async function create(call: Call, url = ''): Promise<void> {
  const client = await call.control()
  const description = call.text('description')
  const types = call.texts('type')
  const body = {
    url,
    ...(description === undefined ? {} : { description }),
    // The API checks the types and states which exist.
    ...(types.length === 0 ? {} : { types: types as MessageTypes }),
  }
  call.output.one(bodyOf(await client.POST('/v1/webhooks', { body })))
}

async function deliveries(call: Call, id = ''): Promise<void> {
  const text = call.text('state')
  const state = states.find((one) => one === text)
  if (text !== undefined && state === undefined)
    throw usageError(`Invalid state "${text.slice(0, 100)}". Allowed: ${states.join(', ')}.`)
  const client = await call.control()
  const filter = state === undefined ? {} : { state }
  const rows = await readRows(
    call,
    async (page) =>
      bodyOf(
        await client.GET('/v1/webhooks/{id}/deliveries', { params: { path: { id }, query: { ...filter, ...page } } }),
      ),
    (page) => page.deliveries,
  )
  call.output.rows(rows, deliveryColumns, 'No messages.')
}
