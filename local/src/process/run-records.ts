// Records the processes of an installation on disk, so that the next run finds and ends those that this one may leave.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Logger } from 'pino'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { endGroup, groupMembers, signalProcess } from './process-group.ts'
import { bootId, commandLineOf, isAlive, statOf } from './process-identity.ts'

const RunRecord = Type.Object({
  pid: Type.Integer({ minimum: 2 }),
  startTime: Type.String(),
  bootId: Type.String(),
  command: Type.String(),
  stopSignal: Type.Union([Type.Literal('SIGTERM'), Type.Literal('SIGINT')]),
  stopOrder: Type.Integer(),
})
type RunRecord = Static<typeof RunRecord>

const orphanMilliseconds = 5_000

export class RunRecords {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Writes a record atomically by a rename. */
  async write(service: string, record: RunRecord): Promise<void> {
    const file = this.#file(service)
    await writeFile(`${file}.next`, JSON.stringify(record))
    await rename(`${file}.next`, file)
  }

  async remove(service: string): Promise<void> {
    await rm(this.#file(service), { force: true })
  }

  /** Ends the processes that an earlier run left, in their stop order. */
  async endOrphans(log: Pick<Logger, 'info'>): Promise<void> {
    await mkdir(this.#directory, { recursive: true })
    const records: { service: string; record: RunRecord }[] = []
    for (const file of await readdir(this.#directory)) {
      const service = file.replace(/\.json$/, '')
      const record = file.endsWith('.json') ? await this.#read(file) : undefined
      if (record === undefined) await rm(join(this.#directory, file), { force: true })
      else records.push({ service, record })
    }
    const orders = [...new Set(records.map(({ record }) => record.stopOrder))].sort((a, b) => b - a)
    for (const order of orders) {
      const together = records.filter(({ record }) => record.stopOrder === order)
      await Promise.all(together.map(({ service, record }) => this.#endOrphan(service, record, log)))
    }
  }

  async #endOrphan(service: string, record: RunRecord, log: Pick<Logger, 'info'>): Promise<void> {
    const report = () => log.info({ service, pid: record.pid }, 'A process of an earlier run is ended.')
    if (await isAlive(record)) {
      report()
      await endGroup(record.pid, { signal: record.stopSignal, milliseconds: orphanMilliseconds })
    } else if (record.bootId === (await bootId()) && (await statOf(record.pid)) === undefined) {
      // Children of a dead leader may still run. The PID may also have been another group's since, so the children's
      // commands must match.
      const members = await groupMembers(record.pid)
      for (const pid of members) {
        if ((await commandLineOf(pid))[0] !== record.command && (await statOf(pid))?.name !== basename(record.command))
          continue
        report()
        signalProcess(pid, 'SIGKILL')
      }
    }
    await this.remove(service)
  }

  /** Reads a record; undefined for an incomplete one, or one of another version. */
  async #read(file: string): Promise<RunRecord | undefined> {
    try {
      const record: unknown = JSON.parse(await readFile(join(this.#directory, file), 'utf8'))
      return Value.Check(RunRecord, record) ? record : undefined
    } catch {
      return undefined
    }
  }

  #file(service: string): string {
    return join(this.#directory, `${service}.json`)
  }
}
