// Gateways that an earlier start had in addition: they end, and what they counted is never lost.
import { once } from 'node:events'
import { rm, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { endFormerGateways } from '#local/former-gateways.ts'
import type { ProcessService } from '#local/process/supervisor.ts'

interface Scene {
  /** Ends the gateway. @returns what was done with it, and the messages of the log */
  end(actions?: { start?: () => Promise<void>; stop?: () => Promise<void> }): Promise<string[]>
  directory: string
  /** The journal's file of counts. */
  journal: string
}

/** A gateway with a journal, whose third response reports that the control plane has the counts of earlier starts. */
async function openScene(t: Test): Promise<Scene> {
  const root = t.testdir({ 'gateway-2': { journal: { 'a.journal': 'counts' }, 'routes.ndjson': '' } })
  let polls = 0
  const server = createServer((_, response) =>
    response.end(JSON.stringify({ quotas_synced: true, earlier_counts_acknowledged: ++polls > 2 })),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const service: ProcessService = {
    name: 'gateway-2',
    command: '',
    args: [],
    cwd: '/',
    environment: {},
    needs: [],
    ready: () => Promise.resolve(true),
    stopSignal: 'SIGTERM',
    stopOrder: 0,
    stopMilliseconds: 1_000,
  }
  return {
    directory: join(root, 'gateway-2'),
    journal: join(root, 'gateway-2', 'journal', 'a.journal'),
    async end({ start = () => Promise.resolve(), stop = () => Promise.resolve() } = {}) {
      const done: string[] = []
      const log = pino({}, { write: (line) => done.push((JSON.parse(line) as { msg: string }).msg) })
      await endFormerGateways([{ number: 2, service, url }], {
        root,
        supervisor: {
          start({ name }) {
            done.push(`start ${name}`)
            return start()
          },
          end(name) {
            done.push(`end ${name} after ${polls} polls`)
            return stop()
          },
        },
        signal: new AbortController().signal,
        expedite: new AbortController().signal,
        log,
      })
      return done
    },
  }
}

t.test(
  'A former gateway runs until its earlier counts are acknowledged, and is removed after a clean stop',
  async (t) => {
    const { end, directory, journal } = await openScene(t)
    t.same(await end({ stop: () => rm(journal) }), [
      'start gateway-2',
      'end gateway-2 after 3 polls',
      'A gateway of an earlier start has sent all that it counted, and was removed.',
    ])
    await t.rejects(stat(directory), { code: 'ENOENT' })
  },
)

t.test('Counts that were not acknowledged stay for the next start', async (t) => {
  const { end, journal } = await openScene(t)
  const failure = 'A gateway of an earlier start could not send all that it counted. The next start tries again.'
  const failingStart = { start: () => Promise.reject(new Error('It ended.')) }
  t.same(await end(failingStart), ['start gateway-2', 'end gateway-2 after 0 polls', failure], 'no start')
  t.same(await end(), ['start gateway-2', 'end gateway-2 after 3 polls', failure], 'the journal is not empty')
  t.ok((await stat(journal)).isFile())
  await end({ stop: () => rm(journal) })
  await t.rejects(stat(journal), { code: 'ENOENT' })
})
