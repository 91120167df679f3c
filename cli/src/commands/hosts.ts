// `hosts` shows the hosts of the regions: whether they respond, and their free resources. It empties a host, or gives one up.
import { bodyOf, type Host } from '@tenantry/client'
import type { Command } from 'commander'
import { action, type Call } from '../call.ts'
import type { Column } from '../terminal/table.ts'
import { formatMembers } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Adds the group `hosts`, whose default lists them. */
export function addHostCommands(program: Command, terminal: Terminal): void {
  const hosts = program
    .command('hosts')
    .description('show the hosts of the regions, with what is reserved and free')
    .action(action(terminal, list))
  hosts.command('list').description('list the hosts').action(action(terminal, list))
  hosts
    .command('get <host>')
    .description('show one host: the ID of its region, or REGION.HOST in a region with several')
    .action(action(terminal, get))
  for (const { verb, description } of changes)
    hosts
      .command(`${verb} <region> <host>`)
      .description(description)
      .action(
        action(terminal, async (call, id = '', host = '') => {
          const client = await call.control()
          const request = { params: { path: { id, host } }, body: null }
          call.output.one(bodyOf(await client.POST(`/v1/regions/{id}/hosts/{host}/${verb}`, request)))
        }),
      )
}

/** The changes of a host of several. */
const changes = [
  { verb: 'drain', description: 'move the services of clusters away from a host of several' },
  { verb: 'lost', description: 'give up a host that does not respond: its services are created on others' },
  { verb: 'activate', description: 'use a host again' },
] as const

async function list(call: Call): Promise<void> {
  const { hosts } = bodyOf(await (await call.control()).GET('/v1/hosts'))
  const now = call.terminal.now()
  const columns: readonly Column<Host>[] = [
    { title: 'ID', value: ({ id }) => id },
    { title: 'NAME', value: ({ name }) => name },
    { title: 'ENGINE', value: ({ engine }) => engine },
    { title: 'STATE', value: ({ state, use }) => (use === 'active' ? state : `${state}, ${use}`) },
    { title: 'TENANTS', value: ({ tenants }) => tenants.total },
    { title: 'CPU FREE', value: ({ cpu_millis: cpu }) => ofTotal(cores(cpu.free), cores(cpu.total)) },
    { title: 'MEMORY FREE', value: ({ memory_bytes: memory }) => ofTotal(bytes(memory.free), bytes(memory.total)) },
    { title: 'DISK FREE', value: ({ disk_bytes: disk }) => ofTotal(bytes(disk.free), bytes(disk.total)) },
    { title: 'SEEN', value: ({ last_seen_at: at }) => age(at, now) },
  ]
  call.output.rows(hosts, columns, 'No hosts.')
}

async function get(call: Call, id = ''): Promise<void> {
  const host = bodyOf(await (await call.control()).GET('/v1/hosts/{id}', { params: { path: { id } } }))
  call.output.one(host, () => formatHost(host, call.terminal.now()))
}

function formatHost(host: Host, now: number): string {
  const { cpu_millis: cpu, memory_bytes: memory, disk_bytes: disk } = host
  const quota =
    disk.tenants_without_quota === 0 ? '' : `, without ${disk.tenants_without_quota} tenants without a quota`
  const services = (tenants: string, platform: string) => `${tenants} by tenants, ${platform} by the platform`
  return formatMembers({
    id: host.id,
    name: host.name,
    engine: host.engine,
    state: host.state,
    use: host.use,
    error: host.error,
    seen: age(host.last_seen_at, now),
    tenants: `${host.tenants.total}, ${host.tenants.dedicated} with services of their own`,
    'cpu free': ofTotal(cores(cpu.free), cores(cpu.total)),
    'cpu reserved': services(cores(cpu.reserved_by_tenants), cores(cpu.reserved_by_platform)),
    'memory free': ofTotal(bytes(memory.free), bytes(memory.total)),
    'memory reserved': services(bytes(memory.reserved_by_tenants), bytes(memory.reserved_by_platform)),
    'disk free': ofTotal(bytes(disk.free), bytes(disk.total)),
    'disk reserved': `${bytes(disk.reserved_by_tenants)} by quotas${quota}`,
    warnings: host.warnings.join(' '),
  })
}

function ofTotal(free: string, total: string): string {
  return `${free} of ${total}`
}

function cores(millis: number | null): string {
  return millis === null ? 'unknown' : `${(millis / 1000).toFixed(2)} cores`
}

function bytes(value: number | null): string {
  return value === null ? 'unknown' : `${(value / 1e9).toFixed(2)} GB`
}

function age(at: string | null, now: number): string {
  return at === null ? 'never' : `${Math.max(0, Math.round((now - Date.parse(at)) / 1000))} s ago`
}
