// The superuser's URL of a Postgres server whose password is replaced while programs connect.
import { readFileSync } from 'node:fs'
import { ConfigurationError } from '@tenantry/contract'
import pg from 'pg'
import { isState } from './sql-state.ts'

/** Reads the passwords that the superuser may have, the wanted one first. */
export type ReadPasswords = () => Promise<readonly string[]> | readonly string[]

/** The password that a server has last accepted, which all URLs of the server share. */
interface Accepted {
  password: string
}

/**
 * The superuser's URL of a database, on a server whose password is replaced while programs run. A new connection uses
 * the password that the server has last accepted; after a rejection it tries the others.
 */
export class SuperuserUrl {
  readonly #url: string
  readonly #read: ReadPasswords
  readonly #accepted: Accepted

  /**
   * @param url a URL of the server with the password to try first
   * @param accepted is passed by `in`
   */
  constructor(url: string, read: ReadPasswords, accepted: Accepted = { password: passwordOf(url) }) {
    this.#url = url
    this.#read = read
    this.#accepted = accepted
  }

  /** The URL with the password that the server has last accepted. */
  get href(): string {
    return this.withPassword(this.password)
  }

  /** The password that the server has last accepted. */
  get password(): string {
    return this.#accepted.password
  }

  /** Returns the URL of another database of the server. */
  in(database: string): SuperuserUrl {
    const url = Object.assign(new URL(this.#url), { pathname: `/${encodeURIComponent(database)}` })
    return new SuperuserUrl(url.href, this.#read, this.#accepted)
  }

  /** Returns the passwords that the superuser may have, the wanted one first. */
  async passwords(): Promise<readonly string[]> {
    return this.#read()
  }

  /** Returns the URL with this password. */
  withPassword(password: string): string {
    return Object.assign(new URL(this.#url), { password: encodeURIComponent(password) }).href
  }

  /** Uses this password for new connections. */
  use(password: string): void {
    this.#accepted.password = password
  }
}

/**
 * Returns the superuser's URL of a server whose passwords are in a file. Its first line is tried first.
 * @param name the setting that names the file, for messages
 * @throws ConfigurationError for a file that cannot be used
 */
export function superuserWithFile(url: string, file: string, name: string): SuperuserUrl {
  const [wanted] = readPasswordFile(file, name)
  return new SuperuserUrl(url, () => readPasswordFile(file, name), { password: wanted })
}

/** A superuser's URL. The password of a text stays the same as long as the program runs. */
export type PostgresUrl = string | SuperuserUrl

/** Returns the URL as a text, with the password that the server has last accepted. */
export function hrefOf(url: PostgresUrl): string {
  return typeof url === 'string' ? url : url.href
}

/** Returns the URL of another database of the same server. */
export function inDatabase(url: PostgresUrl, database: string): PostgresUrl {
  if (typeof url !== 'string') return url.in(database)
  return Object.assign(new URL(url), { pathname: `/${database}` }).href
}

/**
 * The password may be set after its rejection, and the others may be replaced before they are tried: each is tried this
 * often.
 */
const triesOfEach = 3

/**
 * Connects with the password that the server has last accepted, and with the others after it has rejected that one.
 * @param connect opens a new connection at each call, and rejects with Postgres' own error
 * @throws the error of the last call
 */
export async function withPassword<T>(url: PostgresUrl, connect: (href: string) => Promise<T>): Promise<T> {
  if (typeof url === 'string') return connect(url)
  const rejections = new Map<string, number>()
  for (;;) {
    const { password } = url
    try {
      return await connect(url.withPassword(password))
    } catch (error) {
      if (!isInvalidPassword(error)) throw error
      rejections.set(password, (rejections.get(password) ?? 0) + 1)
      // Another connection may have found the password meanwhile.
      if (!rejections.has(url.password)) continue
      const next = nextToTry(await url.passwords(), rejections)
      if (next === undefined) throw error
      url.use(next)
    }
  }
}

/** Whether Postgres has rejected a login because of its password. */
export function isInvalidPassword(error: unknown): boolean {
  return isState(error, '28P01')
}

/**
 * Reads a file of passwords, one in each line, the wanted one first.
 * @param name the setting that names the file, for messages
 * @throws ConfigurationError for a file that cannot be read, and for a password that is too short
 */
export function readPasswordFile(path: string, name: string): readonly [string, ...string[]] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ConfigurationError(`The file in ${name} cannot be read.`, { cause })
  }
  const [wanted = '', ...others] = text.trim().split(/\s*\n\s*/)
  if ([wanted, ...others].some(({ length }) => length < minPasswordLength))
    throw new ConfigurationError(`${name} must contain at least ${minPasswordLength} characters in each line.`)
  return [wanted, ...others]
}

const minPasswordLength = 16

/** Settings of a connection that notices within half a minute that the server's host is gone. */
export const aliveConnection = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const

/** A pool of connections to one database as superuser. */
export class SuperuserPool extends pg.Pool {
  readonly #url: PostgresUrl

  constructor(url: PostgresUrl, config: Omit<pg.PoolConfig, 'connectionString'>) {
    super({ ...aliveConnection, ...config, connectionString: hrefOf(url) })
    this.#url = url
  }

  /** Returns a connection of the pool. The pool's own `query` calls it with a callback. */
  override connect(): Promise<pg.PoolClient>
  override connect(
    callback: (
      error: Error | undefined,
      client: pg.PoolClient | undefined,
      release: (release?: boolean | Error) => void,
    ) => void,
  ): void
  override connect(
    callback?: (
      error: Error | undefined,
      client: pg.PoolClient | undefined,
      release: (release?: boolean | Error) => void,
    ) => void,
  ): Promise<pg.PoolClient> | undefined {
    const connecting = withPassword(this.#url, (href) => {
      // The next new connection of the pool reads it.
      this.options.connectionString = href
      return super.connect()
    })
    if (callback === undefined) return connecting
    connecting.then(
      (client) => callback(undefined, client, (error) => client.release(error)),
      (error: unknown) =>
        callback(error instanceof Error ? error : new Error(String(error)), undefined, () => undefined),
    )
    return undefined
  }
}

function nextToTry(passwords: readonly string[], rejections: ReadonlyMap<string, number>): string | undefined {
  const times = (password: string) => rejections.get(password) ?? 0
  return passwords.filter((password) => times(password) < triesOfEach).sort((a, b) => times(a) - times(b))[0]
}

function passwordOf(url: string): string {
  return decodeURIComponent(new URL(url).password)
}
