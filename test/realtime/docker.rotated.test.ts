// Channels in a region on a Docker Engine, for a tenant that shares two runtimes and one that has its own. Containers of runtimes and
// Postgres are killed. All clients join again and receive what is due.
import pg from 'pg'
import t, { type Test } from 'tap'
import { startDockerPlatform, type DockerPlatform } from '#test/support/docker-platform.ts'
import { until } from '#test/support/until.ts'
import { prepareTenant, tryFetch, type TenantAddress } from './support/chaos-address.ts'
import { FollowedClient, lobby, ownTopic, teamTopic } from './support/followed-client.ts'

const isolations = ['schema-per-tenant', 'database-per-tenant'] as const
/** Two users of a team. Each has two connections, which a region's two runtimes share. */
const users = ['0.0', '0.1', '0.0', '0.1']

interface Tenant {
  id: string
  isDedicated: boolean
  address: TenantAddress
}

async function createTenant(
  platform: DockerPlatform,
  name: string,
  isolation: (typeof isolations)[number],
): Promise<Tenant> {
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name, plan: 'Pro', region: 'local', isolation },
    { prefer: 'wait=60' },
  )
  if (status !== 201 || body['status'] !== 'ready') throw new Error(`${name}: ${status} ${JSON.stringify(body)}`)
  const keys = body['keys'] as TenantAddress['keys']
  const address = { url: `${platform.gatewayUrl}/t/${name}`, databaseUrl: String(body['database_url']), keys }
  await prepareTenant(address)
  await send(address, 'POST', '/storage/v1/bucket', { name: 'pictures', policy: 'public' })
  return { id: String(body['tenant_id']), isDedicated: isolation === 'database-per-tenant', address }
}

/** Sends a request as the tenant's service until it succeeds: services that were killed may still be starting. */
async function send(address: TenantAddress, method: string, path: string, body: object): Promise<void> {
  let failure = ''
  await until(async () => {
    const response = await tryFetch(address, address.keys.secret_key, method, path, body)
    failure = `${method} ${path}: ${response?.status ?? 'no response'} ${response?.text ?? ''}`
    if (response !== undefined && response.status < 300) return true
    if (response !== undefined && response.status < 500) throw new Error(failure)
    return false
  }, 'a response').catch((error: unknown) => {
    throw new Error(failure, { cause: error })
  })
}

/** Sends a stored message with SQL, as soon as Postgres accepts connections. */
async function sendBySql({ databaseUrl }: TenantAddress, topic: string, text: string): Promise<void> {
  const connect = async () => {
    const client = new pg.Client({ connectionString: databaseUrl })
    // A session that the end of Postgres interrupts.
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  let client: pg.Client | undefined
  await until(async () => {
    client = await connect().catch(() => undefined)
    return client !== undefined
  }, 'a connection to Postgres')
  await client?.query("select realtime_send(jsonb_build_object('text', $1::text), 'text', $2)", [text, topic])
  await client?.end()
}

/** Kills the container of a service: of the tenant's own, or of the region's. The control plane starts it again. */
async function kill(platform: DockerPlatform, { id, isDedicated }: Tenant, service: string): Promise<void> {
  const { containers } = await platform.host.observe(
    { installation: platform.installation },
    AbortSignal.timeout(30_000),
  )
  const isOfStack = (stack: string) => (isDedicated ? stack === id : !stack.startsWith('t_'))
  const container = containers.find(({ labels }) => isOfStack(labels.stack) && labels.service?.startsWith(service))
  if (container === undefined) throw new Error(`no ${service}: ${containers.map(({ name }) => name).join(' ')}`)
  await platform.kill(container.name)
}

/** Sends one of each, and checks that each client receives it. */
async function checkRound(t: Test, { address }: Tenant, clients: readonly FollowedClient[], round: string) {
  const [sender] = clients
  if (sender === undefined) throw new Error('no client')
  await sender.send('lobby', `${round}: sent`)
  await sender.send('team', `${round}: sent`)
  const post = (topic: string, isPrivate: boolean, text: string) =>
    send(address, 'POST', `/realtime/v1/api/broadcast/${topic}/events/text?private=${isPrivate}`, { text })
  await post(lobby, false, `${round}: posted`)
  await post(teamTopic(sender.user), true, `${round}: posted`)
  await sendBySql(address, teamTopic(sender.user), `${round}: from SQL`)
  await send(address, 'POST', '/rest/v1/posts', { owner_id: 'x', message: `${round}: post` })
  await send(address, 'PUT', `/storage/v1/object/pictures/${round}`, {})
  const due = {
    lobby: ['sent', 'posted'],
    team: ['sent', 'posted', 'from SQL'],
    changes: [`INSERT ${round}: post`, `INSERT ${round}`],
  }
  for (const client of clients) {
    const expected = (name: keyof typeof due) =>
      name === 'changes'
        ? due[name]
        : due[name].filter((text) => client !== sender || text !== 'sent').map((text) => `${round}: ${text}`)
    const missing = () =>
      (Object.keys(due) as (keyof typeof due)[]).flatMap((name) =>
        expected(name)
          .filter((text) => !client.received[name].includes(text))
          .map((text) => `${name}: ${text}`),
      )
    await until(() => missing().length === 0, undefined, 15_000).catch(() => undefined)
    t.same(missing(), [], `${round}: ${client.user} received everything`)
  }
  const present = [...new Set(users)].sort()
  for (const client of clients)
    await until(() => String(client.present()) === String(present), `${round}: presence of all`, 20_000)
}

t.test('Channels in a region on Docker', { timeout: 300_000 }, async (t) => {
  const platform = await startDockerPlatform({ docker: { shared_runtimes: 2 } })
  t.teardown(() => platform.stop())
  const tenants = await Promise.all(isolations.map((isolation, n) => createTenant(platform, `live-${n}`, isolation)))

  for (const tenant of tenants)
    await t.test(
      tenant.isDedicated ? 'A tenant with its own services' : "A tenant of a region's services",
      async (t) => {
        const { address } = tenant
        const clients = users.map((user) => new FollowedClient(address, user))
        t.teardown(() => Promise.all(clients.map((client) => client.leave())))
        const untilJoined = async (what: string) => {
          await until(() => clients.every(({ isJoined }) => isJoined), what, 60_000).catch((cause: unknown) => {
            throw new Error(JSON.stringify(clients.map(({ statuses }) => statuses)), { cause })
          })
        }
        await untilJoined('all channels')
        await checkRound(t, tenant, clients, 'first')

        await t.test('Clients of a killed runtime join again and receive what is stored', async (t) => {
          const before = clients.map(({ ends }) => ends)
          await kill(platform, tenant, 'runtime')
          for (const user of new Set(users)) await sendBySql(address, ownTopic(user), `stored for ${user}`)
          // The clients of a region's other runtime stay connected.
          await until(() => clients.some(({ ends }, at) => ends > (before[at] ?? 0)), 'clients that notice the end')
          await untilJoined('all channels after the runtime was killed')
          for (const client of clients)
            await until(() => client.received.own.includes(`stored for ${client.user}`), 'the stored message')
          await checkRound(t, tenant, clients, 'after the runtime')
        })

        await t.test('A client that connects then takes part', async (t) => {
          clients.push(new FollowedClient(address, users[1] ?? ''))
          await untilJoined('all channels of a new client')
          await checkRound(t, tenant, clients, 'after a new client')
        })

        await t.test('While Postgres is killed, broadcasts arrive, and no later change is lost', async (t) => {
          await kill(platform, tenant, 'postgres')
          await clients[0]?.send('lobby', 'without Postgres')
          for (const { received } of clients.slice(1))
            await until(() => received.lobby.includes('without Postgres'), 'a broadcast without Postgres')
          await checkRound(t, tenant, clients, 'after Postgres')
          await untilJoined('all channels after Postgres was killed')
        })
      },
    )
})
