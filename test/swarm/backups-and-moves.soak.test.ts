// Backups, archives, restores and moves of tenants with services of their own in a region on three hosts: a cluster, whose files are in the
// region's bucket, and a single database, whose files are on its host.
import t, { type Test } from 'tap'
import { until } from '#test/support/docker.ts'
import type { ApiResponse } from '#test/support/docker-platform.ts'
import type { Isolation, OwnIsolation } from '#control-plane/stacks/isolation.ts'
import { serviceNames, volumesOfModel } from '#control-plane/stacks/stack-for.ts'
import { query } from '#test/support/postgres.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { startSwarmPlatform, type SwarmPlatform } from '#test/support/swarm-platform.ts'

type Owner = ReturnType<typeof ownerOf>

/** Returns the calls of a tenant's developer, to the gateway of a host. @param body the response to the creation of the tenant */
function ownerOf(platform: SwarmPlatform, entry: { host: LabHost }, body: Record<string, unknown>) {
  const url = () => {
    const found = new URL(String(body['database_url']))
    found.host = `${entry.host.address}:${platform.postgresPort}`
    return found.href
  }
  const key = String((body['keys'] as Record<string, unknown>)['secret_key'])
  const storage = (method: string, path: string, text?: string, type = 'text/plain') =>
    fetch(`http://${entry.host.address}:${platform.gatewayPort}/t/${String(body['name'])}/storage/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(text === undefined ? {} : { 'content-type': type }) },
      ...(text === undefined ? {} : { body: text }),
    })
  const expectOk = async (response: Response) => {
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  }
  return {
    id: String(body['tenant_id']),
    sql: (text: string) => query(url(), text),
    createBucket: async () =>
      expectOk(
        await storage('POST', 'bucket', JSON.stringify({ name: 'papers', policy: 'private' }), 'application/json'),
      ),
    put: async (name: string, text: string) => expectOk(await storage('POST', `object/papers/${name}`, text)),
    remove: async (name: string) => expectOk(await storage('DELETE', `object/papers/${name}`)),
    /** Returns the text of a file; undefined if there is none. */
    read: async (name: string) => {
      const response = await storage('GET', `object/papers/${name}`)
      const text = await response.text()
      if (response.status !== 200 && response.status !== 400 && response.status !== 404)
        throw new Error(`${response.status} ${text}`)
      return response.status === 200 ? text : undefined
    },
  }
}

t.test('Backups and moves in a region on three hosts', { timeout: 1_800_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  const entry: { host: LabHost } = { host: platform.lab.hosts[0] }

  const create = async (name: string, isolation: Isolation) => {
    const body = { name, plan: 'Free', region: 'local', isolation }
    const created = await platform.call('POST', '/v1/tenants', body)
    if (created.status !== 201) throw new Error(JSON.stringify(created))
    const owner = ownerOf(platform, entry, created.body)
    await platform.until(owner.id, ({ status }) => status === 'ready', 240)
    await owner.createBucket()
    await owner.sql('create table notes (id int primary key, text text); insert into notes values (1, $$first$$)')
    await owner.put('first.txt', `first of ${name}`)
    return owner
  }

  /** Waits until the operation of a response has succeeded. */
  const done = async ({ status, body }: ApiResponse) => {
    if (status !== 202 && status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    const { id } = body['operation'] as { id: string }
    let last: unknown
    const operation = await until(async () => {
      const response = await platform.call('GET', `/v1/operations/${id}`).catch(() => undefined)
      last = response?.body ?? last
      const state = response?.body['state']
      return state === 'succeeded' || state === 'failed' ? response?.body : undefined
    }, 300).catch(async (cause: unknown) => {
      throw new Error(`${JSON.stringify(last)}\n${await platform.logs()}`, { cause })
    })
    if (operation['state'] !== 'succeeded') throw new Error(`${JSON.stringify(operation)}\n${await platform.logs()}`)
    return body
  }

  const backUp = async ({ id }: Owner) =>
    String((await done(await platform.call('POST', `/v1/tenants/${id}/backups`)))['id'])
  const verify = async (t: Test, backup: string) => {
    await done(await platform.call('POST', `/v1/backups/${backup}/verify`))
    t.match(await platform.call('GET', `/v1/backups/${backup}`), { body: { verified: String, verify_error: null } })
  }
  const restoreSame = async (backup: string) =>
    done(await platform.call('POST', `/v1/backups/${backup}/restore`, { into: 'same' }))
  const restoreNew = async (backup: string, name: string, isolation?: Isolation) => {
    const into = { name, plan: 'Free', ...(isolation === undefined ? {} : { isolation }) }
    const body = await done(await platform.call('POST', `/v1/backups/${backup}/restore`, { into }))
    const owner = ownerOf(platform, entry, body)
    await platform.until(owner.id, ({ status }) => status === 'ready', 240)
    return owner
  }
  const drop = async ({ id }: Owner) => {
    await platform.call('DELETE', `/v1/tenants/${id}?purge=true`)
    await platform.until(id, ({ code }) => code === 'TENANT_NOT_FOUND', 240)
  }
  const isFirst = async (t: Test, owner: Owner, name: string) => {
    t.same(await owner.sql('select * from notes'), [{ id: 1, text: 'first' }])
    t.equal(await owner.read('first.txt'), `first of ${name}`)
    t.equal(await owner.read('second.txt'), undefined)
  }
  const change = async (owner: Owner) => {
    await owner.sql('update notes set text = $$changed$$; insert into notes values (2, $$second$$)')
    await owner.put('second.txt', 'second')
    await owner.remove('first.txt')
  }
  const scratchObjects = async () =>
    (
      await Promise.all(
        platform.lab.hosts.flatMap(({ docker }) => [
          docker('ps', '--all', '--format', '{{.Names}}'),
          docker('volume', 'ls', '--format', '{{.Name}}'),
        ]),
      )
    )
      .join('\n')
      .split('\n')
      .filter((name) => name.startsWith('tenantry-s_'))

  const owners = {
    'cluster-per-tenant': await create('ada', 'cluster-per-tenant'),
    'database-per-tenant': await create('sol', 'database-per-tenant'),
  }
  const sharing = await create('bob', 'schema-per-tenant')
  const backups: Record<string, string> = {}

  for (const [isolation, name, copy] of [
    ['cluster-per-tenant', 'ada', 'ada-copy'],
    ['database-per-tenant', 'sol', 'sol-copy'],
  ] as const)
    await t.test(`A tenant with ${isolation} is backed up and restored`, async (t) => {
      const owner = owners[isolation]
      const backup = await backUp(owner)
      backups[isolation] = backup
      await verify(t, backup)
      await change(owner)
      await restoreSame(backup)
      await isFirst(t, owner, name)
      await owner.put('third.txt', 'third')
      t.equal(await owner.read('third.txt'), 'third', 'and it is written to')

      const restored = await restoreNew(backup, copy)
      await isFirst(t, restored, name)
      await restored.put('third.txt', 'of the copy')
      t.equal(await owner.read('third.txt'), 'third', 'the files of the two tenants are apart')
      if (isolation === 'cluster-per-tenant') await platform.untilComplete(restored.id)
      await drop(restored)
      t.same(await scratchObjects(), [], 'nothing remains')
    })

  await t.test('A backup is restored into a tenant of each other model', async (t) => {
    const { 'cluster-per-tenant': ofCluster = '', 'database-per-tenant': ofSingle = '' } = backups
    for (const [backup, name, of, isolation] of [
      [ofCluster, 'ada-single', 'ada', 'database-per-tenant'],
      [ofCluster, 'ada-shared', 'ada', 'schema-per-tenant'],
      [ofSingle, 'sol-cluster', 'sol', 'cluster-per-tenant'],
      [await backUp(sharing), 'bob-cluster', 'bob', 'cluster-per-tenant'],
    ] as const) {
      const restored = await restoreNew(backup, name, isolation)
      await isFirst(t, restored, of)
      await drop(restored)
    }
    t.same(await scratchObjects(), [], 'nothing remains')
  })

  await t.test('A cluster is restored to a moment', async (t) => {
    const { 'cluster-per-tenant': owner } = owners
    const recovery = async () => (await platform.call('GET', `/v1/tenants/${owner.id}/recovery`)).body
    t.match(await platform.call('PATCH', `/v1/tenants/${owner.id}`, { archive_days: 1 }), { status: 200 })
    await until(async () => ((await recovery())['earliest'] === null ? undefined : true), 240)
    await owner.put('moment.txt', 'of the moment')
    await owner.sql('insert into notes values (10, $$moment$$)')
    const moment = new Date(Date.now() + 1_000)
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    await owner.sql('insert into notes values (11, $$too late$$)')
    await owner.remove('moment.txt')
    await until(async () => (new Date(String((await recovery())['latest'])) > moment ? true : undefined), 180)
    const body = { to: moment.toISOString(), into: 'same' }
    await done(await platform.call('POST', `/v1/tenants/${owner.id}/restore`, body))
    t.same(await owner.sql('select id from notes order by id'), [{ id: 1 }, { id: 10 }])
    t.equal(await owner.read('moment.txt'), 'of the moment', 'a file that was removed since')
    t.same(await scratchObjects(), [], 'nothing remains')
  })

  await t.test('A tenant gets services of its own, and returns', async (t) => {
    const { id } = sharing
    const isolate = async (isolation: Isolation) => {
      await done(await platform.call('PATCH', `/v1/tenants/${id}`, { isolation }))
      t.match(await platform.call('GET', `/v1/tenants/${id}`), { body: { isolation, status: 'ready' } })
    }
    const holds = async (...names: string[]) => {
      t.same(await sharing.sql('select * from notes'), [{ id: 1, text: 'first' }])
      for (const name of names) t.equal(await sharing.read(`${name}.txt`), `${name} of bob`, name)
    }
    const put = (name: string) => sharing.put(`${name}.txt`, `${name} of bob`)
    await isolate('cluster-per-tenant')
    await holds('first')
    await put('cluster')
    await done(await platform.call('POST', `/v1/tenants/${id}/move/revert`))
    await holds('first', 'cluster')
    await isolate('cluster-per-tenant')
    await put('again')
    await isolate('schema-per-tenant')
    await holds('first', 'cluster', 'again')
    await isolate('database-per-tenant')
    await holds('first', 'cluster', 'again')
    await put('database')
    await isolate('schema-per-tenant')
    await holds('first', 'cluster', 'again', 'database')
  })

  await t.test('A tenant moves from a single database into a cluster of its own, and returns', async (t) => {
    const owner = await create('max', 'database-per-tenant')
    const { id } = owner
    const rows = [{ id: 1, text: 'first' }]
    const files = new Map([['first.txt', 'first of max']])
    const write = async (text: string) => {
      const row = { id: rows.length + 1, text }
      await owner.sql(`insert into notes values (${row.id}, $$${text}$$)`)
      rows.push(row)
      await owner.put(`${text}.txt`, `${text} of max`)
      files.set(`${text}.txt`, `${text} of max`)
    }
    const holdsAll = async (when: string) => {
      t.same(await owner.sql('select * from notes order by id'), rows, when)
      const read = await Promise.all([...files.keys()].map(async (name) => [name, await owner.read(name)] as const))
      t.same(read, [...files], `${when}: ${files.size} files`)
    }
    /** Moves the tenant, which stores files meanwhile. A request that meets the locks of the home fails, and has changed nothing. */
    const move = async (isolation: OwnIsolation) => {
      const begun = await platform.call('PATCH', `/v1/tenants/${id}`, { isolation })
      let isOver = false
      const writing = (async () => {
        for (let number = 1; !isOver; number++) {
          const name = `on the way to ${isolation} ${number}.txt`.replaceAll(' ', '-')
          const isStored = await owner.put(name, name).then(
            () => true,
            () => false,
          )
          if (isStored) files.set(name, name)
          await new Promise((resolve) => setTimeout(resolve, 300))
        }
      })()
      await done(begun).finally(() => (isOver = true))
      await writing
      await platform.until(id, (tenant) => tenant['isolation'] === isolation && tenant['status'] === 'ready')
    }
    /** Checks that nothing of services of another model is on any host, or reserves memory there. */
    const hasOnly = async (isolation: OwnIsolation) => {
      const services = serviceNames(isolation).sort()
      const placed = await platform.sql('select service from placements where tenant_id = $1 order by service', [id])
      t.same(
        placed.map(({ service }) => service),
        services,
        'placements',
      )
      const { hosts } = platform.lab
      const nameOf = (object: string) => object.slice(`tenantry-${id}-`.length)
      const serviceOf = (container: string) => nameOf(container).replace(/-[0-9a-f]{8}(-secrets)?$/, '')
      const containers = (await Promise.all(hosts.map((host) => platform.containersOf(host, id)))).flat()
      t.same(containers.map(serviceOf).sort(), services, 'containers')
      const all = (await Promise.all(hosts.map((host) => platform.volumesOf(host, id)))).flat()
      const [secrets, volumes] = [
        all.filter((name) => name.endsWith('-secrets')),
        all.filter((name) => !name.endsWith('-secrets')),
      ]
      t.same(volumes.map(nameOf).sort(), volumesOfModel(isolation, true).sort(), 'volumes')
      t.same(
        secrets.map(serviceOf).filter((service) => !services.includes(service)),
        [],
        'volumes of secrets',
      )
    }
    const inBucket = async () => (await platform.storedKeys()).filter((key) => key.includes(id)).length

    await write('before')
    t.equal(await inBucket(), 0)
    await move('cluster-per-tenant')
    await holdsAll('in the cluster')
    await hasOnly('cluster-per-tenant')
    t.ok((await inBucket()) >= files.size, 'the files are in the bucket')
    await platform.untilComplete(id)
    await write('between')
    await owner.remove('before.txt')
    files.delete('before.txt')
    await move('database-per-tenant')
    await holdsAll('in the database')
    await hasOnly('database-per-tenant')
    t.equal(await inBucket(), 0, 'no file of the tenant is in the bucket')
    await write('after')
    await holdsAll('after a further write')
    await verify(t, await backUp(owner))
    await drop(owner)
  })

  await t.test('A single database is restored on another host when its own is lost', async (t) => {
    const { hosts } = platform.lab
    const { 'database-per-tenant': owner } = owners
    const before = await owner.sql('select id from notes order by id')
    const backup = await backUp(owner)
    await owner.sql('insert into notes values (20, $$after the backup$$)')
    const areThere = await Promise.all(hosts.map((host) => platform.containersOf(host, owner.id)))
    const lost = hosts.find((_, at) => (areThere[at] ?? []).length > 0) ?? hosts[0]
    entry.host = hosts.find((host) => host !== lost) ?? hosts[0]
    lost.kill()
    await platform.untilHost(lost, ({ state }) => state === 'unreachable')
    const failed = await platform.until(owner.id, ({ status }) => status === 'failed', 180)
    t.match(failed['conditions'], [
      { type: 'Services', status: 'False', reason: 'HostUnreachable' },
      { type: 'Spread', status: 'False' },
    ])
    const early = await platform.call('POST', `/v1/backups/${backup}/restore`, { into: 'same' })
    await t.rejects(done(early), /is not lost yet/, 'it may return with newer data')
    t.match(await platform.call('POST', `/v1/regions/local/hosts/${lost.id}/lost`), { status: 200 })
    await restoreSame(backup)
    await platform.until(owner.id, ({ status }) => status === 'ready', 120)
    t.same(await owner.sql('select id from notes order by id'), before)
    t.equal(await owner.read('third.txt'), 'third')
    await owner.put('elsewhere.txt', 'on another host')

    await lost.start()
    await platform.untilHost(lost, ({ state }) => state === 'reachable')
    await until(async () => ((await platform.containersOf(lost, owner.id)).length === 0 ? true : undefined), 180)
    t.same(await owner.sql('select id from notes order by id'), before)
    t.equal(await owner.read('elsewhere.txt'), 'on another host')
    t.ok((await platform.volumesOf(lost, owner.id)).length > 0, 'the former data stays')
    await drop(owner)
    t.same(await platform.volumesOf(lost, owner.id), [], 'until the tenant is deleted')
  })
})
