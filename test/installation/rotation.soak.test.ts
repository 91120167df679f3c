// Secrets are replaced while the clients of tenants send requests. No request fails, and the old secret is dead afterwards.
import { createHash, randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import { createSeal } from '#control-plane/platform/seal.ts'
import { effort } from '#test/support/effort.ts'
import { startPlatform, type Platform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { signToken } from '#test/support/sign-token.ts'
import { until } from '#test/support/until.ts'
import { create, fill, rowsOf, startLoad, type Tenant } from './support/load.ts'

const rounds = effort({ small: 2, full: 20 })
/** A round restarts the control plane four times. */
const masterKeyRounds = effort({ small: 1, full: 5 })
const points = (['password.set', 'password.before', 'password.recorded'] as const).slice(
  0,
  effort({ small: 1, full: 3 }),
)
const servicePoints = (
  ['service-passwords.set', 'service-passwords.before', 'service-passwords.recorded'] as const
).slice(0, effort({ small: 1, full: 3 }))
const wait = { prefer: 'wait=60' }

async function connect(t: Test, url: string): Promise<{ client: pg.Client; ended: Promise<unknown> }> {
  const client = new pg.Client({ connectionString: url })
  const ended = new Promise((resolve) =>
    client.on('error', (error) => resolve(error instanceof pg.DatabaseError ? error.code : error)),
  )
  await client.connect()
  t.teardown(() => client.end().catch(() => undefined))
  return { client, ended }
}

/** Returns the URLs of the services' logins with their stored passwords, the newest first. */
async function serviceUrls(platform: Platform, { id, databaseUrl }: Tenant): Promise<string[]> {
  const [masterKey = ''] = (await readFile(platform.masterKeyFile, 'utf8')).split('\n')
  const seal = createSeal(Buffer.from(masterKey, 'base64'))
  const rows = await query(
    platform.postgres.url('control'),
    `select kind, sealed from tenant_secrets
     where tenant_id = $1 and kind in ('runtime_password', 'ddl_password') order by kind, created_at desc`,
    [id],
  )
  return rows.map(({ kind, sealed }) => {
    const username = kind === 'ddl_password' ? `${id}_ddl` : id
    const password = seal.open(sealed as Uint8Array, `${id}:${String(kind)}`)
    return Object.assign(new URL(databaseUrl), { username, password }).href
  })
}

const fingerprint = (token: string) => createHash('sha256').update(token).digest('hex').slice(0, 16)

const isDead = (t: Test, url: string) =>
  t.rejects(query(url, 'select 1'), { code: '28P01' }, 'the old password is dead')

t.test('Secrets of tenants are rotated under load', { timeout: 300_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  let last = await platform.startControlPlane()
  const [tenant, neighbour] = [await create(platform, 'acme'), await create(platform, 'other')]
  await fill(platform, tenant)
  const rotate = (headers: Record<string, string> = wait, { id } = tenant) =>
    platform.call('POST', `/v1/tenants/${id}/database-password/rotate`, {}, headers)
  const newUrl = async (headers?: Record<string, string>) => {
    const { status, body } = await rotate(headers)
    if (status !== 200) throw new Error(JSON.stringify(body))
    return { url: String(body['database_url']), body }
  }

  t.test('The password of database_url', async (t) => {
    const requests = startLoad(rowsOf(platform, tenant))
    const other = await connect(t, neighbour.databaseUrl)
    for (let round = 0; round < rounds; round++) {
      const { databaseUrl: old } = tenant
      const session = await connect(t, old)
      // A session that holds the lock of its own role must not stop the rotation.
      await session.client.query("reset role; begin; alter role current_user password 'chosen'")
      const { url, body } = await newUrl()
      t.match(body, {
        tenant_id: tenant.id,
        operation: { kind: 'rotate_database_password', state: 'succeeded', error: null },
      })
      t.equal(await session.ended, '57P01', 'the session of the old password is ended')
      await isDead(t, old)
      t.same(
        await query(url, 'select current_user as role, count(*)::int > 0 as "hasRows" from notes'),
        [{ role: `${tenant.id}_owner`, hasRows: true }],
        'the new password works',
      )
      t.equal(new URL(url).host + new URL(url).pathname, new URL(old).host + new URL(old).pathname)
      tenant.databaseUrl = url
    }
    await requests.stop(t)
    t.same((await other.client.query('select 1 as one')).rows, [{ one: 1 }], "the neighbour's session continues")
    const audit = await platform.call('GET', '/v1/audit?limit=1')
    t.match(audit.body, { entries: [{ action: 'tenant.rotate_database_password', target: tenant.id, detail: {} }] })
    const { body } = await platform.call('GET', `/v1/tenants/${tenant.id}`)
    t.equal(new URL(String(body['database_url'])).password, '', 'no other response contains it')
  })

  t.test('A repeated request returns the same password, and rotates once', async (t) => {
    const headers = { ...wait, 'idempotency-key': 'rotate-once' }
    const [first, again] = [await newUrl(headers), await newUrl(headers)]
    t.same(first.body, again.body)
    await query(first.url, 'select 1')
    tenant.databaseUrl = first.url
  })

  t.test("A suspended tenant's password is rotated, too", async (t) => {
    const suspend = (suspended: boolean) => platform.call('PATCH', `/v1/tenants/${tenant.id}`, { suspended }, wait)
    await suspend(true)
    const old = tenant.databaseUrl
    const { url, body } = await newUrl()
    t.match(body, { operation: { state: 'succeeded' } })
    await t.rejects(query(url, 'select 1'), { code: '28000' }, 'its login stays closed')
    await suspend(false)
    await isDead(t, old)
    await query(url, 'select 1')
    tenant.databaseUrl = url
  })

  t.test('API keys and the secret of tokens, with an overlap and without', async (t) => {
    const tokenOf = (secret: string) =>
      signToken({ sub: 'ada', role: 'authenticated', exp: Math.floor(Date.now() / 1000) + 3600 }, secret)
    const rotateKeys = async (overlap: number) => {
      const { status, body } = await platform.call(
        'POST',
        `/v1/tenants/${tenant.id}/keys/rotate`,
        { overlap_seconds: overlap },
        wait,
      )
      t.equal(status, 200, JSON.stringify(body))
      return {
        ...(body['keys'] as { secret_key: string; jwt_secret: string }),
        end: String(body['old_keys_expire_at']),
      }
    }
    const statusOf = async (key: string) => {
      const response = await platform.tenantCall('acme', 'GET', '/storage/v1/bucket', { key })
      await response.body?.cancel()
      return response.status
    }
    const current = await rotateKeys(0)
    t.equal(await statusOf(tenant.secretKey), 401, 'without an overlap, the old key is dead with the response')
    const requests = startLoad((n) => {
      const key = n % 2 === 0 ? current.secret_key : tokenOf(current.jwt_secret)
      return platform.tenantCall('acme', 'GET', '/storage/v1/bucket', { key })
    })
    for (let round = 0; round < rounds; round++) {
      const old = { ...current }
      const { end } = Object.assign(current, await rotateKeys(2))
      t.same(
        [await statusOf(old.secret_key), await statusOf(tokenOf(old.jwt_secret))],
        [200, 200],
        'both are valid during the overlap',
      )
      for (const key of [old.secret_key, tokenOf(old.jwt_secret)])
        await until(async () => (await statusOf(key)) === 401, 'the end of the old one')
      t.comment(`the old ones were dead ${Date.now() - Date.parse(end)} ms after the end of the overlap`)
    }
    await requests.stop(t)
    tenant.secretKey = current.secret_key
  })

  t.test('The secret of signed URLs', async (t) => {
    const { secretKey: key } = tenant
    await platform.tenantCall('acme', 'POST', '/storage/v1/object/system/a.txt', { key, body: 'a', type: 'text/plain' })
    const sign = async () => {
      const response = await platform.tenantCall('acme', 'POST', '/storage/v1/object/sign/system/a.txt', { key })
      const { url } = (await response.json()) as { url: string }
      return `${platform.gatewayUrl}${url}`
    }
    const rotateSecret = (overlap: number) =>
      platform.call(
        'POST',
        `/v1/tenants/${tenant.id}/keys/rotate`,
        { kinds: ['signing_secret'], overlap_seconds: overlap },
        wait,
      )
    let url = await sign()
    const requests = startLoad(() => fetch(url))
    const old = url
    t.match((await rotateSecret(2)).body, { keys: {}, operation: { state: 'succeeded' } })
    t.equal(await (await fetch(old)).text(), 'a', 'the URL is valid during the overlap')
    url = await sign()
    await until(async () => (await fetch(old)).status === 400, 'the end of the old URL')
    await requests.stop(t)
    await rotateSecret(0)
    const response = await fetch(url)
    t.match(
      [response.status, await response.json()],
      [400, { code: 'InvalidSignature' }],
      'without an overlap: at once',
    )
  })

  t.test('A control plane that is killed during a rotation is repeated by the next one', async (t) => {
    last.process.kill('SIGTERM')
    await last.exited
    const requests = startLoad(rowsOf(platform, tenant))
    for (const point of points) {
      const old = tenant.databaseUrl
      const armed = await platform.startControlPlane({ failpoints: `${point}=kill` })
      const headers = { ...wait, 'idempotency-key': `killed-at-${point}` }
      await rotate(headers).catch(() => undefined)
      await armed.exited
      t.equal(armed.process.signalCode, 'SIGKILL', `killed at ${point}`)
      const calm = await platform.startControlPlane()
      const { url } = await newUrl(headers)
      await until(async () => {
        const { body } = await platform.call('GET', `/v1/operations?tenant_id=${tenant.id}&limit=1000`)
        return (body['operations'] as { state: string }[]).every(({ state }) => state === 'succeeded')
      }, 'the operation has ended')
      await query(url, 'select 1')
      await isDead(t, old)
      tenant.databaseUrl = url
      calm.process.kill('SIGTERM')
      await calm.exited
    }
    await requests.stop(t)
    last = await platform.startControlPlane()
  })

  const rotateServices = (headers: Record<string, string> = wait) =>
    platform.call('POST', `/v1/tenants/${tenant.id}/service-passwords/rotate`, {}, headers)
  const reload = () => platform.tenantCall('acme', 'POST', '/admin/reload-schemas', { key: tenant.secretKey })
  const isReplaced = async (t: Test, before: readonly string[]) => {
    const after = await serviceUrls(platform, tenant)
    t.equal(after.length, 2, 'only the newest passwords are stored')
    for (const url of before) await isDead(t, url)
    for (const url of after) await query(url, 'select 1')
  }

  t.test("The passwords of the runtime's and the reloads' own logins", async (t) => {
    const rows = rowsOf(platform, tenant)
    const requests = startLoad((n) => (n % 20 === 0 ? reload() : rows(n)))
    for (let round = 0; round < rounds; round++) {
      const before = await serviceUrls(platform, tenant)
      const { status, body } = await rotateServices()
      t.match([status, body], [200, { operation: { kind: 'rotate_service_passwords', state: 'succeeded' } }])
      t.same(Object.keys(body), ['tenant_id', 'operation'], 'no response contains the passwords')
      await isReplaced(t, before)
    }
    const audit = await platform.call('GET', '/v1/audit?limit=1')
    t.match(audit.body, { entries: [{ action: 'tenant.rotate_service_passwords', target: tenant.id, detail: {} }] })
    await requests.stop(t)
    const before = await serviceUrls(platform, tenant)
    await platform.call('PATCH', `/v1/tenants/${tenant.id}`, { suspended: true }, wait)
    t.match((await rotateServices()).body, { operation: { state: 'succeeded' } }, 'of a suspended tenant')
    await platform.call('PATCH', `/v1/tenants/${tenant.id}`, { suspended: false }, wait)
    await isReplaced(t, before)
  })

  t.test("A control plane is killed while it sets the services' passwords", async (t) => {
    last.process.kill('SIGTERM')
    await last.exited
    for (const point of servicePoints) {
      const requests = startLoad(rowsOf(platform, tenant))
      const before = await serviceUrls(platform, tenant)
      const armed = await platform.startControlPlane({ failpoints: `${point}=kill` })
      const headers = { ...wait, 'idempotency-key': `killed-at-${point}` }
      await rotateServices(headers).catch(() => undefined)
      await armed.exited
      t.equal(armed.process.signalCode, 'SIGKILL', `killed at ${point}`)
      await requests.stop(t)
      // Without a control plane, a new runtime does not learn which of the passwords the logins have.
      await platform.restartRuntime()
      for (const response of [await rowsOf(platform, tenant)(0), await reload()])
        t.equal(response.status, 200, await response.text())
      const calm = await platform.startControlPlane()
      t.equal((await rotateServices(headers)).status, 200)
      await until(async () => (await serviceUrls(platform, tenant)).length === 2, 'the old passwords are removed')
      await isReplaced(t, before)
      calm.process.kill('SIGTERM')
      await calm.exited
    }
    last = await platform.startControlPlane()
  })

  t.test('The master key', async (t) => {
    const restart = async (...keys: string[]) => {
      last.process.kill('SIGKILL')
      await last.exited
      await writeFile(platform.masterKeyFile, keys.join('\n'))
      last = await platform.startControlPlane()
    }
    const requests = startLoad(rowsOf(platform, tenant))
    let current = (await readFile(platform.masterKeyFile, 'utf8')).trim()
    for (let round = 0; round < masterKeyRounds; round++) {
      const former = current
      current = randomBytes(32).toString('base64')
      const headers = { ...wait, 'idempotency-key': `master-key-${round}` }
      const { url } = await newUrl(headers)
      await restart(current, former)
      const { masterKeyId } = createSeal(Buffer.from(current, 'base64'))
      await until(async () => {
        const { body } = await platform.call('GET', '/v1/audit?limit=1')
        const [entry] = body['entries'] as { action: string; target: string }[]
        return entry?.action === 'master_key.rotate' && entry.target === masterKeyId
      }, 'everything is sealed with the new key')
      await restart(current)
      t.equal((await newUrl(headers)).url, url, 'a stored response is sealed again, too')
      t.equal((await rotateServices()).status, 200)
      await restart(former)
      t.equal(last.process.exitCode, 78, 'the former key is dead')
      t.match(last.output(), 'TENANTRY_MASTER_KEY_FILE does not contain')
      await restart(current)
    }
    await requests.stop(t)
    tenant.databaseUrl = (await newUrl()).url
  })

  t.test('The internal token', async (t) => {
    const paths = {
      controlPlane: internalPaths.watchRoutes,
      runtime: internalPaths.metrics,
      gateway: internalPaths.activity,
    }
    const statusesOf = (token: string) =>
      Promise.all(
        (['controlPlane', 'runtime', 'gateway'] as const).map(async (part) => {
          const response = await fetch(`${platform.internalUrls[part]}${paths[part]}`, {
            headers: { [internalTokenHeader]: token },
          })
          await response.body?.cancel()
          return response.status
        }),
      )
    const write = (...tokens: string[]) => writeFile(platform.internalTokenFile, tokens.join('\n'))
    const untilAccepted = (token: string) =>
      until(async () => (await statusesOf(token)).every((status) => status === 200), 'all parts accept the token')
    const newToken = () => randomBytes(32).toString('base64url')
    const rows = rowsOf(platform, tenant)
    const { name, secretKey: key } = tenant
    // The runtime reads the usage from the control plane, whose calls to the runtime the observation of tenants makes.
    const requests = startLoad((n) => (n % 20 === 0 ? platform.tenantCall(name, 'GET', '/usage/v1', { key }) : rows(n)))
    let current = (await readFile(platform.internalTokenFile, 'utf8')).trim()
    for (let round = 0; round < rounds; round++) {
      const [former, next, mark] = [current, newToken(), newToken()]
      await write(former, next)
      await untilAccepted(next)
      // A part that accepts the mark has read this file, so that it sends the new token.
      await write(next, former, mark)
      await untilAccepted(mark)
      await write(next)
      await until(
        async () => (await statusesOf(former)).every((status) => status !== 200),
        'the old token is dead in all parts',
      )
      t.same(await statusesOf(former), [404, 403, 403])
      t.same(await statusesOf(mark), [404, 403, 403])
      await until(async () => {
        const { body } = await platform.call('GET', '/v1/audit?limit=1')
        const [entry] = body['entries'] as { action: string; target: string; detail: unknown }[]
        return entry?.action === 'internal_token.rotate' && entry.target === fingerprint(next)
      }, 'the audit log has the replacement')
      current = next
    }
    await writeFile(platform.internalTokenFile, 'too short')
    await until(
      () => Promise.resolve(last.output().includes('The file of the internal token cannot be used')),
      'a warning',
    )
    t.same(await statusesOf(current), [200, 200, 200], 'a file that cannot be used changes nothing')
    await write(current)
    // Watches that were open before continue, so a change of the tenant still reaches the parts.
    t.equal((await rotateServices()).status, 200)
    await requests.stop(t)
  })

  t.test('A deleted and an unknown tenant are rejected', async (t) => {
    await platform.call('DELETE', `/v1/tenants/${neighbour.id}`, undefined, wait)
    t.match(await rotate(wait, neighbour), { status: 409, body: { code: 'TENANT_DELETED' } })
    t.match(await rotate(wait, { ...neighbour, id: 't_00000000000000000000' }), {
      status: 404,
      body: { code: 'TENANT_NOT_FOUND' },
    })
  })
})
