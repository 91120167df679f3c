// Commands about rollouts of images.
import { bodyOf, type RequestBody, type ResponseBody } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import type { Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { readRows, withPaging } from './lists.ts'

type Summary = ResponseBody<'/v1/rollouts', 'get'>['rollouts'][number]
type NewRollout = RequestBody<'/v1/rollouts', 'post'>

const components = ['runtime', 'postgres', 'cluster-member'] as const
const maxSeconds = 2_592_000

const columns: readonly Column<Summary>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'REGION', value: ({ region }) => region },
  { title: 'COMPONENT', value: ({ component }) => component },
  { title: 'IMAGE', value: ({ image }) => image },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'WAVE', value: ({ wave }) => wave },
  { title: 'MOVED', value: ({ moved }) => moved },
  { title: 'ERROR', value: ({ error }) => error },
]

/** Adds the group `rollouts`. */
export function addRolloutCommands(program: Command, terminal: Terminal): void {
  const rollouts = program.command('rollouts').description("change the images of tenants' own services")
  withPaging(rollouts.command('list').description('list rollouts, oldest first'))
    .option('--region <region>', 'only rollouts of this region')
    .action(action(terminal, list))
  rollouts
    .command('get <rollout>')
    .description('show a rollout with its tenants')
    .action(
      action(terminal, async (call, id = '') => {
        call.output.one(bodyOf(await (await call.control()).GET('/v1/rollouts/{id}', { params: { path: { id } } })))
      }),
    )
  rollouts
    .command('start')
    .description('start a rollout; it continues by itself')
    .requiredOption('--region <region>', 'the region')
    .requiredOption('--component <component>', components.join(', '))
    .requiredOption('--image <image>', 'the image that the engine has')
    .option('--canary <tenant-id>', 'the tenant that is moved first')
    .option('--wave-size <tenants>', 'tenants that are moved together')
    .option('--soak-seconds <seconds>', 'seconds between waves')
    .option('--deadline-seconds <seconds>', 'seconds until a tenant must be ready')
    .action(action(terminal, start))
  rollouts
    .command('cancel <rollout>')
    .description('undo a rollout that runs')
    .action(
      action(terminal, async (call, id = '') => {
        const client = await call.control()
        call.output.one(bodyOf(await client.POST('/v1/rollouts/{id}/cancel', { params: { path: { id } } })))
      }),
    )
}

async function list(call: Call): Promise<void> {
  const client = await call.control()
  const region = call.text('region')
  const filter = region === undefined ? {} : { region }
  const rows = await readRows(
    call,
    async (page) => bodyOf(await client.GET('/v1/rollouts', { params: { query: { ...filter, ...page } } })),
    (page) => page.rollouts,
  )
  call.output.rows(rows, columns, 'No rollouts.')
}

async function start(call: Call): Promise<void> {
  const client = await call.control()
  const text = call.text('component') ?? ''
  const component = components.find((one) => one === text)
  if (component === undefined)
    throw usageError(`Invalid component "${text.slice(0, 100)}". Allowed: ${components.join(', ')}.`)
  const body: NewRollout = { region: call.text('region') ?? '', component, image: call.text('image') ?? '' }
  const canary = call.text('canary')
  const waveSize = call.integer('waveSize', 1, 1000)
  const soak = call.integer('soakSeconds', 0, maxSeconds)
  const deadline = call.integer('deadlineSeconds', 1, maxSeconds)
  if (canary !== undefined) body.canary = canary
  if (waveSize !== undefined) body.wave_size = waveSize
  if (soak !== undefined) body.soak_seconds = soak
  if (deadline !== undefined) body.deadline_seconds = deadline
  const rollout = bodyOf(await client.POST('/v1/rollouts', { body }))
  call.output.one(rollout)
  call.output.progress(`The rollout continues by itself. Show it with: tenantry rollouts get ${rollout.id}`)
}
