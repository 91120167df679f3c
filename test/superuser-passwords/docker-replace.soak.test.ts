// The password of the superuser of a Docker region's shared Postgres is replaced under load, without a restart of its container.
import t, { type Test } from 'tap'
import { jobFailpointNames } from '#control-plane/reconcile/failpoints.ts'
import { createSeal } from '#control-plane/platform/seal.ts'
import { create, fill, rowsOf, startLoad } from '#test/installation/support/load.ts'
import { startDockerPlatform } from '#test/support/docker-platform.ts'
import { effort } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const rounds = effort({ small: 2, full: 20 })
const points = jobFailpointNames.slice(0, effort({ small: 3, full: 3 }))
const path = '/v1/regions/local/superuser-password/rotate'

t.test('A region on Docker', { timeout: 600_000 }, async (t) => {
  const platform = await startDockerPlatform()
  t.teardown(() => platform.stop())
  const tenant = await create(platform, 'acme')
  await fill(platform, tenant)
  const [, masterKey = ''] = await platform.secretTexts()
  const seal = createSeal(Buffer.from(masterKey, 'base64'))
  const container = async () => {
    const { containers } = await platform.host.observe(
      { installation: platform.installation },
      AbortSignal.timeout(30_000),
    )
    const found = containers.find(({ name, labels }) => labels.service === 'postgres' && name.includes('region-local'))
    if (found === undefined) throw new Error('There is no shared Postgres.')
    return found
  }
  const { networks } = await container()
  const [address = ''] = Object.values(networks).map((network) => network.address)
  const current = async () => {
    const [row] = await platform.sql("select superuser_password as sealed from regions where id = 'local'")
    return seal.open(row?.['sealed'] as Uint8Array, 'region:local')
  }
  const login = (password: string) =>
    query(`postgresql://postgres:${encodeURIComponent(password)}@${address}:5432/postgres`, 'select 1 as one')
  const request = async (t: Test, headers: Record<string, string> = {}) => {
    const { status, body } = await platform.call('POST', path, {}, headers)
    t.same([status, body], [202, { region: 'local', state: 'in_progress' }])
  }
  const entries = async (action: string) => {
    const { body } = await platform.call('GET', '/v1/audit?limit=1000')
    return (body['entries'] as { action: string; target: string }[]).filter(
      (entry) => entry.action === action && entry.target === 'local',
    ).length
  }
  let times = 0
  const isReplaced = async (t: Test, former: string) => {
    times++
    await until(async () => (await entries('superuser_password.rotate')) === times, 'the audit log has the entry')
    await t.rejects(login(former), { code: '28P01' }, 'the old password is dead')
    await login(await current())
  }

  t.test('No request fails, and the container stays the same', async (t) => {
    const { id, startedAt } = await container()
    const requests = startLoad(rowsOf(platform, tenant))
    const calls = startLoad((n) =>
      fetch(`${platform.controlUrl}/v1/tenants${n % 2 === 0 ? '' : `/${tenant.id}/sessions`}`, {
        headers: { authorization: `Bearer ${platform.platformKey}` },
      }),
    )
    for (let round = 0; round < rounds; round++) {
      const former = await current()
      const headers = { 'idempotency-key': `replace-${round}` }
      await request(t, headers)
      await request(t, headers)
      await isReplaced(t, former)
    }
    await create(platform, 'later')
    for (const load of [requests, calls]) await load.stop(t)
    t.equal(await entries('region.rotate_superuser_password'), times, 'a repeated request begins no other replacement')
    const now = await container()
    t.same([now.id, now.startedAt], [id, startedAt])
  })

  t.test('A killed container starts again with the password that the server has', async (t) => {
    const { name, startedAt } = await container()
    await platform.kill(name)
    await until(async () => {
      const found = await container()
      return found.state === 'running' && found.startedAt !== startedAt
    }, 'it runs again')
    await until(
      () =>
        current()
          .then(login)
          .then(
            () => true,
            () => false,
          ),
      'the new password works',
    )
    t.same(await login(await current()), [{ one: 1 }])
  })

  t.test('The control plane is killed at each point of a replacement', async (t) => {
    await until(async () => (await rowsOf(platform, tenant)(0)).ok, 'the tenant is served')
    const requests = startLoad(rowsOf(platform, tenant))
    for (const point of points) {
      const former = await current()
      await platform.stopControlPlanes()
      const armed = await platform.startControlPlane({ failpoints: `${point}=kill` })
      await request(t)
      await armed.exited
      t.equal(armed.signalCode(), 'SIGKILL', `killed at ${point}`)
      await platform.startControlPlane()
      await isReplaced(t, former)
    }
    await requests.stop(t)
  })

  t.test('Requests that are not valid', async (t) => {
    const other = await platform.call('POST', '/v1/regions/mars/superuser-password/rotate', {})
    t.match([other.status, other.body], [404, { code: 'NOT_FOUND' }])
    t.match((await platform.call('POST', path, { password: 'mine' })).status, 400)
  })
})
