// The limits that an operator configures hold to the byte and to the second; invalid settings stop the start.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '#tenant-runtime/config.ts'
import { startRuntime } from '#test/support/runtime.ts'

const objects = '/storage/v1/object'
const text = { 'content-type': 'text/plain' }

t.test('Settings have the defaults of the specification; an invalid setting is rejected by name', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-config-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const token = join(directory, 'token')
  await writeFile(token, 'x'.repeat(40))
  const read = (settings: Record<string, string>) =>
    readConfig({
      TENANTRY_CONTROL_URL: 'http://c',
      TENANTRY_DATA: directory,
      TENANTRY_INTERNAL_TOKEN_FILE: token,
      ...settings,
    }).limits
  t.same(read({}), { pathBytes: 1_024, signedSeconds: 3_600, maxSignedSeconds: 31_536_000 })
  t.same(
    read({ TENANTRY_MAX_PATH_BYTES: '100', TENANTRY_SIGNED_URL_SECONDS: '60', TENANTRY_MAX_SIGNED_URL_SECONDS: '120' }),
    { pathBytes: 100, signedSeconds: 60, maxSignedSeconds: 120 },
  )
  t.match(
    read({ TENANTRY_MAX_SIGNED_URL_SECONDS: '600' }),
    { signedSeconds: 600 },
    'no URL is valid for longer than the maximum',
  )
  for (const [name, values] of Object.entries({
    TENANTRY_MAX_PATH_BYTES: ['0', '1025', '-1', 'x', '1.5'],
    TENANTRY_SIGNED_URL_SECONDS: ['0', '31536001', '1h'],
    TENANTRY_MAX_SIGNED_URL_SECONDS: ['0', '1e99', 'forever'],
  })) {
    for (const value of values)
      t.throws(
        () => read({ [name]: value }),
        { message: new RegExp(`^Invalid value ".*" of ${name}\\. `) },
        `${name}=${value}`,
      )
  }
  t.throws(() => read({ TENANTRY_SIGNED_URL_SECONDS: '61', TENANTRY_MAX_SIGNED_URL_SECONDS: '60' }), {
    message: /TENANTRY_SIGNED_URL_SECONDS/,
  })
})

t.test('Configured limits hold', { timeout: 90_000 }, async (t) => {
  const runtime = await startRuntime(t, {
    storageLimits: { pathBytes: 20, signedSeconds: 60, maxSignedSeconds: 120 },
  })
  const tenant = await runtime.addTenant()
  await tenant.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name: 'docs' } })
  const put = (path: string, body = 'x') =>
    tenant.request('POST', `${objects}/docs/${encodeURIComponent(path)}`, { as: 'u1', body, headers: text })

  t.test(
    'A new path is limited in bytes by every call that creates one; existing longer paths remain accessible',
    async (t) => {
      const [fits, over] = ['é'.repeat(10), `${'é'.repeat(10)}a`]
      t.equal((await put(fits)).status, 200)
      const body = { bucketId: 'docs', sourceKey: fits, destinationKey: over }
      for (const response of [
        await put(over),
        await tenant.request('POST', `${objects}/move`, { as: 'u1', body }),
        await tenant.request('POST', `${objects}/copy`, { as: 'u1', body }),
        await tenant.request('POST', `${objects}/upload/sign/docs/${encodeURIComponent(over)}`, { as: 'u1' }),
      ])
        t.match([response.status, response.json()], [400, { code: 'INVALID_PATH', message: /longer than 20 bytes/ }])
      t.equal(
        (await tenant.request('POST', `${objects}/upload/sign/docs/${encodeURIComponent(fits)}`, { as: 'u1' })).status,
        200,
      )
      t.equal(
        (
          await tenant.request('POST', `${objects}/copy`, {
            as: 'u1',
            body: { ...body, destinationKey: 'a'.repeat(20) },
          })
        ).status,
        200,
      )
      const long = 'x'.repeat(1_024)
      await tenant.rows('update storage_objects set path = $1 where path = $2', [long, fits])
      t.equal(
        (await tenant.request('GET', `${objects}/docs/${long}`, { as: 'u1' })).text,
        'x',
        'created before the limit',
      )
      t.equal((await tenant.request('POST', `${objects}/sign/docs/${long}`, { as: 'u1' })).status, 200)
      t.equal((await tenant.request('DELETE', `${objects}/docs/${long}`, { as: 'u1' })).status, 200)
    },
  )

  t.test('The lifetime of signed URLs is limited in seconds', async (t) => {
    t.teardown(() => (runtime.clock.stopped = undefined))
    runtime.clock.stopped = Math.floor(Date.now() / 1000) * 1000
    const now = runtime.clock.stopped / 1000
    await put('a')
    const expiry = async (how: string) => {
      const response = await tenant.request('POST', `${objects}/sign/docs/a${how}`, { as: 'u1' })
      return response.status === 200
        ? Date.parse(String(response.json()['expires_at'])) / 1000 - now
        : response.json()['message']
    }
    t.same([await expiry(''), await expiry('?expires_in=1'), await expiry('?expires_in=120')], [60, 1, 120])
    for (const seconds of [0, 121])
      t.equal(
        await expiry(`?expires_in=${seconds}`),
        'Parameter "expires_in" must be a whole number of seconds from 1 to 120.',
      )
    const upload = (await tenant.request('POST', `${objects}/upload/sign/docs/a`, { as: 'u1' })).json()
    t.equal(Date.parse(String(upload['expires_at'])) / 1000 - now, 120, 'no URL is valid for longer')
  })

  t.test('A file is limited to 100 MB, by its declared and by its actual length', async (t) => {
    const declared = async (bytes: number) =>
      (await tenant.request('POST', `${objects}/docs/b`, { as: 'u1', headers: { ...text, 'content-length': bytes } }))
        .status
    t.equal(await declared(100_000_001), 413)
    const max = Buffer.alloc(100_000_000)
    t.equal(
      (await tenant.request('POST', `${objects}/docs/b`, { as: 'u1', body: [max], headers: text })).json()['size'],
      100_000_000,
      'exactly the limit',
    )
    t.equal(
      (await tenant.request('POST', `${objects}/docs/c`, { as: 'u1', body: [max, Buffer.alloc(1)], headers: text }))
        .status,
      413,
      'one byte more',
    )
    await runtime.storage.idle()
    t.equal((await tenant.files()).length, 3, 'no rejected upload is stored')
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
