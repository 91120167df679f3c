// The programs in simulated containers: how they start, respond, crash and restart, and how the lock of a volume allows only
// one Postgres at a time.
import type { Chance } from './chance.ts'
import { beginning, type Actor } from './control-plane.ts'
import { clusterOf, isMember, type Change, type Container, type Volume } from './docker-objects.ts'
import type { Scheduler } from './scheduler.ts'

export interface ProgramsOptions {
  scheduler: Scheduler
  chance: Chance
  containers: ReadonlyMap<string, Container>
  volumes: ReadonlyMap<string, Volume>
  isDown: () => boolean
  /** Listeners that receive each container whose program begins to respond. */
  starts: ReadonlySet<(container: Container) => void>
  changed: (change: Change, actor: Actor) => void
  /** Postgres creates a cluster in any empty volume. A planted defect. */
  beginsAnywhere: boolean
}

/** The Engine itself, mainly its restart policy. */
export const engineItself: Actor = { name: 'docker', isLate: () => false }

const lockTimeout = 10_000
const maxBackoff = 5_000

export function createPrograms({
  scheduler,
  chance,
  containers,
  volumes,
  isDown,
  starts,
  changed,
  beginsAnywhere,
}: ProgramsOptions) {
  const isRunning = ({ state }: Container) => state === 'running' || state === 'paused'
  const responds = (container: Container) =>
    container.state === 'running' && !container.isWedged && scheduler.now() >= container.respondsAt

  const respondAfter = (container: Container, milliseconds: number) => {
    const { run } = container
    container.respondsAt = scheduler.now() + milliseconds
    scheduler.after(milliseconds, () => {
      if (container.run !== run || !isRunning(container)) return
      container.failures = 0
      const volume = volumes.get(clusterOf(container) ?? '')
      if (volume !== undefined && !volume.isCluster && !isMember(container)) {
        volume.isCluster = true
        changed({ kind: 'cluster', what: 'created', object: volume }, engineItself)
      }
      if (volume !== undefined) volume.mayBegin = false
      for (const started of starts) started(container)
    })
  }

  const lockCluster = (container: Container, volume: Volume) => {
    volume.lock = container.id
    if (isMember(container)) {
      respondAfter(container, chance.between(100, 500))
      return
    }
    if (!volume.isCluster && !volume.mayBegin && !beginsAnywhere) {
      // Postgres ends soon after its start, not during it.
      const { run } = container
      scheduler.after(chance.between(5, 50), () => {
        if (container.run === run) crash(container)
      })
      return
    }
    respondAfter(container, volume.isCluster ? chance.between(100, 500) : chance.between(300, 1_200))
  }

  const awaitLock = (container: Container, volume: Volume) => {
    volume.waiting.push(container.id)
    const { run } = container
    scheduler.after(lockTimeout, () => {
      if (container.run === run && volume.waiting.includes(container.id)) crash(container)
    })
  }

  const startProgram = (container: Container) => {
    container.respondsAt = Infinity
    const volume = volumes.get(clusterOf(container) ?? '')
    if (volume === undefined) respondAfter(container, chance.between(50, 600))
    else if (volume.lock === undefined) lockCluster(container, volume)
    else awaitLock(container, volume)
  }

  /** Ends a program and passes its lock to the next container that waits. */
  const endProgram = (container: Container) => {
    container.respondsAt = Infinity
    container.isWedged = false
    container.health = 'none'
    const volume = volumes.get(clusterOf(container) ?? '')
    if (volume === undefined) return
    volume.waiting = volume.waiting.filter((id) => id !== container.id)
    if (volume.lock !== container.id) return
    volume.lock = undefined
    const next = [...containers.values()].find(({ id }) => id === volume.waiting[0])
    if (next === undefined) return
    volume.waiting.shift()
    lockCluster(next, volume)
  }

  const begin = (container: Container, actor: Actor) => {
    container.state = 'running'
    container.run++
    container.startedAt = new Date(beginning + scheduler.now()).toISOString()
    // Restarts by the Engine keep the caller of the first start.
    if (actor !== engineItself) container.startedLate = actor.isLate()
    container.wasStopped = false
    container.isWedged = false
    for (const location of container.slots.values()) delete location.shared
    startProgram(container)
    changed({ kind: 'container', what: 'started', object: container }, actor)
  }

  const halt = (container: Container, to: 'exited' | 'restarting', exitCode: number, actor: Actor) => {
    container.state = to
    container.exitCode = exitCode
    endProgram(container)
    changed({ kind: 'container', what: 'changed', object: container }, actor)
  }

  /** Ends a program by itself; the restart policy starts it again. */
  const crash = (container: Container) => {
    if (container.state !== 'running') return
    if (container.restartPolicy === 'no') {
      halt(container, 'exited', 1, engineItself)
      return
    }
    halt(container, 'restarting', 1, engineItself)
    const { run } = container
    scheduler.after(Math.min(100 * 2 ** container.failures++, maxBackoff), () => {
      if (container.run !== run || container.state !== 'restarting' || isDown()) return
      container.restarts++
      begin(container, engineItself)
    })
  }

  return { isRunning, responds, begin, halt, crash, endProgram }
}
