// One psql in a Postgres container that stays open between queries, so that all of them can use one snapshot.
import { randomBytes } from 'node:crypto'
import type { ExecOptions } from '../engines/index.ts'
import { BackupError } from './backup-error.ts'
import { linesOf } from './lines.ts'
import { loggedIn, type Login } from './login.ts'
import { createTextPipe } from './text-pipe.ts'

/** More than the list of 100,000 columns and 50,000 other objects. A tenant can create any number of them. */
const maxResultCharacters = 32 * 1024 * 1024

export type RunStream = (command: readonly string[], options: ExecOptions) => AsyncIterable<Uint8Array>

interface PsqlSession {
  /** Runs a query and returns the lines of `copy (query) to stdout`. */
  rows: (query: string) => Promise<string[]>
  close(): Promise<void>
}

/** The maximum time between statements. An engine closes a connection that is silent for long. */
const pingMilliseconds = 60_000

/**
 * Starts a psql session.
 * @param login undefined: the superuser, over the socket; never where a tenant's own tables are read
 *   (`reader-login.ts`)
 * @param opening statements that begin the session, e.g. settings and a transaction
 */
export function openPsql(
  run: RunStream,
  database: string,
  login: Login | undefined,
  opening: readonly string[],
  signal: AbortSignal,
): PsqlSession {
  const input = createTextPipe()
  const ended = new AbortController()
  const psql = ['psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', database, '-f', '-']
  const command = login === undefined ? [...psql, '-U', 'postgres'] : loggedIn(login, psql)
  const output = linesOf(run(command, { input: input.content, signal: AbortSignal.any([signal, ended.signal]) }))
  const password = login === undefined ? '' : `${login.password}\n`
  let turn: Promise<unknown> = input.write(`${password}${opening.join(';\n')};\n`)

  const resultOf = async (query: string): Promise<string[]> => {
    const mark = randomBytes(12).toString('hex')
    await input.write(`copy (${query}) to stdout;\n\\echo ${mark}\n`)
    const lines: string[] = []
    let characters = 0
    for (;;) {
      const { value, done } = await output.next()
      if (done === true) throw new Error('psql exited before it returned the result.')
      if (value === mark) return lines
      characters += value.length
      if (characters > maxResultCharacters) {
        ended.abort()
        throw new BackupError('FAILED', `A list of the home's objects has more than ${maxResultCharacters} characters.`)
      }
      lines.push(value)
    }
  }
  const rows = (query: string): Promise<string[]> => {
    const result = turn.then(() => resultOf(query))
    turn = result.catch(() => undefined)
    return result
  }
  const pings = setInterval(() => void rows('select 1').catch(() => undefined), pingMilliseconds)

  return {
    rows,
    async close() {
      clearInterval(pings)
      await turn.catch(() => undefined)
      input.end()
      // The end of psql is awaited, so that nothing of it remains. A failed one has reported its error before.
      try {
        while ((await output.next()).done !== true);
      } catch {
        ended.abort()
      }
    },
  }
}
