// Logs of functions: stored line by line without secrets, however the run ends, read by page and followed.
import { readFile, readdir } from 'node:fs/promises'
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { executorProgram } from '#tenant-runtime/functions/executor/executor-program.ts'
import { maxBytes, maxRuns } from '#tenant-runtime/functions/logs/log-retention.ts'
import { until } from '#test/support/until.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { readAll } from './support/assemblyscript.ts'
import { deployFunction, invoke } from './support/deployed.ts'
import { EventReader } from '#test/support/event-reader.ts'

const canary = 'canary-3f9c1b-and-more'
const pem =
  '-----BEGIN KEY-----\nq83vASNFZ4mrze8BI0VniavN7wEjRWeJ\r\nvdG9rZW4tZm9yLXRoZS1nYXRlLXdhdGNo\n-----END KEY-----\n'

/** A module with several modes, which standard input selects. */
const source = `${readAll}
function write(text: string): void { process.stderr.write(text) }
const secret = process.env.has('SECRET') ? process.env.get('SECRET') : 'none'
const wish = readAll()
if (wish == 'secret') { write('it is ' + secret + '!\\n') }
else if (wish == 'characters') { for (let n = 0; n < secret.length; n++) write(secret.charAt(n)); write('\\n') }
else if (wish == 'wrapped') { write('it is ' + secret.slice(0, 9) + '\\n' + secret.slice(9) + '!\\n') }
else if (wish == 'pem') { write(process.env.get('PEM')) }
else if (wish == 'broken off') { write('it is ' + secret.slice(0, 12)); unreachable() }
else if (wish == 'stuck') { write('about to be stuck with ' + secret.slice(0, 12)); while (true) {} }
else if (wish == 'trapped') { write('about to trap\\n'); unreachable() }
else if (wish == 'long') { let text = 'x'.repeat(5000); write(secret + text); process.exit(2) }
else if (wish == 'flood') { for (let n = 0; n < 3000; n++) write('line\\n'); for (let n = 0; n < 20; n++) write('y'.repeat(5000) + '\\n') }
else if (wish == 'drops') { for (let n = 0; n < 40000; n++) write('z') }
else if (wish == 'at the edge') { write('w'.repeat(65536 - 12)); write(secret) }
else if (wish != '') write(wish)
`

interface Line {
  timestamp: string
  invocation_id: string
  level: string
  message: string
}

async function read(tenant: TestTenant, name: string, query = ''): Promise<{ logs: Line[]; next: string | null }> {
  const response = await tenant.request('GET', `/functions/v1/${name}/logs${query}`, { as: 'service' })
  if (response.status !== 200) throw new Error(response.text)
  const { logs, next_cursor: next } = response.json()
  return { logs: logs as Line[], next: next as string | null }
}

const idOf = ({ headers }: { headers: Record<string, unknown> }) => String(headers['x-invocation-id'])

t.test('Logs', { timeout: 180_000 }, async (t) => {
  const runtime = await startRuntime(t, {
    pace: { heartbeat: 100, timeout: 500, drainTimeout: 20_000, retryDelay: 50 },
  })
  const tenant = await runtime.addTenant()
  const wasm = await compileSource(source)
  await deployFunction(tenant, {
    name: 'talker',
    wasm,
    config: { timeout: 1, environment: { SECRET: canary, PEM: pem } },
  })

  t.test('Lines are stored with their run, level and time, and read newest first by page', async (t) => {
    const before = new Date().toISOString()
    const first = idOf(await invoke(tenant, 'talker', 'one\ntwo\r\n\nthree'))
    await invoke(tenant, 'talker', '')
    const second = idOf(await invoke(tenant, 'talker', 'four'))
    const { logs, next } = await read(tenant, 'talker')
    t.same(
      logs.map(({ invocation_id, level, message }) => [invocation_id, level, message]),
      [
        [second, 'error', 'four'],
        [first, 'error', 'three'],
        [first, 'error', 'two'],
        [first, 'error', 'one'],
      ],
    )
    t.ok(logs.every(({ timestamp }) => timestamp >= before && timestamp <= new Date().toISOString()))
    t.equal(next, null)
    const pages: string[][] = []
    for (let cursor = ''; ;) {
      const page = await read(tenant, 'talker', `?limit=3${cursor}`)
      pages.push(page.logs.map(({ message }) => message))
      if (page.next === null) break
      cursor = `&cursor=${page.next}`
    }
    t.same(pages, [['four', 'three', 'two'], ['one']])
    t.same(
      (await read(tenant, 'talker', `?invocation_id=${first}&limit=1`)).logs.map(({ message }) => message),
      ['three'],
    )
    t.same((await read(tenant, 'talker', '?level=debug,info')).logs, [])
    t.equal((await read(tenant, 'talker', `?level=error&since=${before}`)).logs.length, 4)
    t.same((await read(tenant, 'talker', `?until=${before}`)).logs, [])
    t.same((await read(tenant, 'talker', `?since=${new Date(Date.now() + 60_000).toISOString()}`)).logs, [])
    const stored = await tenant.rows(
      'select f.name, l.invocation_id, l.lines, l.timestamp from function_logs l join functions f on f.id = l.function_id order by seq',
    )
    t.match(stored, [
      { name: 'talker', invocation_id: first, lines: [{ message: 'one' }, { message: 'two' }, { message: 'three' }] },
      { invocation_id: second, lines: [{ level: 'error', message: 'four' }] },
    ])
  })

  t.test('Runs that trap, fail or are killed retain their lines', async (t) => {
    t.equal((await invoke(tenant, 'talker', 'trapped')).status, 500)
    t.match((await read(tenant, 'talker', '?limit=1')).logs, [{ message: 'about to trap' }])
    t.equal((await invoke(tenant, 'talker', 'stuck')).status, 504)
    t.match((await read(tenant, 'talker', '?limit=1')).logs, [{ message: 'about to be stuck with [redacted]' }])
    const stuck = invoke(tenant, 'talker', 'stuck')
    const deadline = Date.now() + 900
    let killed = 0
    while (killed === 0 && Date.now() < deadline) killed = await killSpinning()
    const { status } = await stuck
    t.ok(killed > 0 ? status === 500 : status === 504)
    t.match((await read(tenant, 'talker', '?limit=1')).logs, [{ message: /^about to be stuck/ }])
  })

  t.test('No secret is in a log, a record or an error, whole or split', async (t) => {
    const texts: string[] = []
    for (const wish of ['secret', 'characters', 'wrapped', 'pem', 'broken off', 'long', 'at the edge']) {
      const response = await invoke(tenant, 'talker', wish)
      texts.push(response.text)
      const [last] = (await read(tenant, 'talker', '?limit=1')).logs
      texts.push(
        ...(await read(tenant, 'talker', `?invocation_id=${last?.invocation_id}`)).logs.map(({ message }) => message),
      )
    }
    t.match(texts.join('\n'), /it is \[redacted\]!\n.*it is \[redacted\]\n/s)
    texts.push(
      JSON.stringify(await tenant.rows('select lines from function_logs')),
      JSON.stringify(await tenant.rows('select error_message from function_invocations')),
      ...runtime.errors,
    )
    const all = texts.join('\n')
    for (const part of [
      canary,
      canary.slice(0, 9),
      canary.slice(9),
      canary.slice(0, 4),
      canary.slice(-9),
      'q83vASNFZ4',
      'dG9rZW4tZm9y',
      'BEGIN KEY',
    ])
      t.notOk(all.includes(part), part)
  })

  t.test('Of a flood, the log stores the first lines and the number of the others', async (t) => {
    await deployFunction(tenant, { name: 'flooder', wasm, config: { timeout: 30 } })
    t.equal((await invoke(tenant, 'flooder', 'flood')).status, 200)
    const { logs } = await read(tenant, 'flooder', '?limit=3')
    t.match(logs, [
      { level: 'warn', message: /^\[\d+ lines and \d+ bytes more were not stored\]$/ },
      { message: 'line' },
      { message: 'line' },
    ])
    t.equal((await invoke(tenant, 'flooder', 'drops')).status, 200)
    t.same((await read(tenant, 'flooder', '?limit=1')).logs[0]?.message, 'z'.repeat(40_000))
  })

  t.test('Only the service reads logs, and invalid queries are rejected', async (t) => {
    t.equal((await tenant.request('GET', '/functions/v1/talker/logs', { as: 'ada' })).status, 403)
    t.equal((await tenant.request('GET', '/functions/v1/talker/logs')).status, 401)
    t.equal((await tenant.request('GET', '/rest/v1/function_logs', { as: 'service' })).status, 404)
    t.equal((await tenant.request('GET', '/functions/v1/missing/logs', { as: 'service' })).status, 404)
    t.equal((await tenant.request('GET', '/functions/v1/missing/logs?follow=true', { as: 'service' })).status, 404)
    for (const [query, code, message] of [
      ['limit=0', 'BAD_REQUEST', /"limit"/],
      ['limit=1001', 'BAD_REQUEST', /1 to 1000/],
      ['limit=1&limit=2', 'BAD_REQUEST', /once/],
      ['level=loud', 'BAD_REQUEST', /debug, info, warn, error/],
      ['since=yesterday', 'BAD_REQUEST', /"since"/],
      ['until=2026-02-31', 'BAD_REQUEST', /"until"/],
      ['since=2026-01-01T00:00:00+01:00', 'BAD_REQUEST', /%2B/],
      ['cursor=x', 'BAD_REQUEST', /next_cursor/],
      ['invocation_id=%00', 'BAD_REQUEST', /NUL/],
      ['follow=perhaps', 'BAD_REQUEST', /true, false/],
      ['follow=true&limit=1', 'BAD_REQUEST', /is not allowed with "follow"/],
      ['sort=up', 'UNKNOWN_PARAMETER', /"sort"/],
    ] as const) {
      const response = await tenant.request('GET', `/functions/v1/talker/logs?${query}`, { as: 'service' })
      t.match({ status: response.status, ...response.json() }, { status: 400, code, message }, query)
    }
    const response = await tenant.request('GET', '/functions/v1/talker/logs?follow=true', {
      as: 'service',
      headers: { 'last-event-id': '99999999999' },
    })
    t.match({ status: response.status, ...response.json() }, { status: 400, code: 'INVALID_EVENT_ID' })
  })

  t.test('The log retains the newest runs, within its limits', async (t) => {
    await deployFunction(tenant, { name: 'old', wasm })
    const last = (await invoke(tenant, 'old', 'first of this process'), idOf(await invoke(tenant, 'old', 'seen')))
    const fill = (runs: number, bytes: number) =>
      tenant.rows(
        `insert into function_logs (function_id, invocation_id, timestamp, lines, bytes)
       select f.id, 'filled-' || n, now(), '[{"timestamp":"2026-01-01T00:00:00Z","level":"info","message":"filled"}]',
         $2::int from functions f, generate_series(1, $1::int) n where f.name = 'old'`,
        [runs, bytes],
      )
    const count = async () =>
      Number(
        (
          await tenant.rows(
            "select count(*) as count from function_logs l join functions f on f.id = l.function_id where f.name = 'old'",
          )
        )[0]?.['count'],
      )
    await fill(maxRuns + 500, 10)
    // The retention job runs after every hundredth run.
    for (let n = 0; n < 99; n++) await invoke(tenant, 'old', 'again')
    await until(async () => (await count()) <= maxRuns + 100)
    t.ok((await count()) >= maxRuns)
    t.same((await read(tenant, 'old', `?invocation_id=${last}`)).logs, [], 'the oldest are gone')
    await fill(16, maxBytes / 8)
    for (let n = 0; n < 100; n++) await invoke(tenant, 'old', 'again')
    await until(async () => (await count()) < 200)
    t.match((await read(tenant, 'old', '?limit=1')).logs, [{ message: 'again' }])
    t.equal((await tenant.request('DELETE', '/functions/v1/old', { as: 'service' })).status, 204)
    t.equal(
      Number(
        (
          await tenant.rows('select count(*) as count from function_logs where lines @> \'[{"message":"again"}]\'')
        )[0]?.['count'],
      ),
      0,
      'the logs of a function are deleted with the function',
    )
  })

  t.test('A follower receives new lines as they are written, and can reconnect', async (t) => {
    const headers = { ...tenant.as('service'), accept: 'text/event-stream' }
    const reader = await EventReader.open(tenant, '/functions/v1/talker/logs', headers)
    const one = await EventReader.open(tenant, '/functions/v1/talker/logs?follow=true&level=warn', tenant.as('service'))
    t.match(reader.response.headers, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
    })
    const id = idOf(await invoke(tenant, 'talker', 'live one\nlive two'))
    const [first, second] = await reader.until(2)
    t.match(
      [first?.data, second?.data],
      [{ invocation_id: id, level: 'error', message: 'live one', timestamp: /Z$/ }, { message: 'live two' }],
    )
    const again = await EventReader.open(tenant, '/functions/v1/talker/logs', {
      ...headers,
      'last-event-id': String(first?.id),
    })
    t.match((await again.until(1))[0], { id: second?.id, data: { message: 'live two' } })
    await invoke(tenant, 'talker', 'live three')
    t.match((await again.until(2))[1], { data: { message: 'live three' } })
    t.match((await reader.until(3))[2], { data: { message: 'live three' } })
    t.same(one.events, [], 'the filter omits other levels')
    tenant.change({})
    t.match((await reader.untilOver()).at(-1), { event: 'end', data: { code: 'TENANT_CHANGED' } })
    for (const open of [again, one]) await open.untilOver()
    const brief = await EventReader.open(tenant, '/functions/v1/talker/logs', {
      ...headers,
      authorization: `Bearer ${tenant.token('robot', { role: 'service_role' })}`,
    })
    runtime.clock.ahead = 2 * 3_600_000
    t.match((await brief.untilOver()).at(-1), { event: 'end', data: { code: 'INVALID_TOKEN' } })
    t.same(
      runtime.errors.filter((error) => /could not be recorded|could not be deleted/.test(error)),
      [],
    )
  })
})

/** Kills the executors of this process that have used more processor time than a start needs. */
async function killSpinning(): Promise<number> {
  let killed = 0
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const [stat, commandLine] = await Promise.all([
      readFile(`/proc/${entry}/stat`, 'utf8').catch(() => ''),
      readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => ''),
    ])
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (Number(fields[1]) !== process.pid || !commandLine.includes(executorProgram().file) || Number(fields[11]) < 40)
      continue
    process.kill(Number(entry), 'SIGKILL')
    killed++
  }
  return killed
}
