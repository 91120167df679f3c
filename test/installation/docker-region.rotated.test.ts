// A region's own stack: two shared runtimes serve the same tenants, and a restarted control plane changes nothing.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startDockerPlatform } from '#test/support/docker-platform.ts'

t.test('A region on Docker with two shared runtimes', { timeout: 300_000 }, async (t) => {
  const platform = await startDockerPlatform({ docker: { shared_runtimes: 2 } })
  t.teardown(() => platform.stop())
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'shared', plan: 'Free', region: 'local' },
    { prefer: 'wait=60' },
  )
  t.match([status, body['status'], body['isolation']], [201, 'ready', 'schema-per-tenant'])
  const key = (body['keys'] as { secret_key: string }).secret_key
  const request = async (method: string, path: string, json?: unknown) => {
    const response = await platform.tenantCall('shared', method, path, {
      key,
      ...(json === undefined ? {} : { body: JSON.stringify(json), type: 'application/json' }),
    })
    return { status: response.status, text: await response.text() }
  }
  const containers = async () => {
    const { containers: all } = await platform.host.observe(
      { installation: platform.installation },
      AbortSignal.timeout(30_000),
    )
    return all.map(({ id, name, startedAt }) => ({ id, name, startedAt })).sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  t.test('A reload at one runtime takes effect at both', async (t) => {
    for (const field of ['first', 'second', 'third']) {
      const fields = [
        { name: 'id', type: 'uuid', primary: true },
        { name: 'text', type: 'string' },
      ]
      t.equal(
        (await request('POST', '/rest/v1/schemas', { name: field, fields, rls_policy: { type: 'service' } })).status,
        201,
      )
      t.match(await request('POST', '/admin/reload-schemas'), { status: 200, text: new RegExp(field) })
      await sleep(1_000)
      for (let n = 0; n < 10; n++)
        t.equal((await request('GET', `/rest/v1/${field}`)).status, 200, `${field}, request ${n}`)
    }
  })

  t.test('A file written through one runtime is read through both', async (t) => {
    for (let n = 0; n < 6; n++) {
      const put = await platform.tenantCall('shared', 'POST', `/storage/v1/object/system/file-${n}`, {
        key,
        body: `text ${n}`,
        type: 'text/plain',
      })
      t.equal(put.status, 200)
      await put.body?.cancel()
      for (let again = 0; again < 4; again++)
        t.same(await request('GET', `/storage/v1/object/system/file-${n}`), { status: 200, text: `text ${n}` })
    }
  })

  t.test('When one runtime is killed, the other serves and the killed one restarts', async (t) => {
    await platform.kill((await containers()).find(({ name }) => name.includes('runtime-1'))?.name ?? '')
    for (let n = 0; n < 20; n++) t.equal((await request('GET', '/rest/v1/first')).status, 200)
    const deadline = Date.now() + 60_000
    const isBack = async () => {
      const { containers: all } = await platform.host.observe(
        { installation: platform.installation },
        AbortSignal.timeout(30_000),
      )
      return all.every(({ state }) => state === 'running')
    }
    while (!(await isBack())) {
      if (Date.now() > deadline) throw new Error('The killed runtime did not restart within 60 s.')
      await sleep(200)
    }
  })

  t.test('A restarted control plane adopts the running containers and changes nothing', async (t) => {
    const before = await containers()
    await platform.stopControlPlanes()
    t.equal((await request('GET', '/rest/v1/first')).status, 200, 'the tenant is served without a control plane')
    await platform.startControlPlane()
    // The first sweep ends within this time.
    await sleep(5_000)
    t.same(await containers(), before)
  })
})
