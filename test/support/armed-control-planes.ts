// Control planes in containers that are started again with an armed failpoint, at which they are killed.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from './docker.ts'
import type { LabHost } from './swarm-lab.ts'

/** Name of each control plane's container. */
export const controlContainer = 'control-plane'
const armedFile = 'failpoints'
/** Exit code of a process that SIGKILL has ended. */
const killedCode = 137

/** Arguments of Node that read the armed failpoint at each start, and the program of the image. */
export const armedCommand: readonly string[] = [
  `--env-file-if-exists=/etc/tenantry/${armedFile}`,
  '/app/control-plane/src/main.ts',
]

interface ArmedOptions {
  /** The directory that is `/etc/tenantry` for the control planes. */
  directory: string
  hosts: readonly LabHost[]
  isUp(host: LabHost): Promise<boolean>
  /** Returns the host of the control plane that leads. */
  leader(): Promise<LabHost>
  logs(): Promise<string>
}

/** A container of a control plane that does not run any more because SIGKILL has ended it, or that runs. */
export type ArmedState = 'running' | 'killed'

/**
 * Interprets the state of a container, `STATUS CODE OOM`, as Docker returns it.
 * @throws Error if it has ended in another way
 */
export function armedState(text: string): ArmedState {
  const [status, code, isOutOfMemory] = text.split(' ')
  if (status === 'running' || status === 'restarting' || status === 'created') return 'running'
  if (status === 'exited' && Number(code) === killedCode && isOutOfMemory === 'false') return 'killed'
  throw new Error(`The control plane has ended in another way than by its failpoint: ${text}`)
}

/** Creates the functions that arm the control planes. */
export function createArmedControlPlanes({ directory, hosts, isUp, leader, logs }: ArmedOptions) {
  const write = (failpoint: string) =>
    writeFile(join(directory, armedFile), failpoint === '' ? '' : `TENANTRY_FAILPOINTS=${failpoint}\n`)
  const untilUp = (host: LabHost) =>
    until(async () => ((await isUp(host)) ? true : undefined), 60).catch(async (cause: unknown) => {
      throw new Error(`The control plane on ${host.id} does not respond after its start.\n${await logs()}`, { cause })
    })

  return {
    /**
     * Starts all control planes again with an armed failpoint, as `TENANTRY_FAILPOINTS` has it. One that is killed does not start again.
     * @param first the host whose control plane leads
     */
    async arm(failpoint: string, first: LabHost): Promise<void> {
      await write(failpoint)
      await Promise.all(
        hosts.map(async (host) => {
          await host.docker('update', '--restart', 'no', controlContainer)
          await host.docker('stop', '-t', '10', controlContainer)
        }),
      )
      await first.docker('start', controlContainer)
      await untilUp(first)
      const leading = await leader()
      if (leading.id !== first.id)
        throw new Error(`${leading.id} leads instead of ${first.id}, which alone was started.`)
      const others = hosts.filter((host) => host !== first)
      await Promise.all(others.map((host) => host.docker('start', controlContainer)))
      await Promise.all(others.map(untilUp))
    },

    /** Starts all control planes again without a failpoint. From then on, they start again whenever they end. */
    async disarm(): Promise<void> {
      await write('')
      await Promise.all(
        hosts.map(async (host) => {
          await host.docker('update', '--restart', 'always', controlContainer)
          await host.docker('restart', '-t', '10', controlContainer)
        }),
      )
      await Promise.all(hosts.map(untilUp))
    },

    /** Returns the hosts whose control planes were killed since they were armed. @throws Error if one has ended in another way */
    async killed(): Promise<LabHost[]> {
      const format = '{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}'
      const states = await Promise.all(
        hosts.map(async (host) => armedState(await host.docker('inspect', '--format', format, controlContainer))),
      )
      return hosts.filter((_, at) => states[at] === 'killed')
    },
  }
}
