// The watchdog of the platform's containers on a real Engine: which ones it starts again, and when it gives up its socket.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { engineSocket } from '#docker-proxy/engine-socket.ts'
import { EndedContainers } from '#docker-proxy/ended-containers.ts'
import { EngineGone, watchContainers } from '#docker-proxy/watchdog.ts'
import { connectDocker } from '#control-plane/engines/docker/docker-connection.ts'
import { engineAddress, engineSocket as testSocket, image } from '#test/support/docker.ts'
import { until } from '#test/support/until.ts'

const log = { info: () => undefined, warn: () => undefined }
const now = () => performance.now()

/** Opens a project as Compose creates it, whose containers run. */
async function openProject(t: Test) {
  const { docker, close } = connectDocker({ host: engineAddress() })
  const project = `watched-${randomBytes(4).toString('hex')}`
  const stopping = new AbortController()
  t.teardown(async () => {
    stopping.abort()
    const made = await docker.listContainers({
      all: true,
      filters: { label: [`com.docker.compose.project=${project}`] },
    })
    for (const { Id } of made) await docker.getContainer(Id).remove({ force: true })
    close()
  })
  return {
    project,
    signal: stopping.signal,
    async start(isOneOff = false) {
      const labels = { 'com.docker.compose.project': project, 'com.docker.compose.oneoff': isOneOff ? 'True' : 'False' }
      const HostConfig = { NetworkMode: 'none', RestartPolicy: { Name: 'always' } }
      const container = await docker.createContainer({
        Image: image,
        Cmd: ['sleep', '600'],
        Labels: labels,
        StopTimeout: 0,
        HostConfig,
      })
      await container.start()
      return container
    },
  }
}

t.test('A killed container is started again, unlike a stopped one and one that is not a service', async (t) => {
  const { project, signal, start } = await openProject(t)
  const [stopped, oneOff, killed, removed] = [await start(), await start(true), await start(), await start()]
  // The Engine repeats the events from before the watch.
  await killed.kill()
  await stopped.stop()
  await oneOff.kill()
  const watch = watchContainers({ engine: engineSocket(testSocket()), project, log, now, graceMs: 0 }, signal)
  watch.catch(() => undefined)
  await until(async () => (await killed.inspect()).State.Running, 'the restart of the killed container')
  await removed.remove({ force: true })
  await killed.kill()
  await until(async () => (await killed.inspect()).State.Running, 'the second restart of the killed container')
  for (const container of [stopped, oneOff]) t.equal((await container.inspect()).State.Running, false)
})

t.test('The watch ends when no Engine listens, so that its container can start with the new socket', async (t) => {
  const { project, signal } = await openProject(t)
  const watch = watchContainers({ engine: engineSocket('/nonexistent/docker.sock'), project, log, now }, signal)
  await t.rejects(watch, EngineGone)
})

t.test('A container counts as killed when it ended without a stop before or after', async (t) => {
  const cases = [
    [['die'], ['c']],
    [['die', 'stop'], []],
    [['stop', 'die'], []],
    [['die', 'start'], []],
    [['die', 'destroy'], []],
    [['die', 'stop', 'start', 'die'], ['c']],
    [['stop', 'start', 'die'], ['c']],
    [['start'], []],
    [['stop'], []],
  ] as const
  for (const [actions, expected] of cases) {
    const containers = new EndedContainers()
    for (const action of actions) containers.observe({ id: 'c', action }, 1_000)
    t.same(containers.overdue(5_999, 5_000), [], `${actions.join(', ')}: not yet`)
    t.same(containers.overdue(6_000, 5_000), expected, actions.join(', '))
  }
  const containers = new EndedContainers()
  containers.observe({ id: 'c', action: 'die' }, 0)
  containers.evict('c')
  t.same(containers.overdue(6_000, 5_000), [])
})
