// The control plane deletes no backup without a recorded decision. It quarantines backups that its database does not know, lists
// those whose files are missing, and trusts a record only under the master key that sealed it.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createArchiveFiles } from '#control-plane/backups/archive/archive-files.ts'
import { createArchiveLedger } from '#control-plane/backups/archive/store-archives.ts'
import { runBackups } from '#control-plane/backups/jobs.ts'
import { createBackupRecords, type BackupRecords } from '#control-plane/backups/backup-record.ts'
import type { BackupTarget } from '#control-plane/backups/backup-target.ts'
import { createDirectoryTarget } from '#control-plane/backups/directory-target.ts'
import { manifestHash } from '#control-plane/backups/manifest.ts'
import { createRuntimeFiles } from '#control-plane/backups/shared/runtime-files.ts'
import { openFiles } from '#control-plane/backups/parts.ts'
import { surveyBackups } from '#control-plane/backups/survey-backups.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { createTargets } from '#control-plane/backups/target-set.ts'
import { createSeal } from '#control-plane/platform/seal.ts'
import { createBackupLedger } from '#control-plane/backups/store-ledger.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'
import { filesBelow } from './support/tenants.ts'
import { describedBackup } from './support/targets.ts'

const signal = new AbortController().signal
const installation = '0b8d7a44-2f64-4d0e-8a3c-1c6a1a0e5a01'
const noLog = { info: () => undefined, warn: () => undefined }

async function directory(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tenantry-target-'))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return path
}

interface Written {
  id: string
  key: Buffer
  manifest: string
}

/** Writes a complete backup, as the control plane does. */
async function writeBackup(
  target: BackupTarget,
  records: BackupRecords | undefined,
  id: string = randomUUID(),
): Promise<Written> {
  const key = randomBytes(32)
  const files = openFiles(target, id, key, signal)
  for (const part of ['database', 'files', 'index'] as const) {
    await files.write(
      part,
      (async function* () {
        yield await Promise.resolve(randomBytes(100))
      })(),
    )
  }
  const manifest = `{"of":"${id}"}`
  await files.writeManifest(manifest)
  if (records !== undefined)
    await files.writeRecord(records.write(describedBackup(id, files.bytes(), manifestHash(manifest)), key))
  await files.commit()
  return { id, key, manifest }
}

t.test('a backup record', async (t) => {
  const seal = createSeal(randomBytes(32))
  const records = createBackupRecords({ seal, installation })
  const id = randomUUID()
  const key = randomBytes(32)
  const text = records.write(describedBackup(id, 7, 'ab'), key)
  const error = (of: BackupRecords, changed: string | undefined, as = id) => of.read(changed, as).error?.code

  t.test('contains the backup’s key, sealed with the master key', (t) => {
    const read = records.read(text, id)
    t.match(read, { description: { tenant_name: 'ada', plan: 'Pro', installation }, error: undefined })
    t.same(Buffer.from(read.key ?? []), key)
    t.notOk(text.includes(key.toString('base64')), 'the key is not in plain text')
    t.end()
  })

  t.test('is rejected when any part of it was changed', (t) => {
    const { description } = JSON.parse(text) as { description: Record<string, unknown> }
    for (const name of Object.keys(description)) {
      const value = description[name]
      const other =
        typeof value === 'number'
          ? value + 1
          : name === 'trigger'
            ? 'request'
            : name.endsWith('_at')
              ? '2026-01-01T00:00:00.000Z'
              : `${String(value)}x`
      const record = JSON.parse(text) as Record<string, unknown>
      const code = error(records, JSON.stringify({ ...record, description: { ...description, [name]: other } }))
      t.equal(code, name === 'installation' ? 'OTHER_INSTALLATION' : 'RECORD_DAMAGED', name)
    }
    for (const broken of ['', '{}', 'null', text.slice(0, -3), text.replace('"format": 1', '"format": 2')])
      t.equal(error(records, broken), 'RECORD_DAMAGED', broken.slice(0, 20))
    t.equal(error(records, text, randomUUID()), 'RECORD_DAMAGED', 'the record of another backup')
    t.equal(error(records, undefined), 'NO_RECORD')
    t.end()
  })

  t.test('of another installation or master key is rejected with that reason', (t) => {
    t.equal(error(createBackupRecords({ seal, installation: randomUUID() }), text), 'OTHER_INSTALLATION')
    t.equal(error(createBackupRecords({ seal: createSeal(randomBytes(32)), installation }), text), 'OTHER_MASTER_KEY')
    t.end()
  })
})

t.test('the directory', async (t) => {
  t.test('an interrupted removal is continued', async (t) => {
    for (const from of ['', 'quarantine']) {
      const root = await directory(t)
      const target = createDirectoryTarget(root, 'here')
      const { id } = await writeBackup(target, undefined)
      if (from !== '') await target.quarantine(id)
      await rename(join(root, 'here', from, id), join(root, 'here', `${id}.removing`))
      await rm(join(root, 'here', `${id}.removing`, 'manifest'))
      await surveyBackups(
        { targets: createTargets([target], systemClock), states: () => Promise.resolve(new Map()), log: noLog },
        new Set(),
      )
      t.same([...(await filesBelow(root)).keys()], [])
    }
  })

  t.test('a survey does not change other directories, and overwrites nothing in the quarantine', async (t) => {
    const root = await directory(t)
    const target = createDirectoryTarget(root, 'here')
    for (const name of ['lost+found', 'notes', randomUUID().toUpperCase(), `${randomUUID()}.old`]) {
      await mkdir(join(root, 'here', name), { recursive: true })
      await writeFile(join(root, 'here', name, 'file'), name)
    }
    const { id } = await writeBackup(target, undefined)
    await target.quarantine(id)
    await writeBackup(target, undefined, id)
    const before = await filesBelow(root)
    const survey = {
      targets: createTargets([target], systemClock),
      states: () => Promise.resolve(new Map()),
      log: noLog,
    }
    const { found } = await surveyBackups(survey, new Set())
    t.same(found, { unknown: 1, missing: 0, uncopied: 0, unavailable: [] })
    t.same(await filesBelow(root), before)
    await target.remove(id)
    t.equal((await filesBelow(root)).size, 4)
  })
})

t.test('the API and the leader', async (t) => {
  const root = await directory(t)
  const target = createDirectoryTarget(root, installation)
  const elsewhere = await directory(t)
  const targets = [{ name: 'offsite', directory: elsewhere }]
  const api = await startApi(t, { control: false, backups: { directory: root, installation, targets } })
  const { seal } = api
  const records = createBackupRecords({ seal, installation })
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  const ledger = createBackupLedger(database, seal, () => new Date())
  const [installed] = await api.sql('select epoch from installation')

  /** Leads until a survey is done and the condition holds. @returns the warnings that the leader logged */
  const lead = async (holds: () => boolean | Promise<boolean>) => {
    const lost = new AbortController()
    const warnings: string[] = []
    let surveys = 0
    const ended = runBackups({
      ledger,
      bytesPerSecond: 1_000_000_000,
      targets: createTargets([target], systemClock),
      records,
      archives: {
        files: createArchiveFiles([], systemClock),
        ledger: createArchiveLedger(database, seal, () => new Date()),
      },
      regions: new Map(),
      hosts: {
        assign: () => Promise.resolve({}),
        replace: () => Promise.resolve(undefined),
        endReplacement: () => Promise.resolve(),
        forJob: () => Promise.resolve(undefined),
      },
      runtimeFiles: createRuntimeFiles('unused', fetch, systemClock),
      tenant: (id) => api.reconcileStore.snapshot(id),
      readHome: () => Promise.resolve(),
      migrations: [],
      clock: systemClock,
      log: { info: () => undefined, warn: (_details, message) => void warnings.push(message) },
      measure: () => undefined,
      found: () => surveys++,
      available: () => undefined,
      changes: { subscribe: () => () => undefined },
    })({ epoch: BigInt(String(installed?.['epoch'])), lost: lost.signal })
    await until(async () => surveys > 0 && (await holds()))
    lost.abort()
    await ended
    return warnings
  }
  const list = async (query: string) => {
    const { body } = await api.call('GET', `/v1/backups?${query}`)
    return body as { backups: Record<string, unknown>[]; next_cursor: string | null }
  }
  /** Inserts a backup, and an operation in the given state. */
  const insert = async ({ id, key, manifest }: Written, state: string, operation?: string) => {
    const sealed = Buffer.from(seal.seal(key.toString('base64'), `backup:${id}`))
    await api.sql(
      'insert into backups (id, tenant_id, region_id, state, trigger, key, manifest_hash) values ($1, $2, $3, $4, $5, $6, $7)',
      [
        id,
        't_0123456789abcdef0123',
        'local',
        state,
        'request',
        sealed,
        state === 'complete' ? manifestHash(manifest) : null,
      ],
    )
    if (operation === undefined) return
    await api.sql(
      'insert into operations (id, tenant_id, kind, state, generation, backup_id) values ($1, $2, $3, $4, 0, $5)',
      [randomUUID(), 't_0123456789abcdef0123', 'backup', operation, id],
    )
  }

  t.test('unknown backups are quarantined and listed in pages, each with its error', async (t) => {
    const good = await writeBackup(target, records)
    const old = await writeBackup(target, undefined)
    const foreign = await writeBackup(target, createBackupRecords({ seal, installation: randomUUID() }))
    const wrongKey = await writeBackup(target, createBackupRecords({ seal: createSeal(randomBytes(32)), installation }))
    const damaged = await writeBackup(target, records)
    await writeFile(join(root, installation, damaged.id, 'manifest'), 'x')
    const unfinished = randomUUID()
    await openFiles(target, unfinished, randomBytes(32), signal).writeManifest('{}')
    const before = (await filesBelow(root)).size
    const warnings = await lead(() => true)
    t.equal(warnings.filter((text) => text.includes('quarantine')).length, 6, 'the log names each unknown backup')
    t.equal((await filesBelow(join(root, installation, 'quarantine'))).size, before, 'no file is lost')

    const errors = new Map<unknown, unknown>()
    for (let cursor: string | null = ''; cursor !== null;) {
      const page = await list(`state=unknown&limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
      for (const { id, adoptable, problem } of page.backups) {
        t.equal(adoptable, problem === null)
        errors.set(id, (problem as { code: string } | null)?.code)
      }
      cursor = page.next_cursor
    }
    const expected = [
      [good, undefined],
      [old, 'NO_RECORD'],
      [foreign, 'OTHER_INSTALLATION'],
      [wrongKey, 'OTHER_MASTER_KEY'],
      [damaged, 'DAMAGED'],
      [{ id: unfinished }, 'INCOMPLETE'],
    ] as const
    t.same(errors, new Map(expected.map(([{ id }, code]) => [id, code])))
    for (const [{ id }, code] of expected) {
      if (code === undefined) continue
      t.match(
        await api.call('POST', `/v1/backups/${id}/adopt`),
        { status: 409, body: { code: 'BACKUP_NOT_ADOPTABLE', problem: code } },
        code,
      )
      for (const use of ['verify', 'restore']) {
        t.match(
          await api.call('POST', `/v1/backups/${id}/${use}`, use === 'restore' ? { body: { into: 'same' } } : {}),
          { status: 409, body: { code: 'BACKUP_NOT_ADOPTED' } },
          use,
        )
      }
    }
    t.equal((await filesBelow(join(root, installation, 'quarantine'))).size, before, 'rejected requests remove no file')
    t.match(await api.call('POST', `/v1/backups/${good.id}/adopt`), {
      status: 200,
      body: { id: good.id, state: 'complete', trigger: 'request', planned_at: null },
    })
    t.same((await readdir(join(root, installation))).sort(), ['quarantine', good.id].sort())
    const [row] = await api.sql('select key from backups where id = $1', [good.id])
    t.same(
      Buffer.from(seal.open(row?.['key'] as Uint8Array, `backup:${good.id}`), 'base64'),
      good.key,
      'the adopted backup has its original key',
    )
    t.match(await api.call('GET', `/v1/backups/${old.id}`), {
      status: 200,
      body: { state: 'unknown', problem: { code: 'NO_RECORD', message: /Its key/ } },
    })

    for (const [{ id }, code] of expected.slice(1))
      t.match(
        await api.call('DELETE', `/v1/backups/${id}`),
        { status: 200, body: { id, state: 'unknown' } },
        String(code),
      )
    t.equal((await api.call('DELETE', `/v1/backups/${old.id}`)).status, 404)
    t.same(await readdir(join(root, installation, 'quarantine')), [])
    const audit = await api.sql("select action from audit_log where action like 'backup.%'")
    t.equal(audit.filter(({ action }) => action === 'backup.delete').length, 5)
    t.match(await api.call('DELETE', `/v1/backups/${good.id}`), { status: 200, body: { state: 'complete' } })
    t.same(await readdir(join(root, installation)), ['quarantine'])
  })

  t.test('invalid queries and unknown backups are rejected', async (t) => {
    for (const query of [
      'state=gone',
      'state=unknown&cursor=x',
      'state=missing&cursor=bm90',
      'state=unknown&limit=0',
      'states=unknown',
      'cursor=x',
    ]) {
      t.equal((await api.call('GET', `/v1/backups?${query}`)).status, 400, query)
    }
    t.match(await api.call('POST', '/v1/backups/nothing/adopt'), { status: 404, body: { code: 'BACKUP_NOT_FOUND' } })
    t.match(await api.call('POST', `/v1/backups/${randomUUID()}/adopt`), {
      status: 404,
      body: { code: 'BACKUP_NOT_FOUND' },
    })
  })

  t.test('a backup that is committed but recorded as running becomes complete, and is not taken again', async (t) => {
    for (const state of ['pending', 'running']) {
      const written = await writeBackup(target, records)
      const before = await filesBelow(join(root, installation, written.id))
      await insert(written, 'running', state)
      await lead(
        async () =>
          (await api.sql('select state from backups where id = $1', [written.id]))[0]?.['state'] !== 'running',
      )
      t.match(
        await api.call('GET', `/v1/backups/${written.id}`),
        { body: { state: 'complete', manifest_sha256: manifestHash(written.manifest), bytes: Number } },
        state,
      )
      t.same(await filesBelow(join(root, installation, written.id)), before)
    }
  })

  t.test('a running backup without a commit fails, and its files are removed', async (t) => {
    const id = randomUUID()
    const key = randomBytes(32)
    await openFiles(target, id, key, signal).writeManifest('{}')
    await insert({ id, key, manifest: '{}' }, 'running', 'running')
    await lead(async () => (await api.sql('select state from backups where id = $1', [id]))[0]?.['state'] === 'failed')
    t.notOk((await readdir(join(root, installation))).includes(`${id}.making`))
  })

  t.test('a backup whose files are missing is listed, until they are back', async (t) => {
    const written = await writeBackup(target, records)
    await insert(written, 'complete')
    const [path, away] = [join(root, installation, written.id), join(root, 'away')]
    await rename(path, away)
    const warnings = await lead(() => true)
    t.ok(warnings.some((text) => text.includes('missing')))
    t.same(
      (await list('state=missing')).backups.map(({ id }) => id),
      [written.id],
    )
    await rename(away, path)
    await target.quarantine(written.id)
    await lead(() => true)
    t.same((await list('state=missing')).backups, [])
    t.same((await list('state=unknown')).backups, [])
    t.ok((await readFile(join(path, 'manifest'))).length > 0, 'a known backup leaves the quarantine')
  })

  t.test('the state of each copy is shown, and a target that does not respond is named', async (t) => {
    const written = await writeBackup(target, records)
    await insert(written, 'complete')
    const copies = async () => {
      const { body } = await api.call('GET', `/v1/backups/${written.id}`)
      const { copies } = body as { copies: { target: string; state: string }[] }
      return copies.map(({ target, state }) => `${target} ${state}`)
    }
    t.same(await copies(), ['directory complete', 'offsite missing'])
    await rename(elsewhere, `${elsewhere}-away`)
    t.same(await copies(), ['directory complete', 'offsite unavailable'])
    const error = { status: 503, body: { code: 'UNAVAILABLE', message: /"offsite"/ } }
    t.match(await api.call('GET', '/v1/backups?state=missing'), error, 'nothing is called missing')
    await rename(root, `${root}-away`)
    t.match(await api.call('GET', '/v1/backups?state=unknown'), { status: 503, body: { code: 'UNAVAILABLE' } })
    await rename(`${root}-away`, root)
    await rename(`${elsewhere}-away`, elsewhere)
  })
})
