// placeholder
import t from 'tap'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
const installation = await startInstallation({ runtimes: 2 })
t.teardown(() => removeInstallation(installation))
const call = async (method: string, path: string, body?: object) => {
  const r = await fetch(`${installation.controlUrl}/v1${path}`, { method, headers: { authorization: `Bearer ${installation.platformKey}`, prefer: 'wait=60', ...(body ? { 'content-type': 'application/json' } : {}) }, ...(body ? { body: JSON.stringify(body) } : {}) })
  return { status: r.status, body: (await r.json()) as any }
}
t.setTimeout(150000)
t.test('x', { timeout: 120000 }, async (t) => {
  const { body: a } = await call('POST', '/tenants', { name: 'ada', plan: 'Free', region: 'local' })
  console.log(a.status, a.isolation, a.database_url)
  const req = (method: string, path: string, body?: any) => fetch(`${a.path_url}${path}`, { method, headers: { authorization: `Bearer ${a.keys.secret_key}`, 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json' }, ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }) })
  console.log((await req('POST', '/storage/v1/bucket', { name: 'files', policy: 'public' })).status)
  for (let i = 0; i < 20; i++) await req('POST', `/storage/v1/object/files/a${i}.txt`, 'a file ' + i)
  const schema = { name: 'notes', fields: [ { name: 'id', type: 'number', primary: true }, { name: 'text', type: 'string' } ], rls_policy: { type: 'service' } }
  console.log((await req('POST', '/rest/v1/schemas', schema)).status, (await req('POST', '/admin/reload-schemas')).status, (await req('POST', '/rest/v1/notes', { id: 1, text: 'one' })).status)
  const begun = performance.now()
  const timer = setTimeout(async () => { console.log(JSON.stringify((await call('GET', `/tenants/${a.tenant_id}/operations`)).body)); const { execSync } = await import('node:child_process'); console.log(execSync('ps axo pid,ppid,etimes,args | grep -v "\\[" | grep -E "127.64|relay|perl|tenantry-t_|postgres: " | cut -c1-200').toString()); console.log(installation.output().stderr.slice(-1000)) }, 25000)
  const moved = await call('PATCH', `/tenants/${a.tenant_id}`, { isolation: 'database-per-tenant' })
  console.log(performance.now() - begun, moved.status, JSON.stringify(moved.body, null, 1))
  clearTimeout(timer)
  const { body: now } = await call('GET', `/tenants/${a.tenant_id}`)
  console.log(now.status, now.isolation, now.database_url)
  console.log(await (await req('GET', '/rest/v1/notes')).text(), await (await req('GET', '/storage/v1/object/files/a7.txt')).text())
  console.log((await req('POST', '/storage/v1/object/files/b.txt', 'b')).status, (await req('POST', '/rest/v1/notes', { id: 2, text: 'two' })).status)
  console.log(JSON.stringify((await call('GET', `/tenants/${a.tenant_id}`)).body).slice(0, 1500))
  if (process.env.LOG) console.log(installation.output().stderr.slice(-6000))
})
