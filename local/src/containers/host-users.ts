// The operating-system users of tenants' processes. Where root starts the installation, each program of each tenant has a
// numeric user of its own, which programs of other installations are unlikely to have. Otherwise all programs run as the
// user of the installation's services.
import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { replaceFile } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { readText } from '../data-directory.ts'
import type { Identity } from '../process/unprivileged.ts'

const run = promisify(execFile)

/** Numeric users that no distribution, container engine or systemd assigns, and no executor of functions has. */
const firstUser = 2_000_000_000
const usersOfInstallation = 1_000_000
const parts = 100
const probes = 3
const probeMilliseconds = 20_000
const probePauseMilliseconds = 200

const StoredUsers = Type.Object({
  base: Type.Integer({ minimum: firstUser, maximum: firstUser + parts * usersOfInstallation }),
  numbers: Type.Record(Type.String(), Type.Integer({ minimum: 1, maximum: usersOfInstallation })),
  /** Whether each program has a user of its own. The first start by root chooses, because users own the data. */
  isSeparate: Type.Optional(Type.Boolean()),
})

export class HostUsers {
  /** Whether each program has a user of its own. */
  readonly areSeparate: boolean
  readonly #file: string
  readonly #shared: Identity | undefined
  readonly #stored: Static<typeof StoredUsers>
  #writing: Promise<void> = Promise.resolve()

  private constructor(file: string, shared: Identity | undefined, stored: Static<typeof StoredUsers>) {
    this.#file = file
    this.#shared = shared
    this.#stored = stored
    this.areSeparate = shared !== undefined && stored.isSeparate === true
  }

  /**
   * Reads the users, and chooses at the first start by root whether programs have their own ones.
   * @param shared user of the installation's services; undefined if this process is not root
   * @throws Error if programs have their own users, and none of these can be used now
   */
  static async open(file: string, shared: Identity | undefined): Promise<HostUsers> {
    const stored = (await readUsers(file)) ?? {
      base: firstUser + randomInt(parts) * usersOfInstallation,
      numbers: {},
    }
    if (shared === undefined || stored.isSeparate === false) return new HostUsers(file, shared, stored)
    const cause = await probe(stored.base)
    if (stored.isSeparate === true) {
      if (cause !== undefined)
        throw new Error('Programs of tenants have users of their own, but none can be started as such a user now.', {
          cause,
        })
      return new HostUsers(file, shared, stored)
    }
    const users = new HostUsers(file, shared, { ...stored, isSeparate: cause === undefined })
    await users.#write()
    return users
  }

  /** Returns the number of a program's user, which it keeps until the stack is released. */
  async numberOf(stack: string, user: string): Promise<number> {
    const key = `${stack} ${user}`
    const known = this.#stored.numbers[key]
    if (known !== undefined) return known
    const used = new Set(Object.values(this.#stored.numbers))
    let number = 1
    while (used.has(number)) number++
    this.#stored.numbers[key] = number
    await this.#write()
    return number
  }

  /** Returns the identity of a number; undefined if programs keep the identity of this process. */
  identityOf(number: number): Identity | undefined {
    if (!this.areSeparate) return this.#shared
    return { uid: this.#stored.base + number, gid: this.#stored.base + number }
  }

  /** Frees the users of a stack of which nothing is left. @returns their numbers */
  async release(stack: string): Promise<number[]> {
    const released = Object.entries(this.#stored.numbers).filter(([key]) => key.startsWith(`${stack} `))
    if (released.length === 0) return []
    for (const [key] of released) Reflect.deleteProperty(this.#stored.numbers, key)
    await this.#write()
    return released.map(([, number]) => number)
  }

  async #write(): Promise<void> {
    const write = () => replaceFile(this.#file, JSON.stringify(this.#stored), { mode: 0o600 })
    this.#writing = this.#writing.then(write, write)
    await this.#writing
  }
}

async function readUsers(file: string): Promise<Static<typeof StoredUsers> | undefined> {
  const content = await readText(file)
  if (content === '') return undefined
  const stored: unknown = JSON.parse(content)
  if (!Value.Check(StoredUsers, stored)) throw new Error(`${file} has another form than this version writes.`)
  return stored
}

/** Returns why this machine cannot use such a user; undefined if it can. A container may have fewer users. */
async function probe(uid: number): Promise<unknown> {
  const args = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', 'true']
  for (let count = 1; ; count++) {
    try {
      await run('setpriv', args, { timeout: probeMilliseconds })
      return undefined
    } catch (error) {
      if (count === probes) return error
    }
    await sleep(probePauseMilliseconds)
  }
}
