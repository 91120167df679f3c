// The connection to Postgres is lost at a commit, before or after it, so the outcome is unknown. The caller receives an
// error that states this, no file is deleted, and the state afterwards is one of the two outcomes, whole.
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { openPostgresProxy, type Loss } from '#test/support/postgres-proxy.ts'
import type { StorageFailpoint } from '#tenant-runtime/storage/failpoints.ts'
import { inspect, sound } from './support/inspect.ts'
import { openScene } from './support/scene.ts'
import { serve } from './support/served-storage.ts'
import { Load, databaseIsAway } from './support/writers.ts'

const objects = '/storage/v1/object'
const text = { 'content-type': 'text/plain' }
const move = { bucketId: 'docs', sourceKey: 'existing', destinationKey: 'elsewhere' }

t.test('A connection to Postgres breaks at a commit', { timeout: 3_600_000 }, async (t) => {
  const scene = await openScene(t)
  const proxy = await openPostgresProxy(t, scene.postgres.port)
  const armed: { loss: Loss | undefined } = { loss: undefined }
  // The next exchange after the failpoint is the commit.
  const failpoint: StorageFailpoint = (name) => {
    const { loss } = armed
    if (loss === undefined || !name.endsWith('.before-commit')) return
    armed.loss = undefined
    proxy.lose = () => {
      proxy.lose = undefined
      return loss
    }
  }
  const { request, idle } = await serve(t, scene, { databasePort: proxy.port, failpoint })
  const load = new Load(seed, { unsure: databaseIsAway })
  await load.begin(request)
  const read = async (path: string) => {
    const { status, text } = await request('GET', `${objects}/docs/${path}`)
    return status === 200 ? text : status
  }

  const changes = {
    'of an upload': {
      request: () => request('POST', `${objects}/docs/fresh`, 'new', text),
      before: { fresh: 404 },
      after: { fresh: 'new' },
    },
    'of an overwrite': {
      request: () => request('POST', `${objects}/docs/existing`, 'new', text),
      before: { existing: 'old' },
      after: { existing: 'new' },
    },
    'of a delete': {
      request: () => request('DELETE', `${objects}/docs/existing`),
      before: { existing: 'old' },
      after: { existing: 404 },
    },
    'of a delete of many': {
      request: () => request('DELETE', `${objects}/docs`, { prefixes: ['existing'] }),
      before: { existing: 'old' },
      after: { existing: 404 },
    },
    'of a move': {
      request: () => request('POST', `${objects}/move`, move),
      before: { existing: 'old', elsewhere: 404 },
      after: { existing: 404, elsewhere: 'old' },
    },
    'of a copy': {
      request: () => request('POST', `${objects}/copy`, move),
      before: { existing: 'old', elsewhere: 404 },
      after: { existing: 'old', elsewhere: 'old' },
    },
    'of an emptying': {
      request: () => request('POST', '/storage/v1/bucket/docs/empty'),
      before: { existing: 'old' },
      after: { existing: 404 },
    },
  }
  for (const loss of ['request', 'response'] as const) {
    for (const [name, { request: change, before, after }] of Object.entries(changes)) {
      t.test(`${name}, ${loss === 'request' ? 'lost before the commit' : 'lost after the commit'}`, async (t) => {
        await request('POST', '/storage/v1/bucket/docs/empty')
        await request('POST', `${objects}/docs/existing`, 'old', text)
        await idle()
        const lost = proxy.lost
        armed.loss = loss
        const { status, text: body } = await change()
        t.equal(status, 503)
        t.match(JSON.parse(body), { code: 'DATABASE_UNAVAILABLE' })
        t.equal(proxy.lost, lost + 1, 'the exchange was lost')
        const wanted = loss === 'request' ? before : after
        for (const [path, content] of Object.entries(wanted)) t.equal(await read(path), content, path)
        t.same(await inspect(scene, request, load), sound)
        for (const [path, content] of Object.entries(wanted))
          t.equal(await read(path), content, `${path} after the sweep`)
      })
    }
  }

  t.test('Connections to Postgres break at any time, under sixteen writers', async (t) => {
    const wanted = effort({ small: 300, full: 20_000 })
    const chance = chanceOf(seed)
    proxy.lose = () => (chance.happens(0.02) ? chance.pick(['request', 'response']) : undefined)
    await load.run(request, () => load.acknowledged >= wanted)
    proxy.lose = undefined
    t.same(load.wrong, [], 'every other response was correct')
    t.same(await inspect(scene, request, load), sound)
    t.comment(`${proxy.lost} exchanges lost, responses ${JSON.stringify([...load.responses])}, seed ${seed}`)
    t.ok((load.responses.get(503) ?? 0) > 0, 'some callers received the error of a broken connection')
  })
})
