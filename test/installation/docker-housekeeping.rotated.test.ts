// Housekeeping on a real engine: a new tenant takes a stack of the warm pool, an idle tenant is paused and wakes with the next
// request, and a rollout replaces an image tenant by tenant, or rolls back.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import t from 'tap'
import { startDockerPlatform, testEngine } from '#test/support/docker-platform.ts'

const run = promisify(execFile)
const docker = async (...args: string[]) => (await run('docker', ['-H', testEngine(), ...args])).stdout.trim()

async function until<T>(what: string, read: () => Promise<T>, holds: (value: T) => boolean, seconds = 120): Promise<T> {
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const value = await read()
    if (holds(value)) return value
    if (Date.now() > deadline) throw new Error(`${what}: ${JSON.stringify(value)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Builds two runtime images with new digests: one that works, and one whose process ends at once. */
async function otherImages(suffix: string) {
  const names = { works: `tenantry-test/runtime-works:${suffix}`, breaks: `tenantry-test/runtime-breaks:${suffix}` }
  const container = await docker('create', '--label', `tenantry-test=${suffix}`, 'tenantry/tenant-runtime:latest')
  await docker('commit', '--change', `LABEL tenantry.test=${suffix}`, container, names.works)
  await docker('commit', '--change', 'ENTRYPOINT ["false"]', container, names.breaks)
  await docker('rm', container)
  return names
}

t.test('Housekeeping on a Docker Engine', { timeout: 280_000 }, async (t) => {
  const images = await otherImages(randomBytes(6).toString('hex'))
  const platform = await startDockerPlatform({
    docker: { warm_stacks: 1 },
    deleteGraceSeconds: 0,
    orphanGraceSeconds: 1,
  })
  t.teardown(async () => {
    await platform.stop()
    await docker('rmi', '--force', images.works, images.breaks)
  })
  const warm = () =>
    platform
      .sql("select id from tenants where desired = 'warm' and status = 'warm'")
      .then((rows) => rows.map(({ id }) => String(id)))
  const create = async (name: string) => {
    const { status, body } = await platform.call(
      'POST',
      '/v1/tenants',
      { name, plan: 'Pro', region: 'local' },
      { prefer: 'wait=60' },
    )
    if (status !== 201 || body['status'] !== 'ready') throw new Error(`${name}: ${status} ${JSON.stringify(body)}`)
    return { id: String(body['tenant_id']), name, key: (body['keys'] as { secret_key: string }).secret_key }
  }
  const put = (name: string, key: string, text: string) =>
    platform.tenantCall(name, 'POST', '/storage/v1/object/system/kept.txt', { key, body: text, type: 'text/plain' })
  const stored = async (name: string, key: string) =>
    (await platform.tenantCall(name, 'GET', '/storage/v1/object/system/kept.txt', { key })).text()
  const runtimeImage = async (id: string) => {
    const [container = ''] = (
      await docker(
        'ps',
        '--filter',
        `label=tenantry.stack=${id}`,
        '--filter',
        'label=tenantry.service=runtime',
        '--format',
        '{{.Names}}',
      )
    ).split('\n')
    return docker('inspect', '--format', '{{.Image}}', container)
  }
  const digest = (image: string) => docker('inspect', '--format', '{{.Id}}', image)
  const rollout = async (image: string, deadline: number) => {
    const { status, body } = await platform.call('POST', '/v1/rollouts', {
      region: 'local',
      component: 'runtime',
      image,
      soak_seconds: 2,
      deadline_seconds: deadline,
    })
    if (status !== 202) throw new Error(JSON.stringify(body))
    const read = async () => (await platform.call('GET', `/v1/rollouts/${String(body['id'])}`)).body
    return until('an end of the rollout', read, ({ finished }) => finished !== null, 300)
  }

  const [ready] = await until('a warm stack', warm, (ids) => ids.length === 1)
  const first = await create('first')
  const second = await until('a full pool', warm, (ids) => ids.length === 1 && ids[0] !== ready).then(() =>
    create('second'),
  )
  await Promise.all([put(first.name, first.key, 'of the first'), put(second.name, second.key, 'of the second')])

  t.test('A new tenant takes the warm stack, and only its own keys work', async (t) => {
    t.equal(first.id, ready)
    t.same(
      [await stored(first.name, first.key), await stored(second.name, second.key)],
      ['of the first', 'of the second'],
    )
    t.not(await stored(first.name, second.key), 'of the first', "another tenant's key opens nothing")
    const metrics = await fetch(`${platform.controlUrl}/metrics`, {
      headers: { authorization: `Bearer ${platform.platformKey}` },
    })
    t.match(
      await metrics.text(),
      /tenantry_warm_stacks\{region="local",isolation="database-per-tenant",state="warm"\} \d/,
    )
  })

  t.test('A rollout of a working image reaches all tenants and keeps their data', async (t) => {
    t.match(await rollout(images.works, 120), { state: 'succeeded', error: null, wave: 2 })
    for (const { id, name, key } of [first, second]) {
      t.equal(await runtimeImage(id), await digest(images.works), `${name} runs the new image`)
      t.match(await stored(name, key), `of the ${name}`)
    }
  })

  t.test('A rollout of a broken image stops at the first tenant and is rolled back', async (t) => {
    t.match(await rollout(images.breaks, 15), {
      state: 'rolled_back',
      error: new RegExp(first.id),
      tenants: [{ tenant_id: first.id, state: 'returned' }],
    })
    for (const { id, name, key } of [first, second]) {
      t.equal(await runtimeImage(id), await digest(images.works), `${name} runs the image from before`)
      t.match(await stored(name, key), `of the ${name}`)
    }
  })

  t.test('An idle tenant is paused, and the next request wakes it and succeeds', async (t) => {
    t.equal((await platform.call('PATCH', `/v1/tenants/${first.id}`, { pause_after_seconds: 10 })).status, 200)
    await platform.until(first.id, ({ status }) => status === 'paused')
    t.equal(
      await docker('ps', '--filter', `label=tenantry.stack=${first.id}`, '--format', '{{.Names}}'),
      '',
      'no container of the tenant runs',
    )
    t.equal(await stored(first.name, first.key), 'of the first')
    t.match(await platform.until(first.id, ({ status }) => status === 'ready'), { status: 'ready' })
    t.match(
      (await platform.call('GET', `/v1/tenants/${second.id}`)).body,
      { status: 'ready' },
      'the other tenant stays ready',
    )
  })
})
