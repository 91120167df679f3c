// The watchdog of the platform's containers: which ones it starts again, on a real Engine, and when it gives up its socket.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { engineSocket } from '#docker-proxy/engine-socket.ts'
import { StoppedContainers } from '#docker-proxy/stopped-containers.ts'
import { EngineGone, watchContainers } from '#docker-proxy/watchdog.ts'
import { connectDocker } from '#control-plane/engines/docker/docker-connection.ts'
import { engineAddress, engineSocket as testSocket, image } from '#test/support/docker.ts'
import { until } from '#test/support/until.ts'

const log = { info: () => undefined, warn: () => undefined }
const now = () => performance.now()

/** A project with a container that runs, as Compose makes it. */
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

t.test(
  'a container that was killed is started again, and one that was stopped or is not a service stays as it is',
  async (t) => {
    const { project, signal, start } = await openProject(t)
    const [stopped, oneOff, killed, removed] = [await start(), await start(true), await start(), await start()]
    // The Engine repeats what was before the watch.
    await killed.kill()
    await stopped.stop()
    await oneOff.kill()
    const watch = watchContainers({ engine: engineSocket(testSocket()), project, log, now, graceMs: 0 }, signal)
    watch.catch(() => undefined)
    await until(async () => (await killed.inspect()).State.Running, 'the container that was killed runs')
    await removed.remove({ force: true })
    await killed.kill()
    await until(async () => (await killed.inspect()).State.Running, 'the container that was killed again runs')
    for (const container of [stopped, oneOff]) t.equal((await container.inspect()).State.Running, false)
  },
)

t.test(
  'the watch ends when nobody listens at the socket, so that its container can be started with the new one',
  async (t) => {
    const { project, signal } = await openProject(t)
    const watch = watchContainers({ engine: engineSocket('/nonexistent/docker.sock'), project, log, now }, signal)
    await t.rejects(watch, EngineGone)
  },
)

t.test('a container counts as killed when it ended without a stop before or after', async (t) => {
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
    const containers = new StoppedContainers()
    for (const action of actions) containers.observe({ id: 'c', action }, 1_000)
    t.same(containers.overdue(5_999, 5_000), [], `${actions.join(', ')}: not yet`)
    t.same(containers.overdue(6_000, 5_000), expected, actions.join(', '))
  }
  const containers = new StoppedContainers()
  containers.observe({ id: 'c', action: 'die' }, 0)
  containers.evict('c')
  t.same(containers.overdue(6_000, 5_000), [])
})
